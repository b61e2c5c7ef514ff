//! Reads the load of the machine, the time that tasks waited for a processor (`/proc/pressure/cpu`).
//!
//! The kernel counts the time in which at least one task of the machine was ready and had no processor. A
//! timed program with a processor to itself adds nothing; two programs that compete for one processor add all
//! of their time.

use std::time::{Duration, Instant};
use vellum_kernel::Stalls;

/// The kernel's file.
pub const PRESSURE: &str = Stalls::CPU;
/// From this share of the time on, timed programs have waited for each other.
pub const BUSY_FROM: f64 = 0.1;

/// The kernel's account of waiting at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    total: Duration,
    at: Instant,
}

impl Waited {
    /// The account now; `None` if the kernel keeps none.
    #[must_use]
    pub fn now() -> Option<Waited> {
        Some(Waited { total: Stalls::read(PRESSURE)?.some.total, at: Instant::now() })
    }

    /// The share of the time since then in which some task waited for a processor.
    #[must_use]
    pub fn share_since(self) -> Option<f64> {
        let now = Waited::now()?;
        let passed = now.at.duration_since(self.at).as_secs_f64();
        let waited = now.total.saturating_sub(self.total).as_secs_f64();
        (passed > 0.0).then(|| (waited / passed).min(1.0))
    }
}

/// The share of the last ten seconds in which some task waited for a processor.
#[must_use]
pub fn lately() -> Option<f64> {
    Some(Stalls::read(PRESSURE)?.some.lately)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts() {
        let Some(before) = Waited::now() else {
            vellum_skip::skip("this kernel keeps no account of waiting tasks");
            return;
        };
        std::thread::sleep(Duration::from_millis(2));
        let share = before.share_since().unwrap();
        assert!((0.0..=1.0).contains(&share) && lately().is_some_and(|share| share <= 1.0), "{share}");
    }
}
