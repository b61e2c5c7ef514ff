//! The list of vacated runs: memory in use whose contents nobody needs until its owner says otherwise.
//!
//! Few and large, as a collector vacates regions, not objects. A list that is full forgets the smallest run:
//! it is not flushed then, which costs time and never contents.
//!
//! # Invariants
//! Runs are whole pages, none empty, none overlapping or adjacent to another, in the order of their
//! addresses.

/// Runs that are kept at most.
pub(crate) const RUNS_MAX: usize = 64;

/// A run: where it starts and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Run {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Run {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Vacant {
    runs: [Run; RUNS_MAX],
    len: usize,
}

impl Vacant {
    pub(crate) const fn new() -> Vacant {
        Vacant { runs: [Run { start: 0, end: 0 }; RUNS_MAX], len: 0 }
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs[..self.len]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pages of `run` are vacated.
    pub(crate) fn add(&mut self, run: Run) {
        if run.end <= run.start {
            return;
        }
        let mut run = run;
        // Those that it meets become one with it.
        let first = self.runs().iter().position(|other| other.end >= run.start).unwrap_or(self.len);
        let met = self.runs()[first..].iter().take_while(|other| other.start <= run.end).count();
        if met > 0 {
            run.start = run.start.min(self.runs[first].start);
            run.end = run.end.max(self.runs[first + met - 1].end);
        }
        self.splice(first, met, &[run]);
    }

    /// The pages of `run` are needed.
    pub(crate) fn remove(&mut self, run: Run) {
        if run.end <= run.start {
            return;
        }
        let first = self.runs().iter().position(|other| other.end > run.start).unwrap_or(self.len);
        let met = self.runs()[first..].iter().take_while(|other| other.start < run.end).count();
        if met == 0 {
            return;
        }
        let before = Run { end: run.start, ..self.runs[first] };
        let after = Run { start: run.end, ..self.runs[first + met - 1] };
        match (before.start < before.end, after.start < after.end) {
            (true, true) => self.splice(first, met, &[before, after]),
            (true, false) => self.splice(first, met, &[before]),
            (false, true) => self.splice(first, met, &[after]),
            (false, false) => self.splice(first, met, &[]),
        }
    }

    /// Takes the last run, or the end of it, of at most `most` bytes.
    pub(crate) fn take(&mut self, most: usize) -> Option<Run> {
        let last = *self.runs().last()?;
        let run = Run { start: last.end.saturating_sub(most).max(last.start), ..last };
        self.remove(run);
        Some(run)
    }

    /// Puts `new` in the place of `count` runs from `first` on, and forgets the smallest where there are too
    /// many.
    fn splice(&mut self, first: usize, count: usize, new: &[Run]) {
        let mut all = [Run::default(); RUNS_MAX + 2];
        let (before, after) = (&self.runs[..first], &self.runs[first + count..self.len]);
        let mut len = 0;
        for part in [before, new, after] {
            all[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        while len > RUNS_MAX {
            let smallest = (0..len).min_by_key(|&index| all[index].len()).unwrap_or(0);
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
    use proptest::prelude::*;

    fn run(start: usize, end: usize) -> Run {
        Run { start, end }
    }

    proptest! {
        /// Against a set of pages, few enough for the list.
        #[test]
        fn runs_are_what_was_vacated_and_not_needed(ops in proptest::collection::vec((any::<bool>(), 0usize..100, 0usize..40), 1..80)) {
            let mut vacant = Vacant::new();
            let mut model = [false; 140];
            for (adds, start, len) in ops {
                model[start..start + len].fill(adds);
                if adds { vacant.add(run(start, start + len)) } else { vacant.remove(run(start, start + len)) }
                let mut found = [false; 140];
                let mut end = None;
                for run in vacant.runs() {
                    prop_assert!(run.start < run.end && end.is_none_or(|end| end < run.start), "{:?}", vacant.runs());
                    end = Some(run.end);
                    found[run.start..run.end].fill(true);
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
            vacant.add(run(index * 10, index * 10 + len));
        }
        assert_eq!(vacant.runs().len(), RUNS_MAX);
        assert!(!vacant.runs().contains(&run(70, 71)) && vacant.runs().contains(&run(60, 62)));
        vacant.add(run(5, 1000));
        assert_eq!(vacant.runs(), [run(0, 2), run(5, 1000)]);
    }

    #[test]
    fn what_is_taken_is_taken_in_pieces() {
        let mut vacant = Vacant::new();
        vacant.add(run(10, 30));
        vacant.add(run(40, 45));
        let taken: [Option<Run>; 5] = core::array::from_fn(|_| vacant.take(8));
        let expected = [run(40, 45), run(22, 30), run(14, 22), run(10, 14)].map(Some);
        assert_eq!(taken[..4], expected);
        assert_eq!(taken[4], None);
    }
}
