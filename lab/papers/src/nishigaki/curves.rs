//! Nishigaki 1981, Figure 2: curves of the programs S1, S2 and S3 over the window: the mean working set z,
//! and the products of memory and time X and Y. The criterion PE (processor efficiency) minimises X, and
//! LT (lifetime) Y.
//!
//! The curves are computed by Turner's formulas, which are exact. They are computed again from a trace of
//! each program's references, by the method of `vellum trace`, to test that method against the formulas.

use super::Run;
use crate::model::Turner;
use crate::model::published::{DELAY, Synthetic};
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use serde_json::json;
use vellum_workset::{Criterion, Intervals, SAMPLE_PAGES, Ticks};

const REFERENCES: u64 = 80_000_000;
/// Windows are compared with the formulas up to the string's length divided by this. A string begins with
/// empty windows, unlike the stationary program of the formulas.
const PART_JUDGED: u64 = 40;
/// Windows of the table, in the paper's steps.
const SHOWN: [usize; 7] = [1, 3, 6, 12, 20, 26, 40];
/// Largest product drawn, in pages: products are unbounded towards the smallest windows.
const PAGES_DRAWN: f64 = 100.0;
/// Bound of the error of the pass, in percent of z.
const ACCURACY: f64 = 2.0;
const MILLION: f64 = 1e6;

pub(super) fn run(run: &mut Run<'_>) -> Finding {
    let references = run.scale.pick(REFERENCES, REFERENCES / 4, REFERENCES / 40);
    let mut table = Table::new(
        "By Turner's formulas, and z from a reference string",
        &[
            ("program", "program"),
            ("window_mega_instructions", "window,|10^6"),
            ("pages", "z,|pages"),
            ("pages_of_string", "z of a|string"),
            ("faults_per_mega_instruction", "faults in|10^6"),
            ("x_pages", "X,|pages"),
            ("y_pages", "Y,|pages"),
        ],
    );
    let (mut goals, mut figures, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, synthetic) in Synthetic::ALL.into_iter().enumerate() {
        run.tell(at, Synthetic::ALL.len(), synthetic.name());
        let fit = synthetic.fitted();
        let truth = &fit.windows;
        let mut intervals = Intervals::new(SAMPLE_PAGES, Ticks(0));
        let string = fit.program.references(run.seed).take(references as usize);
        string.zip(0..).for_each(|(page, now)| intervals.reference(page, Ticks(now)));
        let curve = intervals.curve(Ticks(references)).expect("time has passed");
        let judged = |turner: &&Turner| turner.window().0 <= references / PART_JUDGED;
        let seen = |turner: &Turner| {
            let point = Some(turner).filter(judged).and_then(|turner| curve.at(turner.window().as_f64()));
            point.map(|point| point.pages)
        };
        for step in SHOWN {
            let turner = &truth[step - 1];
            let product = |criterion: Criterion| criterion.product(turner.pages(), turner.faults(), DELAY);
            table.rows.push(vec![
                Value::text(synthetic.name()),
                Value::Number(turner.window().as_f64() / MILLION),
                Value::Number(turner.pages()),
                Value::of(seen(turner)),
                Value::Number(turner.faults() * MILLION),
                Value::Number(product(Criterion::ProcessorEfficiency)),
                Value::Number(product(Criterion::Lifetime)),
            ]);
        }
        let off = |turner: &Turner| seen(turner).map(|pages| (pages / turner.pages() - 1.0).abs() * 100.0);
        let worst = truth.iter().filter_map(off).reduce(f64::max);
        goals.push(Goal::of(
            format!("{}: z of a string off the truth, worst window", synthetic.name()),
            " %",
            Bound::AtMost(ACCURACY),
            worst,
        ));
        figures.push(figure(synthetic, truth));
        runs.push(json!({
            "cell": synthetic.name(), "seed": run.seed, "references": references,
            "tails": fit.program.tails(), "z_worst_percent": worst,
        }));
    }
    Finding {
        tables: vec![table],
        goals,
        figures,
        runs,
        ..Finding::new(
            "curves",
            "The curves of the synthetic programs",
            "Nishigaki, Figure 2",
            "X of S2 falls and that of S3 rises from the smallest windows on; S1's has its minimum in between.",
            vec![format!(
                "{} million references of each program, seed {}; windows up to a {PART_JUDGED}th of the string are held against the truth, since \
             a string begins with nothing in its windows; S = {DELAY} instructions; grey points are the published optima",
                references / 1_000_000,
                run.seed
            )],
        )
    }
}

fn figure(synthetic: Synthetic, truth: &[Turner]) -> Figure {
    let over = |of: &dyn Fn(&Turner) -> f64| {
        let points = truth.iter().map(|turner| (turner.window().as_f64() / MILLION, of(turner)));
        points.filter(|(_, pages)| *pages <= PAGES_DRAWN).collect::<Vec<_>>()
    };
    let product = |criterion: Criterion| {
        over(&|turner: &Turner| criterion.product(turner.pages(), turner.faults(), DELAY))
    };
    let optimum = |criterion: Criterion| {
        let optimum = synthetic.optimal(criterion);
        (optimum.window.as_f64() / MILLION, optimum.product)
    };
    let (pe, lt) = (Criterion::ProcessorEfficiency, Criterion::Lifetime);
    Figure {
        name: format!("nishigaki-figure2-{}", synthetic.name().to_lowercase()),
        title: format!("Figure 2: {}", synthetic.name()),
        x: Axis::Linear("window (10^6 instructions)".to_owned()),
        y: Axis::Linear("pages".to_owned()),
        series: vec![
            Series::line("z, working set", over(&Turner::pages)),
            Series::line("X, space-time in all", product(pe)),
            Series::line("Y, while waiting", product(lt)),
            Series::published("published least X", vec![optimum(pe)]),
            Series::published("published least Y", vec![optimum(lt)]),
        ],
    }
}
