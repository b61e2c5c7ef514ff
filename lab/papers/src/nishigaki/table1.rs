//! Nishigaki 1981, Table 1: the programs S1, S2 and S3 with windows chosen by an estimator, compared with
//! their optimum and the published results.
//!
//! The paper's estimator runs with the paper's parameters. Vellum's samples at a finer interval Δ, of which
//! the optimal windows of S3 are multiples. For both criteria, the error of a product is given as a fraction
//! of the program's least X.

use super::Run;
use crate::model::Estimation;
use crate::model::published::{DELAY, DELTA, Synthetic, TOLERANCE};
use crate::model::table1::{Cell, DELTA_FINE, GOAL, LENGTH, cell};
use crate::{Bound, Finding, Goal, Table, Value};
use serde_json::json;
use vellum_workset::{Criterion, Ticks};

const CRITERIA: [Criterion; 2] = [Criterion::ProcessorEfficiency, Criterion::Lifetime];
const BY: [(Estimation, &str); 3] = [
    (Estimation::SOURCE, "here: source's estimator"),
    (Estimation::Source { tolerance: 0 }, "here: the same, no tolerance"),
    (Estimation::Remembering, "here: Vellum's estimator"),
];
/// Bound of the distance between the paper's estimator here and the paper's measurement, in parts of the
/// least X.
const GOAL_PUBLISHED: f64 = 0.1;
const MILLION: f64 = 1e6;
const PERCENT: f64 = 100.0;

pub(super) fn run(run: &mut Run<'_>) -> Finding {
    let seeds = run.seeds();
    let length = Ticks(run.scale.pick(LENGTH.0, LENGTH.0 / 4, LENGTH.0 / 20));
    let mut table = Table::new(
        "Products and how far they are off the optimum, in parts of the program's least X",
        &[
            ("program", "program"),
            ("criterion", "criterion"),
            ("what", ""),
            ("window_mega_instructions", "window,|10^6"),
            ("pages", "working|set, pages"),
            ("product_pages", "product,|pages"),
            ("off_percent", "off, %|of X"),
            ("off_worst_percent", "worst|seed"),
            ("reviews_percent", "looked at|curve, %"),
        ],
    );
    let (mut goals, mut runs, mut missed) = (Vec::new(), Vec::new(), 0);
    let rows = 2 + 1 + BY.len();
    let total = Synthetic::ALL.len() * CRITERIA.len() * BY.len();
    for synthetic in Synthetic::ALL {
        run.tell(table.rows.len() / rows * BY.len(), total, synthetic.name());
        let fit = synthetic.fitted();
        for criterion in CRITERIA {
            let place = || [Value::text(synthetic.name()), Value::text(criterion.short())];
            let row = |what: &str, figures: [Value; 6]| {
                place().into_iter().chain([Value::text(what)]).chain(figures).collect::<Vec<_>>()
            };
            let (optimal, measured) = (synthetic.optimal(criterion), synthetic.measured(criterion));
            let least_x = synthetic.optimal(Criterion::ProcessorEfficiency).product;
            let (blank, number) = (|| Value::Nothing, Value::Number);
            table.rows.push(row(
                "published: optimal",
                [
                    number(optimal.window.as_f64() / MILLION),
                    number(optimal.pages),
                    number(optimal.product),
                    blank(),
                    blank(),
                    blank(),
                ],
            ));
            table.rows.push(row(
                "published: measured",
                [
                    number(measured.window / MILLION),
                    number(measured.pages),
                    number(measured.product),
                    Value::Percent((measured.product - optimal.product) / least_x * PERCENT),
                    blank(),
                    blank(),
                ],
            ));
            for (at, (by, words)) in BY.into_iter().enumerate() {
                run.tell(
                    table.rows.len() / rows * BY.len() + at,
                    total,
                    &format!("{} by {words}", synthetic.name()),
                );
                let cells: Vec<Cell> =
                    seeds.iter().map(|seed| cell(synthetic, &fit, criterion, by, length, *seed)).collect();
                let mean = |of: fn(&Cell) -> f64| cells.iter().map(of).sum::<f64>() / cells.len() as f64;
                if at == 0 {
                    let optimum = cells[0].optimum;
                    table.rows.push(row(
                        "here: optimal (Turner)",
                        [
                            number(optimum.window.as_f64() / MILLION),
                            number(optimum.pages),
                            number(optimum.product),
                            blank(),
                            blank(),
                            blank(),
                        ],
                    ));
                }
                let worst = cells.iter().map(|cell| cell.off).max_by(|a, b| a.abs().total_cmp(&b.abs()));
                let worst = worst.unwrap_or(f64::NAN);
                table.rows.push(row(
                    words,
                    [
                        number(mean(|cell| cell.outcome.window) / MILLION),
                        number(mean(|cell| cell.outcome.sampled)),
                        number(mean(|cell| cell.product)),
                        Value::Percent(mean(|cell| cell.off) * PERCENT),
                        Value::Percent(worst * PERCENT),
                        number(mean(|cell| cell.reviews.0 as f64 / cell.reviews.1 as f64) * PERCENT),
                    ],
                ));
                match by {
                    Estimation::Source { tolerance: 0 } => missed += usize::from(worst.abs() > GOAL),
                    Estimation::Source { .. } => {
                        let off = mean(|cell| cell.product) - measured.product;
                        goals.push(Goal::of(
                            format!(
                                "{} {}: source's estimator, off the measured",
                                synthetic.name(),
                                criterion.short()
                            ),
                            " % of X",
                            Bound::AtMost(GOAL_PUBLISHED * PERCENT),
                            Some(off.abs() / least_x * PERCENT),
                        ));
                    }
                    Estimation::Remembering => goals.push(Goal::of(
                        format!("{} {}: off the optimum, worst seed", synthetic.name(), criterion.short()),
                        " % of X",
                        Bound::AtMost(GOAL * PERCENT),
                        Some(worst.abs() * PERCENT),
                    )),
                }
                runs.extend(cells.iter().zip(&seeds).map(|(cell, seed)| as_json(cell, words, *seed)));
            }
        }
    }
    let notes = vec![
        format!(
            "{} seeds from {}, {} million instructions each; S = {DELAY} instructions; sampled every {} (source's estimator) and {} \
             (Vellum's) instructions",
            seeds.len(),
            seeds[0],
            length.0 / 1_000_000,
            DELTA.0,
            DELTA_FINE.0
        ),
        format!(
            "the source's estimator takes a window within {TOLERANCE} pages of the least product for optimal; without that it is off by more than {} % of X in {missed} of 6 cells: its memory is some three intervals long, \
             in which a program has a fault or none, so that the window that was lucky looks best",
            GOAL * PERCENT
        ),
        "the programs are ours, fitted so that Turner's formulas give the published optimal rows; S3's published row contradicts \
         itself by 0.02 pages, so that its PE cell is 0.1 pages off"
            .to_owned(),
        "an optimum holds its window fixed; an estimator that follows chance can be slightly below it".to_owned(),
    ];
    Finding {
        tables: vec![table],
        goals,
        runs,
        ..Finding::new(
            "table1",
            "Windows found by an estimator, beside the optimal ones",
            "Nishigaki, Table 1",
            "The estimator came within 0.8 to 10.2 % of the least product, but for S3 under LT, where it was 38 % off.",
            notes,
        )
    }
}

fn as_json(cell: &Cell, by: &str, seed: u64) -> serde_json::Value {
    json!({
        "cell": format!("{} {}", cell.synthetic.name(), cell.criterion.short()), "arm": by, "seed": seed,
        "metrics": {
            "window_instructions": cell.outcome.window, "sampled_pages": cell.outcome.sampled,
            "resident_pages": cell.outcome.resident, "faults_per_instruction": cell.outcome.faults,
            "product_pages": cell.product, "off_of_x": cell.off,
            "reviews": cell.reviews.0, "samples": cell.reviews.1,
        },
    })
}
