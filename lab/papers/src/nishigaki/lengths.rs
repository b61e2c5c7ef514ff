//! Nishigaki 1981, open questions of section 5: how long a job must run until its own window pays, and which
//! of the two knee criteria (PE, LT) is better.
//!
//! An estimator learns, and jobs change phase. The squeezed machine therefore runs for four lengths. The two
//! criteria are compared on the same seeds, in both memory sizes and under both evictions.

use super::Run;
use super::machine::{Arm, MEMORIES, Way, arms, as_json, gain};
use crate::model::Estimation;
use crate::model::sim::Eviction;
use crate::{Bound, Finding, Goal, Table, Value};
use vellum_workset::Criterion;

/// Instructions counted after the warm-up.
const LENGTHS: [u64; 4] = [200_000_000, 400_000_000, 1_000_000_000, 4_000_000_000];
/// Goal where memory is short: the gain of a window for each job, at every length, in percent of service.
const GAIN_MIN: f64 = 20.0;
const MILLION: u64 = 1_000_000;

const PE: Criterion = Criterion::ProcessorEfficiency;
const LT: Criterion = Criterion::Lifetime;

fn ways(eviction: Eviction) -> [Way; 4] {
    let each = |criterion| Way::Each(criterion, Estimation::Remembering, eviction);
    [Way::One(eviction), Way::Lru, each(PE), each(LT)]
}

pub(super) fn run(run: &mut Run<'_>) -> Finding {
    let lengths = run.scale.pick(&LENGTHS[..], &LENGTHS[..3], &LENGTHS[..1]);
    let mut gains = Table::new(
        "2 MB: gain of service by length, windows when short",
        &[
            ("mega_instructions", "10^6 in-|structions"),
            ("windows", "windows"),
            ("over_one_percent", "over one window for all"),
            ("over_lru_percent", "over LRU of all jobs"),
        ],
    );
    let mut verdict = Table::new(
        "PE over LT, service on the same seeds",
        &[
            ("memory", "memory"),
            ("eviction", "pages leave"),
            ("mega_instructions", "10^6 in-|structions"),
            ("pe_over_lt_percent", "PE over LT"),
        ],
    );
    let (mut goals, mut runs, mut better, mut most) = (Vec::new(), Vec::new(), [0, 0, 0], 0.0f64);
    let evictions = [(Eviction::WhenShort, "when short"), (Eviction::AtOnce, "at once")];
    let total = lengths.len() * MEMORIES.len() * evictions.len() * 4;
    let mut done = 0;
    for length in lengths {
        for (memory, frames) in MEMORIES {
            for (eviction, words) in evictions {
                let arms: Vec<Arm> = arms(run, &ways(eviction), frames, *length, (done, total));
                done += 4;
                let [one, lru, pe, lt] = ways(eviction);
                if frames == MEMORIES[0].1 && eviction == Eviction::WhenShort {
                    for way in [pe, lt] {
                        let over = |peer| gain(&arms, way, peer, run.seed);
                        let value = |peer| over(peer).map_or(Value::Nothing, Value::PercentRange);
                        gains.rows.push(vec![
                            Value::Count((length / MILLION) as usize),
                            Value::text(way.words()),
                            value(one),
                            value(lru),
                        ]);
                        let least = [over(one), over(lru)].into_iter().flatten();
                        let least = least.min_by(|a, b| a.estimate.total_cmp(&b.estimate));
                        let what =
                            format!("{} million: {} over the better peer", length / MILLION, way.words());
                        goals.push(Goal::within(what, " %", Bound::AtLeast(GAIN_MIN), least));
                    }
                }
                let found = gain(&arms, pe, lt, run.seed);
                most = found.map_or(most, |found| most.max(found.estimate.abs()));
                better[match found {
                    Some(i) if i.low > 0.0 => 0,
                    Some(i) if i.high < 0.0 => 1,
                    _ => 2,
                }] += 1;
                verdict.rows.push(vec![
                    Value::text(memory),
                    Value::text(words),
                    Value::Count((length / MILLION) as usize),
                    found.map_or(Value::Nothing, Value::PercentRange),
                ]);
                let (cell, seeds) = (format!("{memory}, {words}, {} million", length / MILLION), run.seeds());
                runs.extend(arms.iter().flat_map(|arm| as_json(&cell, arm, &seeds)));
            }
        }
    }
    let [pe, lt, same] = better;
    let notes = vec![
        format!("simulated from {} seeds from {}; intervals over seeds", run.seeds().len(), run.seed),
        "in the shortest runs all programs are in their first phases, which are smaller, so that less is to be gained".to_owned(),
        format!(
            "verdict on PE against LT: of {} settings PE gives more service in {pe}, LT in {lt}, and {same} show no difference; they differ \
             by at most {most:.1} %. PE asks for less memory, and is never capped by a fault rate too small to see",
            pe + lt + same
        ),
    ];
    Finding {
        name: "lengths".to_owned(),
        title: "How long until it pays, and PE against LT",
        source: "Nishigaki, section 5",
        published: "Ten minutes were measured. PE gave slightly more than LT; which is better was left open.",
        tables: vec![gains, verdict],
        notes,
        goals,
        figures: Vec::new(),
        runs,
    }
}
