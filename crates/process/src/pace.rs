//! Computes the interval between two looks (samples) of the job.
//!
//! A look at the tree of processes costs CPU time that the job could have used. It may cost at most one part
//! in [`COST_SHARE`] of the CPU time that the job uses in the interval. A job that mostly sleeps counts as
//! using [`IDLE_CREDIT`] of one CPU; otherwise there would be no further look. The shortest interval also
//! grows with the run, so that a run of an hour gets fewer looks per second than a run of a second.
//!
//! ```text
//! interval = cost / (rate / COST_SHARE)       rate = CPUs that the job uses, at least IDLE_CREDIT
//!            within [max(INTERVAL_MIN, elapsed / GROWTH), INTERVAL_MAX]
//! ```

use std::time::Duration;

/// The shortest time between two looks.
pub const INTERVAL_MIN: Duration = Duration::from_millis(5);
/// The longest time between two looks.
pub const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// A look costs at most one part in this many of the job's CPU time.
pub const COST_SHARE: f64 = 100.0;
/// CPUs a sleeping job is credited with.
const IDLE_CREDIT: f64 = 0.1;
/// The shortest interval is the run's length over this.
const GROWTH: u32 = 8192;
/// The limit of that growth.
const GROWN_MAX: Duration = Duration::from_millis(100);
/// The shortest time for a rate: CPU time has a resolution of 10 ms.
const RATE_WINDOW: Duration = Duration::from_millis(200);
const NEWEST: f64 = 0.25;

/// Decides the interval from the cost of looking and the job's appetite for CPU.
#[derive(Clone, Debug)]
pub struct Pace {
    cost: Option<f64>,
    rate: f64,
    rated_at: Duration,
    rated_cpu: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        // A job is taken to use one CPU until it has shown otherwise.
        Pace { cost: None, rate: 1.0, rated_at: Duration::ZERO, rated_cpu: Duration::ZERO }
    }
}

impl Pace {
    /// The time until the next look, after one at `elapsed` that cost `cost` of CPU time and saw the job's
    /// CPU time stand at `job_cpu`.
    pub fn next(&mut self, elapsed: Duration, cost: Duration, job_cpu: Duration) -> Duration {
        let cost = cost.as_secs_f64();
        let average = self.cost.map_or(cost, |old| old + NEWEST * (cost - old));
        self.cost = Some(average);
        let window = elapsed.saturating_sub(self.rated_at);
        if window >= RATE_WINDOW {
            // A process that left the tree unseen can make the sum step back: that is no negative rate.
            let used = job_cpu.saturating_sub(self.rated_cpu);
            self.rate = used.as_secs_f64() / window.as_secs_f64();
            (self.rated_at, self.rated_cpu) = (elapsed, job_cpu);
        }
        let wanted = average * COST_SHARE / self.rate.max(IDLE_CREDIT);
        let shortest = (elapsed / GROWTH).clamp(INTERVAL_MIN, GROWN_MAX);
        Duration::from_secs_f64(wanted.min(INTERVAL_MAX.as_secs_f64())).clamp(shortest, INTERVAL_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(cost: Duration, cpus: f64) -> Duration {
        let (mut pace, mut at, mut interval) = (Pace::default(), Duration::ZERO, INTERVAL_MIN);
        for _ in 0..200 {
            at += interval;
            interval = pace.next(at, cost, at.mul_f64(cpus));
        }
        interval
    }

    #[test]
    fn a_cheap_look_at_a_busy_job_is_as_frequent_as_allowed() {
        assert_eq!(settle(Duration::from_micros(10), 1.0), INTERVAL_MIN);
    }

    #[test]
    fn the_share_holds() {
        for (micros, cpus) in [(100u64, 1.0), (400, 2.0), (1000, 0.5), (3000, 4.0)] {
            let cost = Duration::from_micros(micros);
            let interval = settle(cost, cpus);
            let share = cost.as_secs_f64() / (interval.as_secs_f64() * cpus);
            assert!(share <= 1.02 / COST_SHARE, "{micros} us on {cpus} CPUs: {share}");
        }
    }

    #[test]
    fn a_sleeping_job_is_still_looked_at() {
        let interval = settle(Duration::from_micros(50), 0.0);
        assert!((45..=55).contains(&interval.as_millis()), "{interval:?}");
        assert_eq!(settle(Duration::from_secs(1), 0.0), INTERVAL_MAX);
    }

    #[test]
    fn a_long_run_is_watched_more_slowly() {
        let mut pace = Pace::default();
        let hour = Duration::from_secs(3600);
        assert_eq!(pace.next(hour, Duration::from_micros(1), hour), GROWN_MAX);
    }
}
