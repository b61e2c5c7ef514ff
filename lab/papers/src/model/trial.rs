//! A trial: a run of one synthetic program with one way to choose its window, as in Nishigaki's Table 1.
//!
//! The program runs alone; its faults take no virtual time. At each sample point the counters receive the
//! pages referenced since the last one. A *manager* sets the window (fixed or estimated), and pages
//! outside it are evicted. The trial counts faults and, at every reference, the resident pages.
//!
//! Counting begins after a warm-up, in which the manager already learns. The product of memory and time, X =
//! z̄·(1 + S·f̄), is computed from the means of resident pages and fault rate; S is the delay of a fault.

use crate::model::Slrum;
use crate::model::estimators::{Control, Counters, Estimator, Owe, Quanta, Step};
use crate::model::published::{ALPHA, TOLERANCE};
use vellum_workset::{Criterion, Demand, Page, Ticks};

/// The way a job's knee is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Estimation {
    /// By the paper's controller ([`Owe`]), with its α.
    Source {
        /// The difference that it ignores as small, in pages.
        tolerance: u32,
    },
    /// By the controller that stores the curve ([`Control`]).
    Remembering,
}

impl Estimation {
    /// The paper's controller with the tolerance that reproduces its Table 1.
    pub const SOURCE: Self = Self::Source { tolerance: TOLERANCE };

    /// A manager that minimises the criterion's product at `delay` ticks per fault, sampled every `delta`.
    /// Its first window is `window` and its largest `window_max`.
    #[must_use]
    pub fn manager(
        self,
        criterion: Criterion,
        delta: Ticks,
        delay: f64,
        window: Quanta,
        window_max: Quanta,
    ) -> Manager {
        match self {
            Self::Source { tolerance } => {
                let (estimator, tolerance) = (Estimator::new(ALPHA, delta, delay), f64::from(tolerance));
                Manager::Owe(Box::new(Owe::new(estimator, criterion, window, window_max, tolerance)))
            }
            Self::Remembering => {
                let demand = Demand::uncapped(criterion, delay);
                Manager::Control(Box::new(Control::new(delta, demand, window, window_max)))
            }
        }
    }
}

/// The way to choose the window.
#[derive(Debug, Clone)]
pub enum Manager {
    /// A constant window.
    Fixed(Quanta),
    /// The paper's controller.
    Owe(Box<Owe>),
    /// Our controller.
    Control(Box<Control>),
}

/// The length and resolution of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Δ.
    pub delta: Ticks,
    /// References before counting begins: the optimum is that of the stationary program, without its first
    /// references.
    pub warm_up: Ticks,
    /// References that are counted.
    pub length: Ticks,
    /// Number of intervals after which a page's counter is dropped.
    pub horizon: Quanta,
    /// Seed of the reference string.
    pub seed: u64,
}

/// The measured means of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The mean window, in ticks, at sample points.
    pub window: f64,
    /// The mean of w(t, T) at sample points, in pages: the paper's average working set.
    pub sampled: f64,
    /// The mean of the resident pages at all references.
    pub resident: f64,
    /// Faults per reference, including those of first references.
    pub faults: f64,
}

impl Outcome {
    /// X or Y, in pages, at `delay` references per fault.
    #[must_use]
    pub fn product(&self, criterion: Criterion, delay: f64) -> f64 {
        criterion.product(self.resident, self.faults, delay)
    }
}

impl Manager {
    /// Sets a new measurement of S, in ticks; the paper's controller keeps its first one.
    pub fn set_delay(&mut self, delay: f64) {
        if let Self::Control(control) = self {
            control.set_delay(delay);
        }
    }

    /// A sample point: returns the window from now on, and whether pages outside are evicted.
    pub fn step(&mut self, counters: &Counters) -> Step {
        match self {
            Self::Fixed(window) => Step { window: *window, replace: true },
            Self::Owe(owe) => owe.decide(&counters.working_sets()),
            Self::Control(control) => {
                Step { window: control.observe(&counters.working_sets()), replace: true }
            }
        }
    }
}

/// Runs `program` under `manager`.
///
/// All figures are 0 for a trial shorter than one interval.
#[must_use]
pub fn run(program: &Slrum, trial: Trial, manager: &mut Manager) -> Outcome {
    let delta = trial.delta.0.max(1);
    let (start, end) = (trial.warm_up.0, trial.warm_up.0.saturating_add(trial.length.0));
    let mut counters = Counters::new(trial.horizon);
    let mut memory = Memory::new(program.pages());
    let mut sums = Sums::default();
    let (mut now, mut sample) = (0, delta);
    for run in program.runs(trial.seed) {
        let mut left = run.length.min(end - now);
        memory.reference(run.page);
        while left > 0 {
            // Neither a sample point nor the end of the warm-up lies inside a part.
            let next = if now < start { sample.min(start) } else { sample };
            let part = left.min(next - now);
            memory.pass(part);
            now += part;
            left -= part;
            if now == start {
                memory.count_from_here();
                sums = Sums::default();
            }
            if now == sample {
                sample += delta;
                counters.sample(memory.referenced.drain(..));
                let step = manager.step(&counters);
                sums.add(step.window.of(trial.delta), counters.working_set(step.window));
                if step.replace {
                    memory.evict(&counters, step.window);
                }
            }
            if left > 0 && part > 0 {
                memory.reference(run.page);
            }
        }
        if now >= end {
            break;
        }
    }
    let (count, passed) = (sums.samples.max(1) as f64, trial.length.0.max(1) as f64);
    Outcome {
        window: sums.windows / count,
        sampled: sums.sizes / count,
        resident: memory.page_ticks / passed,
        faults: memory.faults as f64 / passed,
    }
}

#[derive(Default)]
struct Sums {
    windows: f64,
    sizes: f64,
    samples: u64,
}

impl Sums {
    fn add(&mut self, window: Ticks, size: u64) {
        self.windows += window.as_f64();
        self.sizes += size as f64;
        self.samples += 1;
    }
}

struct Memory {
    resident: Vec<bool>,
    count: u64,
    faults: u64,
    page_ticks: f64,
    /// Pages referenced since the last sample point, possibly more than once.
    referenced: Vec<Page>,
}

impl Memory {
    fn new(pages: usize) -> Self {
        Self { resident: vec![false; pages], count: 0, faults: 0, page_ticks: 0.0, referenced: Vec::new() }
    }

    fn reference(&mut self, page: Page) {
        self.referenced.push(page);
        let resident = &mut self.resident[page.0 as usize];
        if !*resident {
            *resident = true;
            self.count += 1;
            self.faults += 1;
        }
    }

    fn count_from_here(&mut self) {
        self.faults = 0;
        self.page_ticks = 0.0;
    }

    fn pass(&mut self, ticks: u64) {
        self.page_ticks += self.count as f64 * ticks as f64;
    }

    fn evict(&mut self, counters: &Counters, window: Quanta) {
        for (page, resident) in self.resident.iter_mut().enumerate().filter(|(_, resident)| **resident) {
            if counters.counter(Page(page as u64)).is_none_or(|counter| counter >= window) {
                *resident = false;
                self.count -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Turner;

    #[test]
    fn a_fixed_window_matches_turners_formulas() {
        let tails: Vec<f64> = (1..30).map(|h| 0.05 * 0.75f64.powi(h)).collect();
        let program = Slrum::from_tails(&tails).unwrap();
        // Pages are evicted every 20 references, so the actual window varies from 200 to 220.
        let trial = Trial {
            delta: Ticks(20),
            warm_up: Ticks(1000),
            length: Ticks(4_000_000),
            horizon: Quanta(20),
            seed: 31,
        };
        let outcome = run(&program, trial, &mut Manager::Fixed(Quanta(10)));
        let turner = Turner::sampled(&program, Ticks(210), 1).remove(0);
        assert!((outcome.resident / turner.pages() - 1.0).abs() < 0.01, "{outcome:?} for {}", turner.pages());
        assert!((outcome.faults / turner.faults() - 1.0).abs() < 0.02, "{outcome:?} for {}", turner.faults());
        assert_eq!(outcome.window, 200.0);
    }

    #[test]
    fn a_trial_without_time_has_zero_figures() {
        let program = Slrum::from_tails(&[]).unwrap();
        let trial =
            Trial { delta: Ticks(10), warm_up: Ticks(0), length: Ticks(0), horizon: Quanta(2), seed: 1 };
        let outcome = run(&Slrum::from_tails(&[0.5]).unwrap(), trial, &mut Manager::Fixed(Quanta(1)));
        assert_eq!(outcome.window, 0.0);
        // A program that never leaves its page has one fault, and one endless run.
        let outcome = run(&program, Trial { length: Ticks(1000), ..trial }, &mut Manager::Fixed(Quanta(1)));
        assert_eq!((outcome.resident, outcome.faults, outcome.window), (1.0, 0.001, 10.0));
    }
}
