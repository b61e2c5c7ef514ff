//! Estimates S, the cost of a page fault, for a job while it runs.
//!
//! The kernel counts a job's major faults, user time and system time. Faults are served in system time. A
//! fault's CPU cost is the system time beyond the usual, divided by the number of faults:
//!
//! S = (Δsystem − share · Δuser) / Δmajor
//!
//! The share, usual system time per user time, is learnt in periods with hardly a fault. Estimates are
//! smoothed (Nishigaki 1981, equation 3.2). Until there are enough faults, the device's S is used.
//!
//! The estimate does not contain the time for which a job *waits* for a device. The kernel counts that only
//! with delay accounting (`kernel.task_delayacct`). On disks the device's S is therefore better, and the
//! larger of estimate and device's S is used.

use std::time::Duration;

/// The fewest faults for an estimate.
const FAULTS_MIN: u64 = 200;
/// Fewer than this in a period are hardly any: its system time is usual.
const FAULTS_FEW: u64 = 4;
const NEWEST: f64 = 0.3;
/// The least and the largest plausible cost of a fault.
const BOUNDS: [f64; 2] = [1e-6, 0.1];

#[derive(Debug, Clone)]
pub(crate) struct Delay {
    device: Duration,
    /// System time for each unit of user time, without faults.
    share: Option<f64>,
    seconds: Option<f64>,
    gathered: Use,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Use {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) major_faults: u64,
}

impl Delay {
    /// An estimate before any measurement: the device's delay.
    pub(crate) fn new(device: Duration) -> Delay {
        Delay { device, share: None, seconds: None, gathered: Use::default() }
    }

    pub(crate) fn observe(&mut self, used: Use) {
        if used.major_faults <= FAULTS_FEW {
            if !used.user.is_zero() {
                let share = used.system.as_secs_f64() / used.user.as_secs_f64();
                self.share = Some(self.share.map_or(share, |before| before + NEWEST * (share - before)));
            }
            return;
        }
        self.gathered.user += used.user;
        self.gathered.system += used.system;
        self.gathered.major_faults += used.major_faults;
        if self.gathered.major_faults < FAULTS_MIN {
            return;
        }
        let Use { user, system, major_faults } = std::mem::take(&mut self.gathered);
        let Some(share) = self.share else { return };
        let beyond = (system.as_secs_f64() - share * user.as_secs_f64()).max(0.0);
        let each = (beyond / major_faults as f64).clamp(BOUNDS[0], BOUNDS[1]);
        self.seconds = Some(self.seconds.map_or(each, |before| before + NEWEST * (each - before)));
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(0.0).max(self.device.as_secs_f64())
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.seconds.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(user_ms: u64, system_ms: u64, major_faults: u64) -> Use {
        Use { user: Duration::from_millis(user_ms), system: Duration::from_millis(system_ms), major_faults }
    }

    #[test]
    fn what_exceeds_the_usual_share_is_the_faults() {
        let mut delay = Delay::new(Duration::from_micros(20));
        delay.observe(used(1000, 100, 0));
        assert!(!delay.is_measured() && delay.seconds() == 20e-6);
        delay.observe(used(500, 60, 100));
        assert!(!delay.is_measured(), "a hundred faults say nothing yet");
        // By hand: (60 + 140 − 0.1 · 1000) ms / 200 = 500 µs.
        delay.observe(used(500, 140, 100));
        assert!((delay.seconds() - 500e-6).abs() < 1e-9, "{}", delay.seconds());
        delay.observe(used(1000, 100, 1000));
        assert!((delay.seconds() - (500e-6 * 0.7 + 1e-6 * 0.3)).abs() < 1e-9, "{}", delay.seconds());
    }

    #[test]
    fn the_devices_delay_is_the_least_and_the_usual_share_must_be_known() {
        let mut delay = Delay::new(Duration::from_micros(100));
        delay.observe(used(10, 100, 1000));
        assert!(!delay.is_measured());
        delay.observe(used(1000, 0, 0));
        delay.observe(used(0, 10, 1000));
        assert_eq!((delay.is_measured(), delay.seconds()), (true, 100e-6));
    }
}
