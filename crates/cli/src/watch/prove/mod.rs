//! `vellum watch --prove` tests the recommended memory: reclaims memory beyond it in steps, counts faults.
//!
//! ```text
//! curve ─▶ size ─▶ Squeeze: reclaim down to it ─▶ hold ─▶ faults · S / CPU time = cost
//!            ▲                                               │
//!            └──── Search: the next size ◀── not yet found ──┘ ─▶ found: Proof, and the curve corrected
//! ```
//!
//! The working-set curve gives the first size; S is the cost of a page fault. No limit stays set: memory is
//! reclaimed down to a size again and again, and grows back afterwards. A size that costs several times the
//! accepted slowdown is abandoned early. At worst, a proof costs the job some seconds of faults.
//!
//! Source: Weiner et al. 2022, "TMO: Transparent Memory Offloading in Datacenters", reclaims until pressure
//! shows. Departure: TMO has no curve, so it begins at any size, runs for hours, and does not predict costs.

mod search;
mod squeeze;

use crate::failure::Failure;
use search::Search;
use serde::Serialize;
use squeeze::{Counts, Squeeze};
use std::time::{Duration, Instant};
use vellum_reference::{Delay, Target, Watcher};
use vellum_report::units::{bytes, many};

/// The accepted cost, the same as for the recommendation.
const CAP: f64 = 0.02;
/// A size that costs this many times as much is abandoned at once.
const FAR: f64 = 5.0;
/// The fewest faults for an early decision.
const FAULTS_MIN: u64 = 64;
/// The time between two readings of the group.
const TICK: Duration = Duration::from_millis(200);
/// A size is held until the job has used this much CPU time, or this much time has passed.
const HOLD_CLOCK: Duration = Duration::from_secs(1);
const HOLD_MAX: Duration = Duration::from_secs(20);
/// The wait before faults are counted, as earlier faults belong to the reduction.
const SETTLE: Duration = Duration::from_millis(500);
/// The size counts as reached within this factor; the reduction may take this long.
const NEAR: f64 = 1.02;
const REACH_MAX: Duration = Duration::from_secs(30);
/// The smallest assumed share of wall time for which a job runs.
const RATE_MIN: f64 = 0.05;
/// The divisor of the held memory that gives the size of a step.
const STEP_PART: u64 = 32;
/// A prediction agrees if it is wrong by less than this factor, or by less than this share of time.
const AGREES: f64 = 2.0;
const AGREES_PART: f64 = 0.01;

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Held {
    pub(super) bytes: u64,
    /// The predicted and the observed cost, as shares of the job's time.
    pub(super) predicted: f64,
    pub(super) seen: f64,
    /// The number of faults that read from a device.
    pub(super) faults: u64,
    /// The number of pages that were read again soon after their eviction.
    pub(super) refaults: u64,
    /// The share of time in which tasks of the group stalled on memory, if the kernel reports it.
    pub(super) stalled: Option<f64>,
    /// True if the size was abandoned early.
    pub(super) cut: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Proof {
    /// The smallest size with an acceptable observed cost; `None` without one.
    pub(super) settled: Option<Held>,
    /// True if the cost of the recommendation was as predicted.
    pub(super) agrees: bool,
    pub(super) correction: f64,
    pub(super) held: Vec<Held>,
    pub(super) ended: Option<String>,
}

enum Phase {
    /// Memory is reclaimed until the group holds at most the size.
    Reach { since: Instant, near: Option<Instant> },
    /// Faults since the size was reached are counted.
    Hold { since: Instant, clock: Duration, counts: Counts },
}

pub(super) struct Prover {
    squeeze: Squeeze,
    /// Memory in the recommendation that is charged to other groups, such as shared libraries.
    elsewhere: u64,
    search: Search,
    phase: Phase,
    held: Vec<Held>,
}

impl Prover {
    /// Begins a proof of the current recommendation.
    pub(super) fn begin(target: &Target, watcher: &Watcher, delay: &Delay) -> Result<Prover, Failure> {
        let squeeze = Squeeze::of(target, watcher)?;
        let usage = squeeze.counts()?.usage;
        let elsewhere = watcher.all(delay).map_or(0, |all| all.saturating_sub(usage));
        let give = watcher.verdict(delay).map_or(usage, |verdict| verdict.give.bytes);
        let give = give.saturating_sub(elsewhere).min(usage);
        let phase = Phase::Reach { since: Instant::now(), near: None };
        Ok(Prover { squeeze, elsewhere, search: Search::new(give, usage, CAP), phase, held: Vec::new() })
    }

    /// Runs the due step. Returns the proof at its end, and otherwise the time until the next step.
    pub(super) fn step(
        &mut self,
        watcher: &mut Watcher,
        delay: &Delay,
    ) -> Result<Result<Proof, Duration>, Failure> {
        let (now, size) = (Instant::now(), self.search.size);
        let counts = self.squeeze.counts()?;
        if counts.usage > size {
            let over = counts.usage - size;
            self.squeeze.take(over.min((counts.usage / STEP_PART).max(1 << 20)))?;
        }
        match &mut self.phase {
            Phase::Reach { since, near } => {
                let is_near = counts.usage as f64 <= size as f64 * NEAR;
                if !is_near && since.elapsed() > REACH_MAX {
                    let why = format!(
                        "it cannot be squeezed to {}: the kernel finds nothing more to take at {} (is there free swap?)",
                        bytes(size),
                        bytes(counts.usage)
                    );
                    return Ok(Ok(self.proof(watcher, delay, Some(why))));
                }
                let near = near.get_or_insert(now);
                if !is_near {
                    *near = now;
                } else if near.elapsed() >= SETTLE {
                    self.phase = Phase::Hold { since: now, clock: watcher.clock(), counts };
                }
            }
            Phase::Hold { since, clock, counts: before } => {
                let (wall, ran) = (since.elapsed(), watcher.clock().saturating_sub(*clock));
                let time = ran.as_secs_f64().max(wall.as_secs_f64() * RATE_MIN).max(f64::MIN_POSITIVE);
                let faults = counts.faults.saturating_sub(before.faults);
                let seen = faults as f64 * delay.mean_ns / 1e9 / time;
                let stalled = counts.stalled.zip(before.stalled).map(|(now, before)| {
                    now.saturating_sub(before).as_secs_f64() / wall.as_secs_f64().max(f64::MIN_POSITIVE)
                });
                let over = ran >= HOLD_CLOCK || wall >= HOLD_MAX;
                // The first moments are not conclusive.
                let far = seen > CAP * FAR && faults >= FAULTS_MIN && wall >= TICK * 2;
                if over || far {
                    let predicted = watcher.cost_of(size + self.elsewhere, delay);
                    let predicted = predicted.map_or(0.0, |limit| limit.slowdown);
                    let refaults = counts.refaults.saturating_sub(before.refaults);
                    self.held.push(Held {
                        bytes: size,
                        predicted,
                        seen,
                        faults,
                        refaults,
                        stalled,
                        cut: far && !over,
                    });
                    if self.search.seen(seen) {
                        return Ok(Ok(self.proof(watcher, delay, None)));
                    }
                    self.phase = Phase::Reach { since: now, near: None };
                }
            }
        }
        Ok(Err(TICK))
    }

    pub(super) fn stop(&mut self, watcher: &mut Watcher, delay: &Delay, why: &str) -> Proof {
        self.proof(watcher, delay, Some(why.to_owned()))
    }

    fn proof(&mut self, watcher: &mut Watcher, delay: &Delay, ended: Option<String>) -> Proof {
        let held = std::mem::take(&mut self.held);
        let agrees = |held: &Held| {
            let (most, least) = (held.predicted.max(held.seen), held.predicted.min(held.seen));
            most - least <= AGREES_PART || most <= least * AGREES
        };
        let kept = held.iter().filter(|held| held.seen <= CAP);
        let settled = kept.min_by_key(|held| held.bytes).copied();
        // If the first size, the recommended one, cost too much, the recommendation is refuted.
        let agrees =
            held.first().is_some_and(|first| agrees(first) || (first.seen <= CAP && first.predicted <= CAP));
        if let (false, Some(settled)) = (agrees, &settled) {
            correct(watcher, delay, settled.bytes + self.elsewhere);
        }
        Proof { settled, agrees, correction: watcher.correction(), held, ended }
    }
}

pub(super) fn check(target: &Target, watcher: &Watcher) -> Result<(), Failure> {
    Squeeze::of(target, watcher)?.counts().map(|_| ())
}

/// The result of a proof that never began.
pub(super) fn none(why: &str) -> Proof {
    Proof { settled: None, agrees: false, correction: 1.0, held: Vec::new(), ended: Some(why.to_owned()) }
}

/// Scales the curve so that its recommendation is the proved size.
fn correct(watcher: &mut Watcher, delay: &Delay, settled: u64) {
    let (mut low, mut high): (f64, f64) = (0.25, 4.0);
    // The cost of a size rises with the scale; the search finds the scale at which it equals the cap.
    for _ in 0..20 {
        let middle = (low * high).sqrt();
        watcher.correct(middle);
        let cost = watcher.cost_of(settled, delay).map_or(0.0, |limit| limit.slowdown);
        if cost <= CAP { low = middle } else { high = middle }
    }
    watcher.correct(low);
}

pub(super) fn words(proof: &Proof) -> Vec<(&'static str, String)> {
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let mut lines = Vec::new();
    for held in &proof.held {
        let stalled = held.stalled.map_or(String::new(), |part| format!(", stalled {}", percent(part)));
        let cut = if held.cut { ", given up" } else { "" };
        let faults = many(held.faults, "fault");
        lines.push((
            "held",
            format!(
                "{}: +{} seen ({faults}{stalled}{cut}), +{} predicted",
                bytes(held.bytes),
                percent(held.seen),
                percent(held.predicted)
            ),
        ));
    }
    let mut end = match &proof.settled {
        Some(held) => format!("{} cost {}", bytes(held.bytes), percent(held.seen)),
        None => "no size that was held cost 2 % or less".to_owned(),
    };
    if !proof.held.is_empty() {
        end += match proof.agrees {
            true => "; the prediction holds",
            false => "; the prediction was wrong, and the curve is corrected by",
        };
        if !proof.agrees {
            end += &format!(" {:.2}", proof.correction);
        }
    }
    if let Some(why) = &proof.ended {
        end += &format!("; ended early: {why}");
    }
    lines.push(("proved", end));
    lines
}
