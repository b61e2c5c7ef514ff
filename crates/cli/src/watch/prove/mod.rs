//! `vellum watch --prove`: tests the recommendation. It gently squeezes the job's memory and counts the
//! faults.
//!
//! ```text
//! curve ─▶ give ─▶ Squeeze: reclaim down to it ─▶ hold ─▶ faults · S / CPU time = cost seen
//!            ▲                                               │
//!            └──── Search: the next size ◀── cost allowed? ──┘ ─▶ settled: Proof, and the curve corrected
//! ```
//!
//! No limit stays set while the job runs. Memory is reclaimed down to a size again and again, in small
//! steps, and grows back afterwards. A size that costs much more than the agreed slowdown is abandoned at
//! once. At worst, a proof costs the job some seconds of faults.
//!
//! Source: Weiner et al., TMO, 2022, for squeezing until pressure shows. Departure: TMO has no curve. It
//! begins at any size, continues for hours, and neither predicts nor reports the cost of a size.

mod search;
mod squeeze;

use search::Search;
use serde::Serialize;
pub(crate) use squeeze::SqueezeError;
use squeeze::{Counts, Squeeze};
use std::time::{Duration, Instant};
use vellum_reference::{Delay, Target, Watcher};
use vellum_report::units::{bytes, many};

/// The cost agreed to, as for the advice.
const CAP: f64 = 0.02;
/// A size is given up at once beyond this many times that.
const FAR: f64 = 5.0;
/// Faults below this many say nothing yet.
const FAULTS_MIN: u64 = 64;
/// Between two looks at the group.
const TICK: Duration = Duration::from_millis(200);
/// A size is held until the job has used this much CPU time, or this much time has passed.
const HOLD_CLOCK: Duration = Duration::from_secs(1);
const HOLD_MAX: Duration = Duration::from_secs(20);
/// Faults while the size is reached are of the way there.
const SETTLE: Duration = Duration::from_millis(500);
/// The size is reached within this, and its way to it takes no longer.
const NEAR: f64 = 1.02;
const REACH_MAX: Duration = Duration::from_secs(30);
/// A job that runs less than this is judged by this part of the wall time.
const RATE_MIN: f64 = 0.05;
/// The part of what is held that one step takes.
const STEP_PART: u64 = 32;
/// A prediction that is off by less than this factor, or this part of time, agrees.
const AGREES: f64 = 2.0;
const AGREES_PART: f64 = 0.01;

/// What one size cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Held {
    pub(super) bytes: u64,
    /// What the curve said, and what was seen, as parts of the job's time.
    pub(super) predicted: f64,
    pub(super) seen: f64,
    /// Faults that had to read.
    pub(super) faults: u64,
    /// Pages that came back soon after they had been taken out.
    pub(super) refaults: u64,
    /// The part of the time that tasks of the group stalled on memory, where the kernel says so.
    pub(super) stalled: Option<f64>,
    /// Whether it was given up before its time.
    pub(super) cut: bool,
}

/// The end of a proof.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Proof {
    /// The smallest size that was seen to cost no more than agreed to; `None` if none did.
    pub(super) settled: Option<Held>,
    /// Whether the advice cost what it was said to.
    pub(super) agrees: bool,
    /// What the curve was corrected by.
    pub(super) correction: f64,
    pub(super) held: Vec<Held>,
    /// Why it ended before it had settled.
    pub(super) ended: Option<String>,
}

/// Where it stands.
enum Phase {
    /// Memory is taken until the group holds no more than the size.
    Reach { since: Instant, near: Option<Instant> },
    /// The faults since then are counted.
    Hold { since: Instant, clock: Duration, counts: Counts },
}

/// A proof under way.
pub(super) struct Prover {
    squeeze: Squeeze,
    /// What the advice covers and the group is not charged: libraries that others have loaded, say.
    elsewhere: u64,
    search: Search,
    phase: Phase,
    held: Vec<Held>,
}

impl Prover {
    /// A proof of the advice that the watch gives now.
    pub(super) fn begin(target: &Target, watcher: &Watcher, delay: &Delay) -> Result<Prover, SqueezeError> {
        let squeeze = Squeeze::of(target, watcher)?;
        let usage = squeeze.counts()?.usage;
        let elsewhere = watcher.all(delay).map_or(0, |all| all.saturating_sub(usage));
        let give = watcher.verdict(delay).map_or(usage, |verdict| verdict.give.bytes);
        let give = give.saturating_sub(elsewhere).min(usage);
        let phase = Phase::Reach { since: Instant::now(), near: None };
        Ok(Prover { squeeze, elsewhere, search: Search::new(give, usage, CAP), phase, held: Vec::new() })
    }

    /// Does what is due. The proof, once it is over; else how long nothing needs to be done.
    pub(super) fn step(
        &mut self,
        watcher: &mut Watcher,
        delay: &Delay,
    ) -> Result<Result<Proof, Duration>, SqueezeError> {
        let (now, size) = (Instant::now(), self.search.size());
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
                // Nothing is said by the first moments.
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

    /// Ends it as it stands.
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
        // A first size that cost too much refutes the advice, whatever comes after.
        let agrees =
            held.first().is_some_and(|first| agrees(first) || (first.seen <= CAP && first.predicted <= CAP));
        if let (false, Some(settled)) = (agrees, &settled) {
            correct(watcher, delay, settled.bytes + self.elsewhere);
        }
        Proof { settled, agrees, correction: watcher.correction(), held, ended }
    }
}

/// Whether what is watched can be squeezed.
pub(super) fn check(target: &Target, watcher: &Watcher) -> Result<(), SqueezeError> {
    Squeeze::of(target, watcher)?.counts().map(|_| ())
}

/// A proof that never began.
pub(super) fn none(why: &str) -> Proof {
    Proof { settled: None, agrees: false, correction: 1.0, held: Vec::new(), ended: Some(why.to_owned()) }
}

/// Scales what the curve asks for so that its advice is the size that was proved.
fn correct(watcher: &mut Watcher, delay: &Delay, settled: u64) {
    let (mut low, mut high): (f64, f64) = (0.25, 4.0);
    // The cost of a size rises with the scale: its own is where it comes to the cap.
    for _ in 0..20 {
        let middle = (low * high).sqrt();
        watcher.correct(middle);
        let cost = watcher.cost_of(settled, delay).map_or(0.0, |limit| limit.slowdown);
        if cost <= CAP { low = middle } else { high = middle }
    }
    watcher.correct(low);
}

/// The proof in words, by labels.
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
