//! Unreferenced-interval counters: how long each page has gone without a reference, counted in intervals Δ.
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
//! Evicted pages stay in the table up to a *horizon*, because the curve beyond the present window shows if a
//! larger one would pay. With a horizon one above the window, it has only resident pages, as in the paper.
//!
//! Invariants: a page has one age; `ages` has one entry per age below the horizon, and counts every page
//! within the horizon once.
//!
//! Source: Nishigaki, section 3. Departure: the paper counts pages with counters "less than or equal to m",
//! which with counters that start at zero is the window (m + 1)·Δ. Below m is W(t, m·Δ) exactly.

use std::collections::VecDeque;

use super::{PageTable, Quanta};
use vellum_workset::Page;

/// The longest horizon.
pub const HORIZON_MAX: Quanta = Quanta(1 << 20);

/// Pages past the horizon are removed when they outnumber the others and are at least this many.
const SWEEP_MIN: u64 = 1024;

/// The counters of one job's pages.
#[derive(Debug, Clone)]
pub struct Counters {
    /// The interval of each page's last reference.
    last: PageTable<u64>,
    /// `ages[a]`: the number of pages with counter a.
    ages: VecDeque<u64>,
    /// The number of the last interval.
    now: u64,
    /// Pages in `last` whose counter has reached the horizon.
    past: u64,
}

impl Counters {
    /// Counters without pages. Pages without a reference for `horizon` intervals are dropped.
    ///
    /// A horizon of zero counts as one; the largest horizon is [`HORIZON_MAX`].
    #[must_use]
    pub fn new(horizon: Quanta) -> Self {
        let horizon = horizon.0.clamp(1, HORIZON_MAX.0) as usize;
        Self { last: PageTable::default(), ages: VecDeque::from(vec![0; horizon]), now: 0, past: 0 }
    }

    /// A sample point, `elapsed` intervals (at least 1) after the last: the pages in `referenced` were
    /// referenced since. A page may occur more than once.
    ///
    /// If more than one interval has elapsed, the references count as in the last of these intervals.
    pub fn sample(&mut self, elapsed: Quanta, referenced: impl IntoIterator<Item = Page>) {
        self.now += u64::from(elapsed.0.max(1));
        for _ in 0..elapsed.0.max(1).min(self.ages.len() as u32) {
            self.past += self.ages.pop_back().unwrap_or(0);
            self.ages.push_front(0);
        }
        for page in referenced {
            let before = self.last.insert(page, self.now);
            if let Some(age) = before.map(|last| self.now - last) {
                self.leave(age);
            }
            self.ages[0] += 1;
        }
        if self.past >= SWEEP_MIN && self.past > self.last.len() as u64 / 2 {
            let oldest = self.now.saturating_sub(self.ages.len() as u64);
            self.last.retain(|_, last| *last > oldest);
            self.past = 0;
        }
    }

    /// Drops a page that no longer exists, such as an unmapped one.
    pub fn forget(&mut self, page: Page) {
        if let Some(last) = self.last.remove(&page) {
            self.leave(self.now - last);
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

    /// The pages in the table that are outside the working set of `window`, in no particular order: those to
    /// replace.
    pub fn outside(&self, window: Quanta) -> impl Iterator<Item = Page> + '_ {
        let (now, from) = (self.now, u64::from(window.0));
        self.last.iter().filter(move |(_, last)| now - **last >= from).map(|(page, _)| *page)
    }

    /// The horizon.
    #[must_use]
    pub fn horizon(&self) -> Quanta {
        Quanta(self.ages.len() as u32)
    }

    fn leave(&mut self, age: u64) {
        match self.ages.get_mut(age as usize) {
            Some(count) => *count -= 1,
            None => self.past -= 1,
        }
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
            counters.sample(Quanta(1), pages(referenced));
        }
        // Now: 1 and 4 were referenced one interval ago, 2 two, 3 three.
        assert_eq!(counters.working_sets(), [0, 2, 3, 4]);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| counters.counter(Page(n)).map(|q| q.0)),
            [Some(1), Some(2), Some(3), Some(1), None]
        );
        counters.sample(Quanta(1), pages(&[2]));
        assert_eq!(counters.working_sets(), [1, 1, 3, 3], "page 3 is past the horizon");
        assert_eq!(counters.counter(Page(3)), None);
        counters.forget(Page(4));
        counters.forget(Page(4));
        assert_eq!(counters.working_set(Quanta(4)), 2);
        let mut outside: Vec<Page> = counters.outside(Quanta(1)).collect();
        outside.sort_unstable();
        assert_eq!(outside, [Page(1), Page(3)]);
    }

    #[test]
    fn several_intervals_at_once_age_by_as_many() {
        let mut counters = Counters::new(Quanta(8));
        counters.sample(Quanta(1), pages(&[1]));
        counters.sample(Quanta(3), pages(&[2]));
        assert_eq!(counters.counter(Page(1)), Some(Quanta(3)));
        counters.sample(Quanta(1000), pages(&[3]));
        assert_eq!(counters.working_sets(), [1; 8]);
    }

    #[test]
    fn memory_is_bounded_by_the_horizon() {
        let mut counters = Counters::new(Quanta(3));
        for interval in 0..1000 {
            counters.sample(Quanta(1), (0..100).map(|n| Page(interval * 100 + n)));
            assert!(counters.last.len() <= 3 * 100 + 2 * SWEEP_MIN as usize, "{}", counters.last.len());
        }
        assert_eq!(counters.working_set(Quanta(3)), 300);
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
                counters.sample(Quanta(1), pages(&referenced));
                for (m, w) in (1..).zip(counters.working_sets()) {
                    prop_assert_eq!(w, model.values().filter(|counter| **counter < m).count() as u64);
                }
            }
        }
    }
}
