//! Stack distances and working sets computed exactly but slowly, by definition, for tests and short traces.
//!
//! The stack distance of a reference is the number of different pages referenced since the last reference to
//! its page, itself included. An LRU memory of C frames faults exactly if the distance exceeds C. A Fenwick
//! tree over time counts the distances. It has a one at the time of each page's last reference:
//!
//! ```text
//! time     1 2 3 4 5 6
//! page     a b c b a ?          distance of a at 6: ones from 5 on, so 1
//! one          ▪ ▪ ▪            distance of c at 6: ones from 3 on, so 3
//! ```
//!
//! When the tree is full, the ones are moved to its beginning, in order; the tree doubles if it is still
//! more than half full. Memory is proportional to the number of different pages; a reference takes time
//! proportional to the logarithm of this number.

use std::collections::HashMap;

use vellum_workset::Page;

/// The tree's first capacity, in references.
const CAPACITY_FIRST: usize = 1 << 10;

/// Exact stack distances, with the number of references at each.
#[derive(Debug, Clone)]
pub struct StackDistances {
    /// The place of each page's last reference in the tree, from 1.
    last: HashMap<Page, usize>,
    tree: Vec<u32>,
    now: usize,
    /// `counts[d − 1]`: references at distance d.
    counts: Vec<u64>,
    references: u64,
}

impl Default for StackDistances {
    fn default() -> Self {
        Self::new()
    }
}

impl StackDistances {
    /// No references yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            last: HashMap::new(),
            tree: vec![0; CAPACITY_FIRST + 1],
            now: 0,
            counts: Vec::new(),
            references: 0,
        }
    }

    /// The stack distance of the next reference, from 1; `None` for the first to a page.
    pub fn reference(&mut self, page: Page) -> Option<usize> {
        if self.now + 1 == self.tree.len() {
            self.compact();
        }
        self.references += 1;
        self.now += 1;
        let distance = self.last.insert(page, self.now).map(|last| {
            // Pages whose last reference came later, and this page.
            let distance = self.last.len() - self.ones_up_to(last - 1);
            self.add(last, false);
            distance
        });
        self.add(self.now, true);
        if let Some(distance) = distance {
            if self.counts.len() < distance {
                self.counts.resize(distance, 0);
            }
            self.counts[distance - 1] += 1;
        }
        distance
    }

    /// The number of references.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.references
    }

    /// The number of different pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.last.len()
    }

    /// The number of faults of an LRU memory of `frames` frames that is empty at first.
    #[must_use]
    pub fn lru_faults(&self, frames: usize) -> u64 {
        self.references - self.counts.iter().take(frames).sum::<u64>()
    }

    fn compact(&mut self) {
        let mut order: Vec<(usize, Page)> = self.last.iter().map(|(page, at)| (*at, *page)).collect();
        order.sort_unstable();
        let room = (self.tree.len() - 1).max(2 * order.len());
        self.tree = vec![0; room + 1];
        self.now = 0;
        for (_, page) in order {
            self.now += 1;
            self.last.insert(page, self.now);
            self.add(self.now, true);
        }
    }

    fn add(&mut self, mut at: usize, one: bool) {
        while at < self.tree.len() {
            if one {
                self.tree[at] += 1;
            } else {
                self.tree[at] -= 1;
            }
            at += at & at.wrapping_neg();
        }
    }

    fn ones_up_to(&self, mut at: usize) -> usize {
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at] as usize;
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

/// The working set by definition: the number of different pages among the last `window` references, averaged
/// over all moments of the string.
///
/// The second value is the number of faults of the working-set policy at that window, including first
/// references. `(0.0, 0)` for an empty string.
#[must_use]
pub fn exact_working_set(references: &[Page], window: usize) -> (f64, u64) {
    let mut inside: HashMap<Page, u32> = HashMap::new();
    let (mut sum, mut faults) = (0u64, 0);
    for (at, page) in references.iter().enumerate() {
        if window == 0 {
            faults += 1;
            continue;
        }
        // The page is searched among the last `window` references before this one.
        faults += u64::from(!inside.contains_key(page));
        if at >= window {
            let leaving = references[at - window];
            let count = inside.get_mut(&leaving).expect("what leaves was inside");
            *count -= 1;
            if *count == 0 {
                inside.remove(&leaving);
            }
        }
        *inside.entry(*page).or_default() += 1;
        sum += inside.len() as u64;
    }
    (sum as f64 / references.len().max(1) as f64, faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pages(numbers: &[u64]) -> Vec<Page> {
        numbers.iter().map(|n| Page(*n)).collect()
    }

    #[test]
    fn working_sets_by_hand() {
        // a b a a c: windows of 2 hold 1, 2, 2, 1, 2 pages; the faults are the first references to a, b and
        // c.
        assert_eq!(exact_working_set(&pages(&[1, 2, 1, 1, 3]), 2), (8.0 / 5.0, 3));
        assert_eq!(exact_working_set(&pages(&[1, 2, 1, 1, 3]), 1), (1.0, 4));
        assert_eq!(exact_working_set(&[], 3), (0.0, 0));
    }

    proptest! {
        #[test]
        fn an_lru_list_agrees(numbers in prop::collection::vec(0u64..40, 0..4000)) {
            let (mut oracle, mut list) = (StackDistances::new(), Vec::<u64>::new());
            for number in numbers {
                let at = list.iter().position(|n| *n == number);
                prop_assert_eq!(oracle.reference(Page(number)), at.map(|at| at + 1));
                at.map(|at| list.remove(at));
                list.insert(0, number);
            }
        }
    }
}
