//! The figures of a simulated run.

/// One initiator's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReport {
    /// The programs it ran, by the first one's name.
    pub name: &'static str,
    /// Instructions executed.
    pub cpu: u64,
    /// File operations.
    pub operations: u64,
    /// Faults.
    pub faults: u64,
    /// Programs that ended.
    pub ended: u64,
    /// Mean pages in memory, over all time.
    pub pages: f64,
    /// Mean window at sample points, in instructions.
    pub window: f64,
    /// The share of the time for which it was suspended.
    pub suspended: f64,
}

/// A run's figures, after its warm-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Instruction times that passed.
    pub passed: u64,
    /// S, the service time of a fault, in instructions.
    pub delay: f64,
    /// The share of the time for which the CPU executed programs.
    pub cpu: f64,
    /// The share of the time for which it handled faults.
    pub overhead: f64,
    /// The share of the time for which the paging device was busy.
    pub paging: f64,
    /// Jobs in memory, on average: the degree of multiprogramming.
    pub multiprogramming: f64,
    /// Jobs executing or ready to, on average.
    pub ready: f64,
    /// Frames in use, on average.
    pub frames: f64,
    /// Mean time from a fault to its page, in instructions: S with the waiting in the device's queue.
    pub fault_time: f64,
    /// Jobs suspended.
    pub suspensions: u64,
    /// Each initiator.
    pub jobs: Vec<JobReport>,
}

/// Instructions, or file operations, in one unit of service.
const UNIT_INSTRUCTIONS: f64 = 1000.0;

impl Report {
    /// Σ R: a unit for each thousand instructions and for each file operation, without the overhead.
    #[must_use]
    pub fn service(&self) -> f64 {
        self.jobs.iter().map(|job| job.cpu as f64 / UNIT_INSTRUCTIONS + job.operations as f64).sum()
    }

    /// Faults of all jobs.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.jobs.iter().map(|job| job.faults).sum()
    }

    /// L: the mean CPU time between two faults of any jobs; infinite without faults.
    #[must_use]
    pub fn system_lifetime(&self) -> f64 {
        self.jobs.iter().map(|job| job.cpu as f64).sum::<f64>() / self.faults() as f64
    }

    /// The bound of the CPU's use: min(1, Σ e/(e + S), L/S) (2.7).
    #[must_use]
    pub fn bound(&self) -> f64 {
        let efficiency = |job: &JobReport| {
            let lifetime = job.cpu as f64 / job.faults as f64;
            if job.faults == 0 { 1.0 } else { lifetime / (lifetime + self.delay) }
        };
        let alone: f64 = self.jobs.iter().map(efficiency).sum();
        alone.min(self.system_lifetime() / self.delay).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_and_bound_match_a_hand_calculation() {
        let job = |cpu, faults| JobReport {
            name: "B1",
            cpu,
            operations: 10,
            faults,
            ended: 0,
            pages: 0.0,
            window: 0.0,
            suspended: 0.0,
        };
        let report = Report {
            passed: 1_000_000,
            delay: 1000.0,
            cpu: 0.0,
            overhead: 0.0,
            paging: 0.0,
            multiprogramming: 0.0,
            ready: 0.0,
            frames: 0.0,
            fault_time: 0.0,
            suspensions: 0,
            jobs: vec![job(100_000, 400), job(100_000, 100)],
        };
        assert_eq!(report.service(), 220.0);
        // e/(e + S): 250/1250 + 1000/2000 = 0.7; L/S = 400/1000.
        assert_eq!((report.system_lifetime(), report.bound()), (400.0, 0.4));
    }
}
