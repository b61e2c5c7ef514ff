//! Sums the counts, bytes and times of items of `vellum cost` (item: the operations of one kind and cause).
//!
//! Each item's mean time is weighted by the item's exact count. Minimum and maximum are over all items.

use vellum_cost::Item;
use vellum_measure::Stat;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Group {
    pub(crate) count: u64,
    /// The sum of requested bytes, if any operation requested bytes.
    pub(crate) bytes: Option<u64>,
    /// The number of operations that the timings represent.
    covered: f64,
    timed: u64,
    /// The sum of their times, in nanoseconds.
    total_ns: f64,
    squares: f64,
    min: f64,
    max: f64,
    /// The cost of the operations in nanoseconds, including page faults.
    pub(crate) cost_ns: f64,
    pub(crate) disturbed: u64,
    /// True if a part of the count is a share of a total.
    pub(crate) is_scaled: bool,
}

impl Group {
    /// Adds `item` and its cost.
    pub(crate) fn add(&mut self, item: &Item, cost_ns: f64) {
        self.cost_ns += cost_ns;
        self.is_scaled |= item.is_scaled;
        self.count += item.count;
        self.bytes = [self.bytes, item.bytes].into_iter().flatten().reduce(u64::saturating_add);
        self.disturbed += item.disturbed.count;
        let Some(times) = &item.times else { return };
        let weight = item.count as f64;
        self.min = if self.timed == 0 { times.min } else { self.min.min(times.min) };
        self.max = self.max.max(times.max);
        self.timed += times.n;
        self.covered += weight;
        self.total_ns += weight * times.mean;
        self.squares += weight * (times.std * times.std + times.mean * times.mean);
    }

    /// True if only a sample of the operations was timed.
    pub(crate) fn is_sampled(&self) -> bool {
        (self.timed as f64) < self.covered
    }

    /// The times of all operations, if any were timed.
    pub(crate) fn times(&self) -> Option<Stat> {
        if self.timed == 0 {
            return None;
        }
        let mean = self.total_ns / self.covered;
        let std = (self.squares / self.covered - mean * mean).max(0.0).sqrt();
        Some(Stat { n: self.timed, mean, min: self.min, max: self.max, std })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_cost::{Cause, Disturbed, Place};
    use vellum_wire::operation::{Kind, Operation};

    fn item(count: u64, mean: f64, std: f64) -> Item {
        Item {
            cause: Cause { place: Place::Unknown, via: None },
            operation: Operation::of(Kind::Free),
            count,
            bytes: (count > 1).then_some(100),
            times: Some(Stat { n: count.min(10), mean, min: mean - std, max: mean + std, std }),
            disturbed: Disturbed::default(),
            is_scaled: false,
        }
    }

    #[test]
    fn group_means_are_weighted_by_exact_counts() {
        let mut group = Group::default();
        group.add(&item(3, 10.0, 0.0), 30.0);
        group.add(&item(1, 50.0, 0.0), 50.0);
        let times = group.times().unwrap();
        assert_eq!((group.count, times.n, times.mean, times.min, times.max), (4, 4, 20.0, 10.0, 50.0));
        // The values are 10, 10, 10 and 50.
        assert!((times.std - 300f64.sqrt()).abs() < 1e-9);
        assert_eq!((group.total_ns, group.cost_ns), (80.0, 80.0));
        assert_eq!(group.bytes, Some(100), "of those that said");
        assert_eq!((Group::default().times(), Group::default().bytes), (None, None));
    }
}
