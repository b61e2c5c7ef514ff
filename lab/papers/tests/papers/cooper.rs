//! Runs the experiments of Cooper et al. 1992 in a tiny size, if this machine and the library allow them.
//! No time or goal is checked; experiments that cannot be run must be listed.
//!
//! Swap is never made here, since the whole machine would use it. That part runs with `vellum papers cooper`.

use crate::{library, sound};
use vellum_papers::cooper::{Experiment, Options, Plan, SCHEMA, run};
use vellum_papers::{Common, Finding, Scale};

fn options(plan: Plan, only: &[Experiment]) -> Options {
    let common = Common { seed: Some(7), quick: true, ..Common::default() };
    Options { common, plan, only: only.to_vec(), ..Options::default() }
}

/// Runs experiments and checks the common parts of all findings.
fn found(options: &Options, library: &std::path::Path) -> (Vec<Finding>, serde_json::Value) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut seen = Vec::new();
    let report = run(options, Scale::Tiny, library, &mut |_| {}, |finding| {
        sound::figures(finding, folder.path());
        seen.push(finding.clone());
    });
    let report = report.expect("a temporary folder can be written to");
    let json: serde_json::Value = serde_json::from_str(&report.json()).expect("the report is JSON");
    assert_eq!((json["schema"].as_str(), json["seed"].as_u64()), (Some(SCHEMA), Some(7)));
    (seen, json)
}

#[test]
fn every_plan_draws_the_live_size() {
    for plan in [Plan::MarkSweep, Plan::MostlyCopying, Plan::Appel] {
        let (seen, json) = found(&options(plan, &[Experiment::Live]), &library());
        let missing = json["missing"].as_array().expect("a list");
        if let Some(why) = missing.iter().find(|why| why.as_str().is_some_and(|why| why.contains("the plan")))
        {
            vellum_skip::skip(format_args!("{why}"));
            assert!(seen[0].figures.is_empty(), "a plan that is not here has a plot");
            continue;
        }
        assert_eq!(seen[0].figures.len(), 3, "{:?}", seen[0].notes);
        // A property of the clients under any collector: the live data at the end of Sort exceed the memory.
        let sort = seen[0].tables[0].rows.iter().find(|row| row[0].to_string() == "sort").expect("a row");
        let most: f64 = sort[2].to_string().parse().expect("a number");
        assert!((1.0..1.6).contains(&most), "{most}");
    }
}

#[test]
fn paging_by_vellum_gives_every_figure_of_the_paper() {
    let (seen, json) = found(&options(Plan::Appel, &[Experiment::Pager]), &library());
    let missing = json["missing"].as_array().expect("a list");
    if !missing.is_empty() && seen[0].tables.is_empty() {
        vellum_skip::skip(format_args!("{missing:?}"));
        assert!(seen[0].notes.iter().any(|note| note.contains("not measured")), "{:?}", seen[0].notes);
        return;
    }
    let tables: Vec<&str> = seen[0].tables.iter().map(|table| table.title.as_str()).collect();
    for figure in ["Figure 13: compiler", "Figure 20: sort", "Figure 24: primes"] {
        assert!(tables.iter().any(|title| title.starts_with(figure)), "{figure} is missing: {tables:?}");
    }
    let failed = seen[0].runs.iter().find(|run| !run["failure"].is_null());
    assert!(failed.is_none(), "seed 7: {failed:?}");
}

#[test]
fn without_a_library_all_experiments_are_listed_as_missing() {
    let only = [Experiment::Live, Experiment::Pager];
    let (seen, json) = found(&options(Plan::Appel, &only), std::path::Path::new("/nonexistent/libvellum.so"));
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|finding| finding.runs.is_empty()));
    assert!(json["missing"].as_array().is_some_and(|all| all.len() == 2), "{json}");
}
