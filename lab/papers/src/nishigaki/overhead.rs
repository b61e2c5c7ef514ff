//! Nishigaki 1981, section 4: the cost of estimating windows.
//!
//! The paper ran copies of a program twice, with optimal windows set beforehand and with windows found by the
//! estimator. It called the difference in the system's CPU time the overhead. Here the same reference string
//! is sampled once, and at each sample point every arm does its timed part. All arms update the counters, as
//! every working-set scheduler does. They differ in the next step: none, the paper's estimator, or Vellum's.
//!
//! Time is a share of Δ. The paper's Δ took its machine some tens of milliseconds, this one a fraction of a
//! millisecond. A governor of today samples every 100 ms of user time. The share is therefore given twice: of
//! the Δ in instructions, at a thousand million a second, and of 100 ms.
//!
//! Departure: taking reference bits from a processor is left out, in all arms, as in the paper.

use super::Run;
use crate::model::Estimation;
use crate::model::SlrumRuns;
use crate::model::published::{DELAY, DELTA, RANGE, Synthetic};
use crate::model::table1::DELTA_FINE;
use crate::model::trial::Manager;
use crate::{Bound, Finding, Goal, Table, Value};
use serde_json::json;
use std::time::{Duration, Instant};
use vellum_workset::{Counters, Criterion, Page, Quanta, Ticks};

const SAMPLES: usize = 20_000;
/// Δ of a governor.
const DELTA_TODAY: Duration = Duration::from_millis(100);
/// The time of an instruction, to convert the paper's Δ.
const INSTRUCTION_NS: f64 = 1.0;
/// Bound of the share, in percent of the job's time at that Δ.
const SHARE_MAX: f64 = 1.0;
/// Bound of the sample points at which a stationary job's curve is computed, in percent.
const REVIEWS_MAX: f64 = 5.0;
/// The first window of an estimator.
const START: Ticks = Ticks(1_000_000);
const CRITERIA: [Criterion; 2] = [Criterion::ProcessorEfficiency, Criterion::Lifetime];

pub(super) fn run(run: &mut Run<'_>) -> Finding {
    let samples = run.scale.pick(SAMPLES, SAMPLES / 4, SAMPLES / 100);
    let mut table = Table::new(
        "At each sample point",
        &[
            ("program", "program"),
            ("criterion", "criterion"),
            ("by", "estimator"),
            ("counters_ns", "counters,|ns"),
            ("estimation_ns", "estimation,|ns"),
            ("share_of_delta_percent", "of its|Δ, %"),
            ("share_percent", "of|100 ms, %"),
            ("published_percent", "published,|%"),
            ("looked_percent", "looked at|curve, %"),
        ],
    );
    let (mut goals, mut runs, mut worst) = (Vec::new(), Vec::new(), 0.0f64);
    let mut saved = Vec::new();
    for (at, synthetic) in Synthetic::ALL.into_iter().enumerate() {
        run.tell(at, Synthetic::ALL.len(), synthetic.name());
        let program = synthetic.fitted().program;
        for criterion in CRITERIA {
            let mut every = Vec::new();
            for (by, words) in [(Estimation::SOURCE, "source's"), (Estimation::Remembering, "Vellum's")] {
                let delta = if by == Estimation::SOURCE { DELTA } else { DELTA_FINE };
                let quanta = |ticks: Ticks| Quanta((ticks.0 / delta.0) as u32);
                let manager = by.manager(criterion, delta, DELAY, quanta(START), quanta(RANGE));
                let mut manager = manager.expect("the published delay and intervals are sound");
                let mut counters = Counters::new(Quanta(quanta(RANGE).0 + 2));
                let (mut counting, mut estimating) = (Duration::ZERO, Duration::ZERO);
                let mut sampled = Sampled::new(program.runs(run.seed), delta);
                let mut pages = Vec::new();
                for _ in 0..samples {
                    sampled.next_into(&mut pages);
                    let began = Instant::now();
                    counters.sample(Quanta(1), pages.iter().copied());
                    let counted = Instant::now();
                    std::hint::black_box(manager.step(&counters));
                    estimating += counted.elapsed();
                    counting += counted - began;
                }
                let reviews = match &manager {
                    Manager::Control(control) => control.reviews() as f64 / samples as f64,
                    Manager::Owe(_) | Manager::Fixed(_) => 1.0,
                };
                let per = |time: Duration| time.as_nanos() as f64 / samples as f64;
                let of_delta = per(estimating) / (delta.as_f64() * INSTRUCTION_NS) * 100.0;
                let share = per(estimating) / DELTA_TODAY.as_nanos() as f64 * 100.0;
                worst = worst.max(share);
                every.push(reviews);
                table.rows.push(vec![
                    Value::text(synthetic.name()),
                    Value::text(criterion.short()),
                    Value::text(words),
                    Value::Number(per(counting)),
                    Value::Number(per(estimating)),
                    Value::Number(of_delta),
                    Value::Number(share),
                    published(synthetic, criterion, by).map_or(Value::Nothing, Value::Number),
                    Value::Number(reviews * 100.0),
                ]);
                runs.push(json!({
                    "cell": format!("{} {}", synthetic.name(), criterion.short()), "arm": words, "seed": run.seed,
                    "metrics": { "samples": samples, "counters_ns": per(counting), "estimation_ns": per(estimating),
                        "reviews_share": reviews },
                }));
            }
            saved.extend(every.get(1).copied());
        }
    }
    goals.push(Goal::of(
        "estimation, the dearest cell",
        " % of a job's time at Δ = 100 ms",
        Bound::AtMost(SHARE_MAX),
        Some(worst),
    ));
    let most = saved.iter().copied().fold(0.0, f64::max) * 100.0;
    goals.push(Goal::of(
        "sample points at which a stationary job's curve is looked at, the most",
        " %",
        Bound::AtMost(REVIEWS_MAX),
        Some(most),
    ));
    Finding {
        name: "overhead".to_owned(),
        title: "What the estimation costs",
        source: "Nishigaki, section 4",
        published: "Some 1.2 % of the CPU for S2, 0.35 % (PE) and 0.59 % (LT) for S3. Once a window is found it need not be sought \
                    again while the program is stationary: left for later.",
        tables: vec![table],
        notes: vec![
            format!(
                "{samples} sample points of each program, seed {}; times of this machine. Δ is {} instructions for the source's estimator \
                 and {} for Vellum's, taken to last {INSTRUCTION_NS} ns each",
                run.seed, DELTA.0, DELTA_FINE.0
            ),
            format!(
                "the source estimates at every sample point; Vellum looks again when an eighth more is known: at {most:.1} % of the \
                 sample points at most, and ever less often the longer a job is stationary"
            ),
        ],
        goals,
        figures: Vec::new(),
        runs,
    }
}

fn published(synthetic: Synthetic, criterion: Criterion, by: Estimation) -> Option<f64> {
    match (by, synthetic, criterion) {
        (Estimation::SOURCE, Synthetic::S2, _) => Some(1.2),
        (Estimation::SOURCE, Synthetic::S3, Criterion::ProcessorEfficiency) => Some(0.35),
        (Estimation::SOURCE, Synthetic::S3, Criterion::Lifetime) => Some(0.59),
        _ => None,
    }
}

/// The pages of a reference string, an interval at a time.
struct Sampled {
    runs: SlrumRuns,
    delta: u64,
    /// The current page, and the number of references to it left.
    page: Page,
    left: u64,
}

impl Sampled {
    fn new(runs: SlrumRuns, delta: Ticks) -> Self {
        Self { runs, delta: delta.0, page: Page(0), left: 0 }
    }

    /// The pages referenced in the next interval, possibly more than once.
    fn next_into(&mut self, pages: &mut Vec<Page>) {
        pages.clear();
        let mut passed = 0;
        while passed < self.delta {
            if self.left == 0 {
                let Some(run) = self.runs.next() else { return };
                (self.page, self.left) = (run.page, run.length);
            }
            pages.push(self.page);
            let part = self.left.min(self.delta - passed);
            passed += part;
            self.left -= part;
        }
    }
}
