//! The containers of a fleet, and the CPU time that each would lose with each memory size, over all hours.
//!
//! A container's loss at a size is the sum over its hours. Only this sum is stored, for each size of a grid,
//! so this program's memory grows with the number of containers, not of hours. Each hour has a smallest
//! measured working set, below which the loss is unknown. A container's sizes begin at the largest of its
//! hours' smallest working sets.

use super::file::{POINTS, Row};
use super::{MOST, size, step_up};
use std::collections::HashMap;

/// The maximum number of containers, and the maximum length of the history in hours.
const CONTAINERS_MAX: usize = 10_000_000;
const HOURS_MAX: i64 = 24 * 366 * 10;
const HOUR_MS: i64 = 3_600_000;

/// A container, with the sum of its hours.
#[derive(Debug, Clone, Default)]
pub struct Container {
    /// The owner, as an index into [`Fleet::owners`].
    pub owner: u32,
    /// The number of its hours.
    pub hours: u32,
    /// Its user CPU time, in seconds.
    pub cpu_seconds: f64,
    /// The maximum of its resident memory, in bytes.
    pub resident_bytes: f64,
    /// The smallest step at which the loss in each hour can be computed.
    pub first: i32,
    /// CPU seconds lost at the steps from `first` on; no loss after the last one.
    pub lost: Vec<f64>,
    /// The hour since 1970 of the first bit of `seen`, a multiple of 64. `seen` has a bit per hour.
    since: i64,
    seen: Vec<u64>,
}

impl Container {
    /// The bytes of a size: `lost[n]` is the loss with `size(n)`. The last size has no loss.
    #[must_use]
    pub fn size(&self, number: usize) -> f64 {
        size(self.first + number as i32)
    }

    /// The number of sizes.
    #[must_use]
    pub fn sizes(&self) -> usize {
        self.lost.len() + 1
    }

    /// The loss with that size.
    #[must_use]
    pub fn lost(&self, number: usize) -> f64 {
        self.lost.get(number).copied().unwrap_or(0.0)
    }

    /// True if it ran in that hour, counted from 1970.
    #[must_use]
    pub fn ran(&self, hour: i64) -> bool {
        let at = hour - self.since;
        at >= 0 && self.seen.get((at / 64) as usize).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }

    /// The hours in which it ran.
    pub fn ran_in(&self) -> impl Iterator<Item = i64> + '_ {
        let of = |(word, bits): (usize, &u64)| {
            let (from, bits) = (self.since + 64 * word as i64, *bits);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| from + bit)
        };
        self.seen.iter().enumerate().flat_map(of)
    }

    /// Marks an hour; returns whether it is new.
    fn mark(&mut self, hour: i64) -> bool {
        let from = hour.div_euclid(64) * 64;
        if self.seen.is_empty() {
            self.since = from;
        }
        if from < self.since {
            let more = ((self.since - from) / 64) as usize;
            self.seen.splice(0..0, std::iter::repeat_n(0, more));
            self.since = from;
        }
        let at = ((from - self.since) / 64) as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, 0);
        }
        let bit = 1 << (hour - from);
        let is_new = self.seen[at] & bit == 0;
        self.seen[at] |= bit;
        is_new
    }

    /// Adds an hour's curve; working sets and faults are in order.
    fn add(&mut self, curve: &[[f64; 3]], cpu_seconds: f64, delay: f64) {
        let (least, most) = (step_up(curve[0][1]), step_up(curve[curve.len() - 1][1]));
        if self.hours == 0 {
            self.first = least;
        } else if least > self.first {
            let gone = ((least - self.first) as usize).min(self.lost.len());
            self.lost.drain(..gone);
            self.first = least;
        }
        // At the last step, the container has all memory that it ever used.
        let count = usize::try_from(most - self.first).unwrap_or(0);
        if self.lost.len() < count {
            self.lost.resize(count, 0.0);
        }
        let faults = falling_faults(curve);
        let floor = faults[curve.len() - 1];
        let mut segment = 0;
        for number in 0..count {
            let bytes = size(self.first + number as i32);
            while segment + 2 < curve.len() && curve[segment + 1][1] < bytes {
                segment += 1;
            }
            let rate = match curve.get(segment + 1) {
                None => floor,
                Some(above) => {
                    let below = curve[segment];
                    let rise = above[1] - below[1];
                    let part = if rise > 0.0 { ((bytes - below[1]) / rise).clamp(0.0, 1.0) } else { 1.0 };
                    faults[segment] + part * (faults[segment + 1] - faults[segment])
                }
            };
            self.lost[number] += delay * (rate - floor).max(0.0) * cpu_seconds;
        }
    }
}

/// Counts of the rows that were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Valid rows.
    pub rows: u64,
    /// Rows without a curve, with invalid numbers, or with an hour that was already read.
    pub left_out: u64,
    /// The first hour and the last, from 1970.
    pub hours: Option<(i64, i64)>,
}

/// All containers of a fleet.
#[derive(Debug)]
pub struct Fleet {
    /// The containers.
    pub containers: Vec<Container>,
    /// The owners' names.
    pub owners: Vec<String>,
    /// Counts of the rows that were read.
    pub seen: Seen,
    delay: f64,
    owned: HashMap<String, u32>,
    /// The index of a container, by node and name.
    known: HashMap<String, HashMap<String, u32>>,
}

impl Fleet {
    /// A fleet without containers, in which a page fault costs `delay` seconds.
    #[must_use]
    pub fn new(delay: f64) -> Fleet {
        Fleet {
            containers: Vec::new(),
            owners: Vec::new(),
            seen: Seen::default(),
            delay,
            owned: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// Adds an hour of a container.
    pub fn add(&mut self, row: &Row) {
        if !self.takes(row) {
            self.seen.left_out += 1;
        }
    }

    fn takes(&mut self, row: &Row) -> bool {
        let hour = row.hour_ms.div_euclid(HOUR_MS);
        let (from, to) = self.seen.hours.unwrap_or((hour, hour));
        let (from, to) = (from.min(hour), to.max(hour));
        if !makes_sense(row) || to - from > HOURS_MAX {
            return false;
        }
        let Some(number) = self.number(row) else { return false };
        let container = &mut self.containers[number as usize];
        if !container.mark(hour) {
            return false;
        }
        container.add(&row.curve, row.cpu_seconds, self.delay);
        container.hours += 1;
        container.cpu_seconds += row.cpu_seconds;
        container.resident_bytes = container.resident_bytes.max(row.resident_bytes);
        self.seen.rows += 1;
        self.seen.hours = Some((from, to));
        true
    }

    fn number(&mut self, row: &Row) -> Option<u32> {
        if let Some(number) = self.known.get(&row.node).and_then(|node| node.get(&row.name)) {
            return Some(*number);
        }
        if self.containers.len() >= CONTAINERS_MAX {
            return None;
        }
        let next = self.owners.len() as u32;
        let owner = *self.owned.entry(row.owner.clone()).or_insert(next);
        if owner == next {
            self.owners.push(row.owner.clone());
        }
        let number = self.containers.len() as u32;
        self.containers.push(Container { owner, ..Container::default() });
        self.known.entry(row.node.clone()).or_default().insert(row.name.clone(), number);
        Some(number)
    }

    /// The user CPU time of all containers, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        self.containers.iter().map(|container| container.cpu_seconds).sum()
    }
}

/// The faults at each point, levelled where noise makes them rise. Values between points are interpolated
/// linearly.
fn falling_faults(curve: &[[f64; 3]]) -> [f64; POINTS] {
    let mut faults = [0.0; POINTS];
    faults.iter_mut().zip(curve).for_each(|(faults, point)| *faults = point[2]);
    let there = &mut faults[..curve.len()];
    if there.windows(2).any(|two| two[0] < two[1]) {
        let widths: Vec<f64> =
            std::iter::once(curve[0][0]).chain(curve.windows(2).map(|two| two[1][0] - two[0][0])).collect();
        let level = vellum_workset::falling(there, &widths);
        there.copy_from_slice(&level);
    }
    faults
}

/// True if a row has a curve that rises, faults that fall, and numbers in range.
fn makes_sense(row: &Row) -> bool {
    let counts = |value: f64| (0.0..=MOST).contains(&value);
    let rises = row.curve.windows(2).all(|two| two[0][1] <= two[1][1] && two[0][0] < two[1][0]);
    (1..=POINTS).contains(&row.curve.len())
        && rises
        && counts(row.cpu_seconds)
        && counts(row.resident_bytes)
        && row.curve.iter().flatten().all(|value| counts(*value))
}
