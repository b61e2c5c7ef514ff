//! Chooses the least memory with which all containers together lose at most a given share of CPU time.
//!
//! Each container's loss of CPU time, as a function of its memory size, has a lower convex hull. The
//! greedy choice starts from the smallest sizes. It repeatedly takes the hull segment that avoids most
//! loss per byte-hour (a byte for an hour), until the total loss is within the bound. Apart from the last
//! segment, no other choice of sizes on the hulls needs less memory. Containers then shrink further, also
//! off the hull, until the bound is used up. Taking the last segment only in part gives a lower bound for
//! every choice ([`Choice::least`]).
//!
//! Invariant: the loss is within the bound, or each container has all memory that it ever used.

use super::fleet::{Container, Fleet};
use std::cmp::Ordering;

/// The maximum number of rounds of improvement.
const ROUNDS: usize = 8;
/// In fleets of up to this many containers, the greedy choice may leave much of the bound unused. All choices
/// are then tried, with losses in this many parts of the bound.
const FEW: usize = 32;
const PARTS: usize = 8192;

/// A memory size for each container.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The index of the size, by container.
    pub sizes: Vec<u32>,
    /// CPU seconds lost by all containers.
    pub lost: f64,
    /// Memory times hours, in byte-hours.
    pub byte_hours: f64,
    /// A lower bound on the byte-hours of any choice.
    pub least: f64,
}

fn cost(container: &Container, number: usize) -> f64 {
    container.size(number) * f64::from(container.hours)
}

fn of(fleet: &Fleet, sizes: Vec<u32>) -> Choice {
    let each = || fleet.containers.iter().zip(&sizes);
    let lost = each().map(|(container, size)| container.lost(*size as usize)).sum();
    let byte_hours = each().map(|(container, size)| cost(container, *size as usize)).sum();
    Choice { sizes, lost, byte_hours, least: byte_hours }
}

/// The smallest sizes with which each container alone loses at most this part of its CPU time.
#[must_use]
pub fn each(fleet: &Fleet, part: f64) -> Choice {
    let size = |container: &Container| {
        let bound = part * container.cpu_seconds;
        container.lost.partition_point(|lost| *lost > bound) as u32
    };
    of(fleet, fleet.containers.iter().map(size).collect())
}

/// The choice with the least memory in which all containers together lose at most this part of their CPU
/// time.
#[must_use]
pub fn choose(fleet: &Fleet, part: f64) -> Choice {
    let bound = part * fleet.cpu_seconds();
    let mut segments = Vec::new();
    for (number, container) in fleet.containers.iter().enumerate() {
        let hull = hull(container);
        for two in hull.windows(2) {
            let (from, to) = (two[0] as usize, two[1] as usize);
            let gain =
                (container.lost(from) - container.lost(to)) / (cost(container, to) - cost(container, from));
            segments.push((gain, number as u32, two[1]));
        }
    }
    segments.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let mut sizes = vec![0; fleet.containers.len()];
    let mut lost: f64 = fleet.containers.iter().map(|container| container.lost(0)).sum();
    let mut least: f64 = fleet.containers.iter().map(|container| cost(container, 0)).sum();
    for (_, number, to) in segments {
        if lost <= bound {
            break;
        }
        let container = &fleet.containers[number as usize];
        let (from, to) = (sizes[number as usize] as usize, to as usize);
        if to <= from {
            // On a straight line, rounding may have put a later segment first.
            continue;
        }
        let saved = container.lost(from) - container.lost(to);
        least += (cost(container, to) - cost(container, from)) * ((lost - bound) / saved).min(1.0);
        lost -= saved;
        sizes[number as usize] = to as u32;
    }
    let greedy = improved(fleet, of(fleet, sizes), bound);
    let few = Some(fleet).filter(|fleet| fleet.containers.len() <= FEW && bound > 0.0);
    let exact = few.and_then(|fleet| Some(improved(fleet, of(fleet, of_few(fleet, bound)?), bound)));
    let best = exact.filter(|exact| exact.byte_hours < greedy.byte_hours).unwrap_or(greedy);
    Choice { least, ..best }
}

fn improved(fleet: &Fleet, mut choice: Choice, bound: f64) -> Choice {
    for _ in 0..ROUNDS {
        if !shrink(fleet, &mut choice, bound) {
            break;
        }
    }
    of(fleet, choice.sizes)
}

/// The indices of the sizes on the lower convex hull of loss over cost, from the smallest size to the first
/// one without loss.
fn hull(container: &Container) -> Vec<u32> {
    let mut hull: Vec<u32> = Vec::new();
    let slope = |a: u32, b: u32| {
        let (a, b) = (a as usize, b as usize);
        (container.lost(b) - container.lost(a)) / (container.size(b) - container.size(a))
    };
    for number in 0..container.sizes() as u32 {
        while let [.., a, b] = hull[..] {
            if slope(a, b) < slope(b, number) {
                break;
            }
            hull.pop();
        }
        hull.push(number);
    }
    // Sizes beyond the first one without loss are not needed.
    while let [.., a, b] = hull[..] {
        if container.lost(a as usize) > container.lost(b as usize) {
            break;
        }
        hull.pop();
    }
    hull
}

/// Uses up the rest of the bound: the containers that save most memory shrink until the bound is reached.
/// Returns whether any did.
fn shrink(fleet: &Fleet, choice: &mut Choice, bound: f64) -> bool {
    // Losses rise as sizes fall, so the first size that fits is the best.
    let best = |choice: &Choice, number: usize| {
        let (container, now) = (&fleet.containers[number], choice.sizes[number] as usize);
        let may = container.lost(now) + (bound - choice.lost);
        let to = (0..now).find(|size| container.lost(*size) <= may)?;
        Some((
            cost(container, now) - cost(container, to),
            container.lost(to) - container.lost(now),
            to as u32,
        ))
    };
    let saves = |number| Some((best(choice, number)?.0, number));
    let mut moves: Vec<(f64, usize)> = (0..fleet.containers.len()).filter_map(saves).collect();
    moves.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let mut changed = false;
    for (_, number) in moves {
        if let Some((saved, lost, to)) = best(choice, number) {
            choice.lost += lost;
            choice.byte_hours -= saved;
            choice.sizes[number] = to;
            changed = true;
        }
    }
    changed
}

/// The best choice for a small fleet, with losses rounded up to one of [`PARTS`] parts of the bound. `None`
/// if no choice fits after rounding.
fn of_few(fleet: &Fleet, bound: f64) -> Option<Vec<u32>> {
    let part = bound / PARTS as f64;
    // The least cost of the containers so far with at most this many parts of loss, and the last one's size.
    let mut least = vec![0.0; PARTS + 1];
    let mut taken = Vec::new();
    for container in &fleet.containers {
        let (mut next, mut sizes) = (vec![f64::INFINITY; PARTS + 1], vec![0_u32; PARTS + 1]);
        let mut before = usize::MAX;
        for size in 0..container.sizes() {
            let parts = (container.lost(size) / part).ceil() as usize;
            // A larger size helps only if its loss is smaller.
            if parts > PARTS || parts >= before {
                continue;
            }
            before = parts;
            let cost = cost(container, size);
            for at in parts..=PARTS {
                let sum = least[at - parts] + cost;
                if sum < next[at] {
                    (next[at], sizes[at]) = (sum, size as u32);
                }
            }
        }
        least = next;
        taken.push(sizes);
    }
    if !least[PARTS].is_finite() {
        return None;
    }
    let (mut sizes, mut left) = (vec![0; taken.len()], PARTS);
    for (number, taken) in taken.iter().enumerate().rev() {
        sizes[number] = taken[left];
        left -= (fleet.containers[number].lost(taken[left] as usize) / part).ceil() as usize;
    }
    Some(sizes)
}
