//! Nishigaki 1981, Figures 4 and 5: the work that a machine gains when each job has its own window.
//!
//! Six jobs each run a list of programs, one after the other. One runs the King Size Program, which walks
//! over more pages than there are frames, so that more frames do not help it. The other five run programs
//! like the paper's B1 to B4. Memory is short with 2 MB but not with 3 MB.
//!
//! Three ways to choose the pages that stay in memory are compared:
//! - one window for all jobs, adjusted to the paging load, as in the paper;
//! - the replacement of a kernel, which does not distinguish jobs;
//! - one window for each job, at the knee of its PE or LT curve.
//!
//! The paper evicts pages outside a window at once. Vellum's variants evict them when a frame is needed, or
//! at once while frames are short. A window then only decides whose pages are evicted first.

use super::Run;
use super::machine::{Arm, MEMORIES, WAYS, Way, arms, as_json, gain};
use crate::finding::table_by;
use crate::model::Estimation;
use crate::model::sim::{Eviction, Report};
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use vellum_workset::Criterion;

/// Instructions counted: some ten minutes of a machine of the paper's time.
const LENGTH: u64 = 1_000_000_000;
/// Goals for a window for each job, in percent of service: the gain where memory is short, and the loss
/// allowed where it is not.
const GAIN_MIN: f64 = 20.0;
const LOSS_MAX: f64 = -1.0;
/// Margin of a simulated machine over the bound: jobs may be handling a fault at the end.
const BOUND_MARGIN: f64 = 1.0;

pub(super) fn run(run: &mut Run<'_>) -> Finding {
    let length = run.scale.pick(LENGTH, LENGTH, LENGTH / 20);
    let (mut tables, mut goals, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = Vec::new();
    for (at, (memory, frames)) in MEMORIES.into_iter().enumerate() {
        let arms = arms(run, &WAYS, frames, length, (at * WAYS.len(), MEMORIES.len() * WAYS.len()));
        tables.push(figure_4(memory, frames, &arms, run.seed));
        tables.push(figure_5(memory, &arms));
        goals.extend(goals_of(memory, at == 0, &arms, run.seed));
        let seeds = run.seeds();
        runs.extend(arms.iter().flat_map(|arm| as_json(memory, arm, &seeds)));
        all.push(arms);
    }
    let above = |report: &Report| (report.cpu - report.bound()) * 100.0;
    let above = all.iter().flatten().flat_map(|arm| arm.reports.iter().map(above)).reduce(f64::max);
    goals.push(Goal::of(
        "CPU use above the bound of equation 2.7, the most of all runs",
        " points",
        Bound::AtMost(BOUND_MARGIN),
        above,
    ));
    Finding {
        tables,
        goals,
        figures: figures(&all),
        runs,
        ..Finding::new(
            "throughput",
            "Throughput with a window for each job",
            "Nishigaki, Figures 4 and 5 and equation 2.7",
            "One window a job gave 12.2 to 19.1 % more service than one adaptive window for all under 2 MB, and 0.9 to 1.0 % \
                    more under 3 MB; PE slightly more than LT. More jobs were in memory and ready, since the King Size Program had \
                    far fewer pages. (The bars of the figures are lost to us.)",
            notes(run, length),
        )
    }
}

fn figure_4(memory: &str, frames: usize, arms: &[Arm], seed: u64) -> Table {
    let over = |arm: &Arm, peer: Option<Way>| {
        let gain = peer.filter(|peer| *peer != arm.way).and_then(|peer| gain(arms, arm.way, peer, seed));
        gain.map_or(Value::Nothing, Value::PercentRange)
    };
    let peers = "over one window for all|with the same eviction";
    table_by(
        &format!("Figure 4, {memory} ({frames} frames for programs)"),
        arms,
        &[
            ("windows", "windows", &|arm| Value::text(arm.way.words())),
            ("cpu_percent", "CPU,|%", &|arm| Value::Number(arm.mean(|report| report.cpu * 100.0))),
            ("service_units", "service,|units", &|arm| Value::Number(arm.mean(Report::service))),
            ("over_one_percent", peers, &|arm| over(arm, arm.way.peer())),
            ("over_lru_percent", "over LRU|of all jobs", &|arm| over(arm, Some(Way::Lru))),
        ],
    )
}

fn figure_5(memory: &str, arms: &[Arm]) -> Table {
    let mean = |arm: &Arm, of: fn(&Report) -> f64| Value::Number(arm.mean(of));
    table_by(
        &format!("Figure 5, {memory}"),
        arms,
        &[
            ("windows", "windows", &|arm| Value::text(arm.way.words())),
            ("multiprogramming", "jobs in|memory", &|arm| mean(arm, |report| report.multiprogramming)),
            ("ready", "jobs|ready", &|arm| mean(arm, |report| report.ready)),
            ("king_pages", "King's|pages", &|arm| mean(arm, |report| report.jobs[0].pages)),
            ("king_suspended_percent", "King sus-|pended, %", &|arm| {
                mean(arm, |report| report.jobs[0].suspended * 100.0)
            }),
            ("faults_per_mega_instruction", "faults in|10^6", &|arm| {
                mean(arm, |report| 1e6 / report.system_lifetime())
            }),
            ("paging_percent", "paging|device, %", &|arm| mean(arm, |report| report.paging * 100.0)),
            ("bound_percent", "bound of|2.7, %", &|arm| mean(arm, |report| report.bound() * 100.0)),
        ],
    )
}

fn goals_of(memory: &str, squeezed: bool, arms: &[Arm], seed: u64) -> Vec<Goal> {
    let bound = Bound::AtLeast(if squeezed { GAIN_MIN } else { LOSS_MAX });
    let judged = arms.iter().map(|arm| arm.way);
    let judged = judged.filter(|way| matches!(way, Way::Each(_, Estimation::Remembering, _)));
    // If memory is not short, the paper's eviction leaves frames empty, which costs faults under any windows.
    // It is then compared with ways of the same eviction, as in the paper, and Vellum's with both.
    let peers = move |way: Way| [way.peer(), Some(Way::Lru).filter(|_| squeezed || way.is_ours())];
    judged
        .flat_map(|way| peers(way).into_iter().flatten().map(move |peer| (way, peer)))
        .map(|(way, peer)| {
            let what = format!("{memory}: {} over {}", way.words(), peer.words());
            Goal::within(what, " %", bound, gain(arms, way, peer, seed))
        })
        .collect()
}

fn notes(run: &Run<'_>, length: u64) -> Vec<String> {
    vec![
        format!(
            "simulated from {} seeds from {}, {} million instructions each after a warm-up of 100 million; intervals over seeds; all of \
             the machine that the source does not tell is assumed, and the programs are ours",
            run.seeds().len(),
            run.seed,
            length / 1_000_000
        ),
        "windows are estimated by Vellum unless \"(source's)\" says that its estimator did, within a tolerance of ours".to_owned(),
        "at once: pages leave at the first sample point at which they lie outside their window, as in the source. Where memory is not \
         short that leaves frames empty and costs faults that LRU does not have: against LRU it loses some 2 % under 3 MB. When short: the \
         same, but only while fewer than 32 frames are free, as a governor does that takes nothing while all fit; and when needed"
            .to_owned(),
        "a unit of service is 1000 instructions or a file operation".to_owned(),
    ]
}

/// The ways of the paper's figures, each with its eviction there, and LRU.
fn drawn() -> Vec<Way> {
    let each = |criterion| Way::Each(criterion, Estimation::Remembering, Eviction::AtOnce);
    vec![
        Way::One(Eviction::AtOnce),
        Way::Lru,
        each(Criterion::ProcessorEfficiency),
        each(Criterion::Lifetime),
    ]
}

fn figures(all: &[Vec<Arm>]) -> Vec<Figure> {
    let figure = |name: &str, title: &str, y: &str, of: fn(&Report) -> f64| {
        let bars = |arms: &Vec<Arm>| {
            let places = drawn().into_iter().enumerate().filter_map(|(place, way)| {
                let arm = arms.iter().find(|arm| arm.way == way)?;
                Some((place as f64, arm.mean(of)))
            });
            places.collect::<Vec<_>>()
        };
        let names = drawn().into_iter().map(|way| way.words().replace(", at once", "")).collect();
        Figure {
            name: name.into(),
            title: title.to_owned(),
            x: Axis::Names("windows".to_owned(), names),
            y: Axis::Linear(y.to_owned()),
            series: all
                .iter()
                .zip(MEMORIES)
                .map(|(arms, (memory, _))| Series::bars(memory, bars(arms)))
                .collect(),
        }
    };
    vec![
        figure("nishigaki-figure4", "Figure 4: CPU use", "CPU use (%)", |report| report.cpu * 100.0),
        figure("nishigaki-figure4-service", "Figure 4: total service", "service (units)", Report::service),
        figure(
            "nishigaki-figure5-jobs",
            "Figure 5: degree of multiprogramming",
            "jobs in memory",
            |report| report.multiprogramming,
        ),
        figure("nishigaki-figure5-ready", "Figure 5: jobs that are ready", "jobs ready", |report| {
            report.ready
        }),
        figure("nishigaki-figure5-king", "Figure 5: memory of the King Size Program", "pages", |report| {
            report.jobs[0].pages
        }),
    ]
}
