//! A cache of computed facts, such as the unwinding rule of an instruction: one word for each key.
//!
//! All threads read it without a lock. A table of zeros is empty, so it can lie in static memory or in fresh
//! pages. Pages that no key touched take no memory.
//!
//! Invariants: a key is written by compare-and-swap, before its value, and never changes, except in a table
//! with one user ([`Facts::of_own`]). A value of 0 is not yet filled in; another thread that finds it
//! computes the value too.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use vellum_unwind::SPREAD;

/// Probes before an insertion fails.
const PROBES_MAX: usize = 64;

#[derive(Debug)]
struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

/// A table of at most `SLOTS` facts.
#[derive(Debug)]
pub struct Facts<const SLOTS: usize>([Slot; SLOTS]);

impl<const SLOTS: usize> Facts<SLOTS> {
    /// An empty table.
    #[expect(clippy::new_without_default, reason = "tables are too large for the stack")]
    pub const fn new() -> Facts<SLOTS> {
        Facts([const { Slot { key: AtomicU64::new(0), value: AtomicU64::new(0) } }; SLOTS])
    }

    /// The word of `key`, which is not 0; computed if it is missing, and kept unless it is 0 or there is no
    /// room.
    pub fn of(&self, key: u64, work_out: impl FnOnce() -> u64) -> u64 {
        let slot = self.slot_of(key);
        match slot.map_or(0, |slot| slot.value.load(Acquire)) {
            0 => {
                let value = work_out();
                if let Some(slot) = slot {
                    slot.value.store(value, Release);
                }
                value
            }
            value => value,
        }
    }

    /// As [`of`](Self::of), in a table that the caller alone uses: without room, another key's fact is
    /// replaced.
    pub fn of_own(&mut self, key: u64, work_out: impl FnOnce() -> u64) -> u64 {
        if self.slot_of(key).is_none() {
            self.0[Self::first(key)] = Slot { key: AtomicU64::new(key), value: AtomicU64::new(0) };
        }
        self.of(key, work_out)
    }

    /// Replaces the word of `key`, if the table has the key or room for it.
    pub fn set(&self, key: u64, word: u64) {
        if let Some(slot) = self.slot_of(key) {
            slot.value.store(word, Release);
        }
    }

    /// The word of `key`, if it has been computed and is in its first slot or the next.
    #[inline(always)]
    pub fn known(&self, key: u64) -> Option<u64> {
        let first = Self::first(key);
        let slots = [&self.0[first], &self.0[(first + 1) % SLOTS]];
        let slot = slots.into_iter().find(|slot| slot.key.load(Relaxed) == key)?;
        let value = slot.value.load(Acquire);
        (value != 0).then_some(value)
    }

    /// The key's slot, claimed for the key if it has none yet.
    fn slot_of(&self, key: u64) -> Option<&Slot> {
        let first = Self::first(key);
        (first..first + PROBES_MAX).map(|at| &self.0[at % SLOTS]).find(|slot| match slot.key.load(Relaxed) {
            0 => !slot.key.compare_exchange(0, key, Relaxed, Relaxed).is_err_and(|theirs| theirs != key),
            there => there == key,
        })
    }

    #[inline(always)]
    fn first(key: u64) -> usize {
        (key.wrapping_mul(SPREAD) >> 40) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_computed_once_and_zeros_are_not_kept() {
        static FACTS: Facts<128> = Facts::new();
        assert_eq!((FACTS.known(7), FACTS.of(7, || 0), FACTS.known(7)), (None, 0, None));
        assert_eq!((FACTS.of(7, || 5), FACTS.of(7, || 6), FACTS.known(7)), (5, 5, Some(5)));
        FACTS.set(7, 9);
        assert_eq!(FACTS.known(7), Some(9));
        (1..=1000).for_each(|key| assert_eq!(FACTS.of(key << 20, || key), key));
    }

    #[test]
    fn a_full_table_of_one_user_keeps_the_latest_facts() {
        let mut facts: Facts<128> = Facts::new();
        for key in 1..=1000 {
            assert_eq!(facts.of_own(key, || key), key);
            assert_eq!(facts.of_own(key, || 0), key, "it was kept");
        }
    }
}
