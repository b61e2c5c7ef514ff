//! Tests of Nishigaki 1981, Table 1: fitted programs have the published optima, and estimates come close.

use vellum_papers::model::Estimation;
use vellum_papers::model::published::{DELAY, Synthetic, TOLERANCE};
use vellum_papers::model::table1::{Cell, GOAL, cell};
use vellum_workset::{Criterion, Ticks};

const CRITERIA: [Criterion; 2] = [Criterion::ProcessorEfficiency, Criterion::Lifetime];
/// A quarter of the experiment's length: enough for the goal, and short enough for a test.
const LENGTH: Ticks = Ticks(100_000_000);

#[test]
fn the_fitted_programs_have_the_published_optima() {
    for synthetic in Synthetic::ALL {
        let fit = synthetic.fitted();
        for row in &fit.rows {
            let published = synthetic.optimal(row.criterion);
            assert_eq!(row.window, published.window, "{} {row:?}", synthetic.name());
            assert!((row.pages - published.pages).abs() < 0.1, "{row:?} for {published:?}");
            assert!((row.product - published.product).abs() < 0.15, "{row:?} for {published:?}");
            let f = (row.product - if row.criterion == CRITERIA[0] { row.pages } else { 0.0 })
                / row.pages
                / DELAY;
            assert!((0.0..1e-5).contains(&f), "f = {f} is a rate of some faults in a million instructions");
        }
    }
}

#[test]
fn all_six_cells_meet_the_goal() {
    for synthetic in Synthetic::ALL {
        let fit = synthetic.fitted();
        for criterion in CRITERIA {
            for seed in [1, 2] {
                let cell = cell(synthetic, &fit, criterion, Estimation::Remembering, LENGTH, seed);
                assert!(cell.off.abs() <= GOAL, "{} {criterion:?}, seed {seed}: {cell:?}", synthetic.name());
                let (reviews, samples) = cell.reviews;
                assert!(reviews * 20 < samples, "{reviews} reviews at {samples} sample points");
            }
        }
    }
}

#[test]
fn the_papers_controller_chooses_too_small_windows_as_published() {
    // The paper measured 0.82 and 2.74 million instructions, but 1.2 and 4.0 are optimal: its controller uses
    // too short a history.
    let fit = Synthetic::S1.fitted();
    for criterion in CRITERIA {
        let cell = cell(Synthetic::S1, &fit, criterion, Estimation::Source { tolerance: 0 }, LENGTH, 1);
        assert!(cell.outcome.window < cell.optimum.window.as_f64() * 0.8, "{cell:?}");
        assert!(cell.off > GOAL, "{cell:?}");
    }
}

#[test]
fn the_papers_controller_with_its_tolerance_is_near_the_published_rows() {
    // In pages: the errors of working set and product added up, as the mean over all six cells.
    let distance = |tolerance| -> f64 {
        let of = |synthetic: Synthetic, criterion| {
            let (fit, published) = (synthetic.fitted(), synthetic.measured(criterion));
            let by = Estimation::Source { tolerance };
            let cells = [101, 102].map(|seed| cell(synthetic, &fit, criterion, by, LENGTH, seed));
            let mean = |of: fn(&Cell) -> f64| cells.iter().map(of).sum::<f64>() / cells.len() as f64;
            (mean(|cell| cell.outcome.sampled) - published.pages).abs()
                + (mean(|cell| cell.product) - published.product).abs()
        };
        let all = Synthetic::ALL.into_iter().flat_map(|synthetic| CRITERIA.map(|by| of(synthetic, by)));
        all.sum::<f64>() / 6.0
    };
    // On other seeds than those by which the tolerance was found.
    let (with, without) = (distance(TOLERANCE), distance(0));
    assert!(with < 4.0 && with < without / 2.0, "{with} with a tolerance, {without} without");
}
