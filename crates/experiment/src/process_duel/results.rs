//! The results of a duel of programs: the runs of every round, and the comparisons made from them.

use super::DOUBLE;
use super::nothing::NothingCost;
use super::spawn::ProcessRun;
use crate::ArmOrder;
use crate::arms;
use vellum_measure::{CompareError, Comparison, Observation, Options, Series, Unit};
use vellum_timing::clock::Clock;

/// The step of CPU times: the kernel accounts them in microseconds.
pub(super) const CPU_STEP_NS: f64 = 1000.0;
/// The step of counts of instructions. The length of the program's name, the environment and the stack's
/// start change them by tens to hundreds, because the loader and the C library walk over these.
const INSTRUCTIONS_STEP: f64 = 1000.0;

/// The results of a duel of processes: every round, in order.
#[derive(Clone, Debug)]
pub struct ProcessDuel {
    /// The rounds, each with the runs by arm: two of the first program, then one of each other program.
    pub rounds: Vec<Vec<ProcessRun>>,
    /// The cost of starting and ending a process.
    pub nothing: NothingCost,
    /// The number of failed processes of each arm.
    pub failures: Vec<usize>,
    /// The clock of the wall times.
    pub clock: Clock,
    /// The order of the arms.
    pub order: ArmOrder,
    pub(super) subtract_nothing: bool,
}

/// The figure of a process that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessMetric {
    /// Nanoseconds from start to end.
    Wall,
    /// User and system time, nanoseconds.
    Cpu,
    /// Instructions executed in user mode; 0 if they were not counted.
    Instructions,
}

impl ProcessDuel {
    /// Each round's figures of one kind: A, A' and the program of this arm. If requested, times are less the
    /// cost of starting a process.
    pub fn values(&self, metric: ProcessMetric, arm: usize) -> impl Iterator<Item = [f64; 3]> {
        let base = match metric {
            ProcessMetric::Wall if self.subtract_nothing => self.nothing.wall.min,
            ProcessMetric::Cpu if self.subtract_nothing => self.nothing.cpu.min,
            _ => 0.0,
        };
        let value = move |run: &ProcessRun| run.value(metric) - base;
        self.rounds.iter().map(move |round| [0, DOUBLE, arm].map(|arm| value(&round[arm])))
    }

    /// Compares the program of this arm with the first one, with A' against A as the control. The metric's
    /// step is filled in.
    ///
    /// # Errors
    /// Those of [`Comparison::of`].
    pub fn compare(
        &self,
        metric: ProcessMetric,
        arm: usize,
        options: &Options,
    ) -> Result<Comparison, CompareError> {
        arms::compare(self.values(metric, arm), self.step(metric), options)
    }

    /// The resolution of a metric, in its unit: the clock's step, the kernel's for CPU time, or the variation
    /// of instructions without a change of program.
    #[must_use]
    pub fn step(&self, metric: ProcessMetric) -> f64 {
        match metric {
            ProcessMetric::Wall => self.clock.step_ns(),
            ProcessMetric::Cpu => CPU_STEP_NS,
            ProcessMetric::Instructions => INSTRUCTIONS_STEP,
        }
    }

    /// One arm's processes as a series of times, or of instructions. The series has bases if the cost of a
    /// start is subtracted.
    #[must_use]
    pub fn series(&self, metric: ProcessMetric, name: &str, arm: usize) -> Series {
        let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let times = |run: &ProcessRun| Observation {
            start_ns: run.start_ns,
            wall_ns: run.wall_ns,
            cpu_ns: Some(run.cpu_ns()),
            minor: count(run.usage.minor_faults),
            major: count(run.usage.major_faults),
            voluntary: count(run.usage.voluntary_switches),
            involuntary: count(run.usage.involuntary_switches),
            steal_ns: None,
        };
        let instructions = |run: &ProcessRun| Observation {
            start_ns: run.start_ns,
            wall_ns: run.value(metric),
            ..Observation::default()
        };
        let runs = self.rounds.iter().map(|round| &round[arm]);
        let series = arms::series(name, arm, self.order.name(), &self.clock);
        match metric {
            ProcessMetric::Wall | ProcessMetric::Cpu => Series {
                base: self.subtract_nothing.then(|| self.nothing.wall.clone()),
                cpu_base: self.subtract_nothing.then(|| self.nothing.cpu.clone()),
                observations: runs.map(times).collect(),
                ..series
            },
            ProcessMetric::Instructions => Series {
                quantity: "Instructions".to_owned(),
                unit: Unit::Instructions,
                clock: None,
                observations: runs.map(instructions).collect(),
                ..series
            },
        }
    }
}
