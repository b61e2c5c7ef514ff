//! Computes how many nodes of a given size can hold all containers, in the hour that needs most memory.
//!
//! Containers are placed by size, the largest first, into the first node with room. This needs at most
//! 11/9 of the minimum number of nodes, plus one. Only memory counts, not CPU or other demands on nodes.
//!
//! Source: Johnson, "Near-optimal bin packing algorithms" (1973), first fit decreasing.

use super::choose::Choice;
use super::fleet::Fleet;
use std::collections::BTreeMap;

/// Nodes of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes {
    /// The number of nodes that hold all containers.
    pub count: u64,
    /// A lower bound on the number of nodes.
    pub least: u64,
    /// The number of containers that are larger than a node.
    pub too_large: u64,
}

/// The hour since 1970 in which the chosen sizes have the largest sum, and that sum in bytes.
#[must_use]
pub fn peak(fleet: &Fleet, choice: &Choice) -> Option<(i64, f64)> {
    let mut hours = BTreeMap::<i64, f64>::new();
    for (container, size) in fleet.containers.iter().zip(&choice.sizes) {
        let bytes = container.size(*size as usize);
        container.ran_in().for_each(|hour| *hours.entry(hour).or_default() += bytes);
    }
    hours.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The nodes of `room` bytes that are needed in this hour.
#[must_use]
pub fn nodes(fleet: &Fleet, choice: &Choice, hour: i64, room: f64) -> Nodes {
    let there = fleet.containers.iter().zip(&choice.sizes).filter(|(container, _)| container.ran(hour));
    let mut sizes: Vec<f64> = there.map(|(container, size)| container.size(*size as usize)).collect();
    let too_large = sizes.iter().filter(|size| **size > room).count() as u64;
    sizes.retain(|size| *size <= room);
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = (sizes.iter().sum::<f64>() / room).ceil() as u64;
    let mut first = FirstFit::new(sizes.len(), room);
    sizes.iter().for_each(|size| first.put(*size));
    Nodes { count: first.used as u64, least, too_large }
}

/// The room left in each node, and the maximum in each half, quarter and so on of the nodes. A descent from
/// the top finds the first node that fits.
struct FirstFit {
    leaves: usize,
    left: Vec<f64>,
    used: usize,
}

impl FirstFit {
    fn new(nodes: usize, room: f64) -> FirstFit {
        let leaves = nodes.next_power_of_two();
        FirstFit { leaves, left: vec![room; 2 * leaves], used: 0 }
    }

    fn put(&mut self, size: f64) {
        let mut at = 1;
        while at < self.leaves {
            at = if self.left[2 * at] >= size { 2 * at } else { 2 * at + 1 };
        }
        self.used = self.used.max(at - self.leaves + 1);
        self.left[at] -= size;
        while at > 1 {
            at /= 2;
            self.left[at] = self.left[2 * at].max(self.left[2 * at + 1]);
        }
    }
}
