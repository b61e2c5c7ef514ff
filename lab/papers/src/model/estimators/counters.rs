//! Unreferenced-interval counters: for how many sampling intervals Δ each page has had no reference.
//!
//! At every sample point, a page that was referenced since the last one has its counter set to zero; every
//! other counter grows by one. The working set of window m·Δ is then every page whose counter is below m:
//!
//! ```text
//! intervals    … │ n−3 │ n−2 │ n−1 │  n  │ ← now
//! page a         │  ×  │     │     │  ×  │   counter 0: in W(Δ), W(2Δ), W(3Δ) …
//! page b         │     │  ×  │     │     │   counter 2: in W(3Δ), W(4Δ) …
//! ```
//!
//! The counters are not stored. Each page has the interval of its last reference, and a histogram has the
//! number of pages of each age. The cost of a sample therefore grows with the referenced pages only.
//!
//! Evicted pages keep their ages up to a *horizon*, because the curve beyond the present window shows if a
//! larger one would pay. With a horizon one above the window, the curve has only resident pages, as in the
//! paper.
//!
//! Invariants: a page has one age; `ages` has one entry per age below the horizon, and counts every page
//! within the horizon once. Pages past the horizon stay in the table: a simulated program has few.
//!
//! Source: Nishigaki 1981, section 3. Departure: the paper counts pages with counters "less than or equal
//! to m", which with counters that start at zero is the window (m + 1)·Δ. Below m is W(t, m·Δ) exactly.

use std::collections::VecDeque;

use super::{PageTable, Quanta};
use vellum_workset::Page;

/// The counters of one job's pages.
#[derive(Debug, Clone)]
pub struct Counters {
    /// The interval of each page's last reference.
    last: PageTable<u64>,
    /// `ages[a]`: the number of pages with counter a.
    ages: VecDeque<u64>,
    /// The number of the last interval.
    now: u64,
}

impl Counters {
    /// Counters without pages, which count up to `horizon` (at least 1).
    #[must_use]
    pub fn new(horizon: Quanta) -> Self {
        let ages = VecDeque::from(vec![0; horizon.0 as usize]);
        Self { last: PageTable::default(), ages, now: 0 }
    }

    /// A sample point, one interval after the last: the pages in `referenced` were referenced since. A page
    /// may occur more than once.
    pub fn sample(&mut self, referenced: impl IntoIterator<Item = Page>) {
        self.now += 1;
        self.ages.rotate_right(1);
        self.ages[0] = 0;
        for page in referenced {
            let before = self.last.insert(page, self.now);
            let age = before.map(|last| (self.now - last) as usize);
            if let Some(count) = age.and_then(|age| self.ages.get_mut(age)) {
                *count -= 1;
            }
            self.ages[0] += 1;
        }
    }

    /// The intervals since the page's last reference; `None` if there was none or it is past the horizon.
    #[must_use]
    pub fn counter(&self, page: Page) -> Option<Quanta> {
        let age = self.now - self.last.get(&page)?;
        (age < self.ages.len() as u64).then_some(Quanta(age as u32))
    }

    /// w(t, T): the pages referenced within the last `window` intervals.
    #[must_use]
    pub fn working_set(&self, window: Quanta) -> u64 {
        self.ages.iter().take(window.0 as usize).sum()
    }

    /// w(t, Δ), w(t, 2Δ), … up to the horizon.
    #[must_use]
    pub fn working_sets(&self) -> Vec<u64> {
        let mut sum = 0;
        let add = |count: &u64| {
            sum += count;
            sum
        };
        self.ages.iter().map(add).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn pages(numbers: &[u64]) -> impl Iterator<Item = Page> + use<> {
        numbers.iter().map(|n| Page(*n)).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn by_hand() {
        let mut counters = Counters::new(Quanta(4));
        for referenced in [&[1u64, 2, 3][..], &[2], &[1, 4], &[]] {
            counters.sample(pages(referenced));
        }
        // Now: 1 and 4 were referenced one interval ago, 2 two, 3 three.
        assert_eq!(counters.working_sets(), [0, 2, 3, 4]);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| counters.counter(Page(n)).map(|q| q.0)),
            [Some(1), Some(2), Some(3), Some(1), None]
        );
        counters.sample(pages(&[2]));
        assert_eq!(counters.working_sets(), [1, 1, 3, 3], "page 3 is past the horizon");
        assert_eq!(counters.counter(Page(3)), None);
        assert_eq!(counters.working_set(Quanta(4)), 3);
    }

    proptest! {
        #[test]
        fn incrementing_every_counter_gives_the_same(
            samples in prop::collection::vec(prop::collection::vec(0u64..30, 0..20), 1..60),
            horizon in 1u32..20,
        ) {
            let (mut counters, mut model) = (Counters::new(Quanta(horizon)), HashMap::<u64, u32>::new());
            for referenced in samples {
                model.values_mut().for_each(|counter| *counter += 1);
                referenced.iter().for_each(|page| { model.insert(*page, 0); });
                counters.sample(pages(&referenced));
                for (m, w) in (1..).zip(counters.working_sets()) {
                    prop_assert_eq!(w, model.values().filter(|counter| **counter < m).count() as u64);
                }
            }
        }
    }
}
