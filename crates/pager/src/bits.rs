//! A set of small numbers from which runs of neighbours are taken: free places of the pool, free slots of the
//! store.
//!
//! Runs matter because whatever lies together is moved, read and written in one call. The search goes round
//! (next fit), so that what is given back has time to join its neighbours.

use crate::table::Table;
use rustix::io::Errno;

const WORD: u32 = u64::BITS;
/// Runs looked at before the longest of them is taken.
const LOOKS: u32 = 16;

/// A set of numbers below a limit.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Table<u64>,
    limit: u32,
    count: u32,
    cursor: u32,
}

/// Neighbouring numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Bits {
    pub(crate) const fn empty() -> Bits {
        Bits { words: Table::empty(), limit: 0, count: 0, cursor: 0 }
    }

    /// An empty set of numbers below `limit`.
    pub(crate) fn new(limit: u32) -> Result<Bits, Errno> {
        Ok(Bits { words: Table::new(limit.div_ceil(WORD) as usize)?, limit, count: 0, cursor: 0 })
    }

    /// How many numbers are in it.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.words[(number / WORD) as usize] >> (number % WORD) & 1 != 0
    }

    /// Puts in `len` numbers from `start`, none of which is there.
    pub(crate) fn insert(&mut self, start: u32, len: u32) {
        for number in start..start + len {
            debug_assert!(!self.has(number), "{number} is there already");
            self.words[(number / WORD) as usize] |= 1 << (number % WORD);
        }
        self.count += len;
    }

    /// Takes out `len` numbers from `start`, all of which are there.
    pub(crate) fn remove(&mut self, start: u32, len: u32) {
        for number in start..start + len {
            debug_assert!(self.has(number), "{number} is not there");
            self.words[(number / WORD) as usize] &= !(1 << (number % WORD));
        }
        self.count -= len;
    }

    /// The first number from `from` on that is there.
    fn next(&self, from: u32) -> Option<u32> {
        let mut at = from;
        while at < self.limit {
            let word = self.words[(at / WORD) as usize] >> (at % WORD);
            if word != 0 {
                return Some(at + word.trailing_zeros());
            }
            at = (at / WORD + 1) * WORD;
        }
        None
    }

    fn run_at(&self, start: u32, most: u32) -> Run {
        let mut len = 1;
        while len < most && start + len < self.limit && self.has(start + len) {
            len += 1;
        }
        Run { start, len }
    }

    /// Takes out a run of at most `most` numbers: of several looked at, the longest.
    pub(crate) fn take(&mut self, most: u32) -> Option<Run> {
        if self.count == 0 || most == 0 {
            return None;
        }
        let mut best = Run { start: 0, len: 0 };
        let mut at = self.cursor;
        for _ in 0..LOOKS {
            let Some(start) = self.next(at).or_else(|| self.next(0)) else { break };
            let run = self.run_at(start, most);
            if run.len > best.len {
                best = run;
            }
            at = start + run.len;
            if best.len == most || self.count == best.len {
                break;
            }
        }
        self.remove(best.start, best.len);
        self.cursor = if best.start + best.len < self.limit { best.start + best.len } else { 0 };
        Some(best)
    }

    /// Takes out a run of exactly `len` numbers, if one is found.
    pub(crate) fn take_exactly(&mut self, len: u32) -> Option<Run> {
        if self.count < len {
            return None;
        }
        let run = self.take(len)?;
        if run.len < len {
            self.insert(run.start, run.len);
            return None;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn takes_the_longest_run_it_sees() {
        let mut bits = Bits::new(200).expect("memory");
        bits.insert(3, 2);
        bits.insert(60, 10);
        assert_eq!(bits.take(8), Some(Run { start: 60, len: 8 }));
        assert_eq!(bits.take(8), Some(Run { start: 68, len: 2 }).filter(|_| true));
        assert_eq!(bits.take_exactly(3), None);
        assert_eq!(bits.take_exactly(2), Some(Run { start: 3, len: 2 }));
        assert_eq!((bits.take(1), bits.count()), (None, 0));
    }

    proptest! {
        #[test]
        fn is_a_set(steps in proptest::collection::vec((0u32..300, 1u32..40), 1..200)) {
            let mut bits = Bits::new(300).expect("memory");
            let mut model = BTreeSet::new();
            for (start, len) in steps {
                let end = (start + len).min(300);
                if (start..end).all(|number| !model.contains(&number)) {
                    bits.insert(start, end - start);
                    model.extend(start..end);
                } else if let Some(run) = bits.take(len) {
                    prop_assert!(run.len >= 1 && run.len <= len);
                    for number in run.start..run.start + run.len {
                        prop_assert!(model.remove(&number));
                    }
                }
                prop_assert_eq!(bits.count() as usize, model.len());
                for number in 0..300 {
                    prop_assert_eq!(bits.has(number), model.contains(&number));
                }
            }
        }
    }
}
