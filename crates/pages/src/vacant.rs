//! The list of vacated runs of pages: allocated memory whose contents its owner does not need.
//!
//! The runs are few and large, as a collector vacates regions, not objects. A full list drops its smallest
//! run. The pages of that run are then not returned to the kernel, but no data is lost.
//!
//! # Invariants
//! Runs are whole pages in the order of their addresses: none is empty, and they neither overlap nor
//! touch.

use vellum_sys::Span;

pub(crate) const RUNS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Vacant {
    runs: [Span; RUNS_MAX],
    len: usize,
}

impl Vacant {
    pub(crate) const fn new() -> Vacant {
        Vacant { runs: [Span::EMPTY; RUNS_MAX], len: 0 }
    }

    pub(crate) fn runs(&self) -> &[Span] {
        &self.runs[..self.len]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn add(&mut self, run: Span) {
        if run.is_empty() {
            return;
        }
        // Those that it meets become one with it.
        let first = self.runs().iter().position(|other| other.end() >= run.start).unwrap_or(self.len);
        let met = self.runs()[first..].iter().take_while(|other| other.start <= run.end()).count();
        let run = self.runs[first..first + met]
            .iter()
            .fold(run, |run, other| Span::between(run.start.min(other.start), run.end().max(other.end())));
        self.splice(first, met, &[run]);
    }

    pub(crate) fn remove(&mut self, run: Span) {
        let first = self.runs().iter().position(|other| other.end() > run.start).unwrap_or(self.len);
        let met = self.runs()[first..].iter().take_while(|other| other.start < run.end()).count();
        if met == 0 || run.is_empty() {
            return;
        }
        let before = self.runs[first].before(run.start);
        let after = self.runs[first + met - 1].from(run.end());
        match (!before.is_empty(), !after.is_empty()) {
            (true, true) => self.splice(first, met, &[before, after]),
            (true, false) => self.splice(first, met, &[before]),
            (false, true) => self.splice(first, met, &[after]),
            (false, false) => self.splice(first, met, &[]),
        }
    }

    /// Takes the last run, or the end of it, of at most `most` bytes.
    pub(crate) fn take(&mut self, most: usize) -> Option<Span> {
        let last = *self.runs().last()?;
        let [_, run] = last.split_at(last.bytes.saturating_sub(most));
        self.remove(run);
        Some(run)
    }

    /// Puts `new` in the place of `count` runs from `first` on, and drops the smallest of too many.
    fn splice(&mut self, first: usize, count: usize, new: &[Span]) {
        let mut all = [Span::EMPTY; RUNS_MAX + 2];
        let (before, after) = (&self.runs[..first], &self.runs[first + count..self.len]);
        let mut len = 0;
        for part in [before, new, after] {
            all[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        while len > RUNS_MAX {
            let smallest = (0..len).min_by_key(|&index| all[index].bytes).unwrap_or(0);
            all.copy_within(smallest + 1..len, smallest);
            len -= 1;
        }
        self.runs[..len].copy_from_slice(&all[..len]);
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::Range;
    use proptest::prelude::*;
    use vellum_sys::Addr;

    fn run(range: Range<usize>) -> Span {
        Span::between(Addr::new(range.start), Addr::new(range.end))
    }

    proptest! {
        /// Against a set of pages, few enough for the list.
        #[test]
        fn runs_are_what_was_vacated_and_not_needed(ops in proptest::collection::vec((any::<bool>(), 0usize..100, 0usize..40), 1..80)) {
            let mut vacant = Vacant::new();
            let mut model = [false; 140];
            for (adds, start, len) in ops {
                model[start..start + len].fill(adds);
                if adds { vacant.add(run(start..start + len)) } else { vacant.remove(run(start..start + len)) }
                let mut found = [false; 140];
                let mut end = None;
                for run in vacant.runs() {
                    prop_assert!(!run.is_empty() && end.is_none_or(|end| end < run.start), "{:?}", vacant.runs());
                    end = Some(run.end());
                    found[run.start.get()..run.end().get()].fill(true);
                }
                prop_assert_eq!(found, model);
            }
        }
    }

    #[test]
    fn a_full_list_forgets_the_smallest() {
        let mut vacant = Vacant::new();
        for index in 0..=RUNS_MAX {
            let len = if index == 7 { 1 } else { 2 };
            vacant.add(run(index * 10..index * 10 + len));
        }
        assert_eq!(vacant.runs().len(), RUNS_MAX);
        assert!(!vacant.runs().contains(&run(70..71)) && vacant.runs().contains(&run(60..62)));
        vacant.add(run(5..1000));
        assert_eq!(vacant.runs(), [run(0..2), run(5..1000)]);
    }

    #[test]
    fn what_is_taken_is_taken_in_pieces() {
        let mut vacant = Vacant::new();
        vacant.add(run(10..30));
        vacant.add(run(40..45));
        let taken: [Option<Span>; 5] = core::array::from_fn(|_| vacant.take(8));
        let expected = [run(40..45), run(22..30), run(14..22), run(10..14)].map(Some);
        assert_eq!(taken[..4], expected);
        assert_eq!(taken[4], None);
    }
}
