//! A hash table from addresses to plain data, in memory of the page layer (`vellum_pages`).
//!
//! It uses open addressing with linear probing. A removed key leaves a tombstone, so a collection can
//! remove keys while it iterates, without allocating.

use vellum_pages::{Buffer, OutOfMemory, Plain};
use vellum_sys::Addr;

/// No key; new pages are all this.
const EMPTY: Addr = Addr::NULL;
/// A key was here.
const REMOVED: Addr = Addr::new(1);
/// A table is nearly empty if it has more than this many times the places that it would be made with.
const NEARLY_EMPTY: usize = 4;
/// Places of the smallest table.
const LEAST: usize = 256;
/// The factor of the hash: the product's upper bits are spread well (2⁶⁴ divided by the golden ratio).
const SPREAD: usize = 0x9e37_79b9_7f4a_7c15;

/// A key and its value. Keys are addresses above 1.
#[derive(Clone, Copy)]
pub(crate) struct Entry<V> {
    key: Addr,
    pub value: V,
}

// SAFETY: a number and a plain value: it owns nothing, as neither of them does.
unsafe impl<V: Plain> Plain for Entry<V> {}

/// The fate of an entry that [`Table::step`] has come to.
pub(crate) enum Step {
    Keep,
    Remove,
    /// The entry stays, and is the first of the next step.
    Stop,
}

pub(crate) struct Table<V: Plain> {
    places: Buffer<Entry<V>>,
    /// Keys there are.
    len: usize,
    /// Places that are not [`EMPTY`].
    used: usize,
}

impl<V: Plain> Table<V> {
    /// Bytes for each key in a table that is half full, as they mostly are.
    pub(crate) const BYTES_A_KEY: usize = 2 * size_of::<Entry<V>>();

    pub(crate) const fn new() -> Table<V> {
        Table { places: Buffer::new(), len: 0, used: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes the table takes.
    pub(crate) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<Entry<V>>()
    }

    /// Bytes that [`Table::insert`] takes before it gives back the old places; 0 if it need not grow.
    pub(crate) fn bytes_to_grow(&self) -> usize {
        if self.is_full() { room_for(self.len) * size_of::<Entry<V>>() } else { 0 }
    }

    /// At most three quarters are used, so that every search ends.
    fn is_full(&self) -> bool {
        (self.used + 1) * 4 > self.places.len() * 3
    }

    fn find(&self, key: Addr) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = start(key, mask);
        loop {
            match self.places[at].key {
                EMPTY => return None,
                there if there == key => return Some(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub(crate) fn get(&self, key: Addr) -> Option<V> {
        self.find(key).map(|at| self.places[at].value)
    }

    /// Puts `value` under `key`, in place of an earlier value.
    ///
    /// # Errors
    /// [`OutOfMemory`]; nothing has changed then.
    pub(crate) fn insert(&mut self, key: Addr, value: V) -> Result<(), OutOfMemory> {
        debug_assert!(key > REMOVED);
        if let Some(at) = self.find(key) {
            self.places[at].value = value;
            return Ok(());
        }
        if self.is_full() {
            self.grow(value)?;
        }
        self.place(key, value);
        Ok(())
    }

    fn place(&mut self, key: Addr, value: V) {
        let mask = self.places.len() - 1;
        let mut at = start(key, mask);
        while self.places[at].key > REMOVED {
            at = (at + 1) & mask;
        }
        self.used += usize::from(self.places[at].key == EMPTY);
        self.len += 1;
        self.places[at] = Entry { key, value };
    }

    fn grow(&mut self, filler: V) -> Result<(), OutOfMemory> {
        let room = room_for(self.len);
        let mut places = Buffer::new();
        places.reserve(room)?;
        for _ in 0..room {
            places.push(Entry { key: EMPTY, value: filler })?;
        }
        self.places.swap(&mut places);
        (self.len, self.used) = (0, 0);
        for entry in places.iter().filter(|entry| entry.key > REMOVED) {
            self.place(entry.key, entry.value);
        }
        Ok(())
    }

    /// Makes a nearly empty table smaller, as collections read all places. Without memory it keeps its size.
    pub(crate) fn shrink(&mut self) {
        if self.places.len() > room_for(self.len) * NEARLY_EMPTY {
            let filler = self.places[0].value;
            let _ = self.grow(filler);
        }
    }

    pub(crate) fn remove(&mut self, key: Addr) -> Option<V> {
        let at = self.find(key)?;
        self.places[at].key = REMOVED;
        self.len -= 1;
        Some(self.places[at].value)
    }

    /// Calls `visit` with every key and value; those for which it returns false are removed.
    pub(crate) fn retain(&mut self, mut visit: impl FnMut(Addr, &mut V) -> bool) {
        for entry in self.places.iter_mut().filter(|entry| entry.key > REMOVED) {
            if !visit(entry.key, &mut entry.value) {
                entry.key = REMOVED;
                self.len -= 1;
            }
        }
    }

    /// Calls `visit` with keys and values from place `from` on until it returns [`Step::Stop`]. Returns the
    /// place where it did, or one beyond the last.
    pub(crate) fn step(&mut self, from: usize, mut visit: impl FnMut(Addr, &mut V) -> Step) -> usize {
        let places = self.places.len();
        for at in from.min(places)..places {
            let entry = &mut self.places[at];
            if entry.key <= REMOVED {
                continue;
            }
            match visit(entry.key, &mut entry.value) {
                Step::Keep => {}
                Step::Remove => {
                    entry.key = REMOVED;
                    self.len -= 1;
                }
                Step::Stop => return at,
            }
        }
        places
    }

    /// Calls `visit` with every key and value.
    pub(crate) fn each(&self, mut visit: impl FnMut(Addr, &V)) {
        for entry in self.places.iter().filter(|entry| entry.key > REMOVED) {
            visit(entry.key, &entry.value);
        }
    }
}

/// Places of a table that is made for `len` keys.
fn room_for(len: usize) -> usize {
    (len * 2).next_power_of_two().max(LEAST)
}

fn start(key: Addr, mask: usize) -> usize {
    (key.get().wrapping_mul(SPREAD) >> (usize::BITS / 2)) & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn agrees_with_a_map() {
        let (mut table, mut map) = (Table::<u64>::new(), HashMap::new());
        let mut number = 1u64;
        for round in 0..20_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = Addr::new(((number >> 40) as usize % 3000 + 1) * 16);
            if number >> 33 & 3 == 0 {
                assert_eq!(table.remove(key), map.remove(&key), "round {round}");
            } else {
                table.insert(key, number).expect("memory for a small table");
                map.insert(key, number);
            }
            assert_eq!(table.get(key), map.get(&key).copied());
            assert_eq!(table.len(), map.len());
        }
        table.retain(|key, _| key.is_aligned(32));
        let mut left = 0;
        table.each(|key, value| {
            assert_eq!(map.get(&key), Some(value));
            left += 1;
        });
        assert_eq!(left, map.keys().filter(|key| key.is_aligned(32)).count());
    }

    #[test]
    fn a_table_that_is_nearly_empty_is_made_smaller() {
        let mut table = Table::<u64>::new();
        table.shrink();
        for key in 1..=10_000 {
            table.insert(Addr::new(key * 16), key as u64).expect("memory for a small table");
        }
        let bytes = table.bytes();
        table.shrink();
        assert_eq!(table.bytes(), bytes, "a full one stays");
        table.retain(|key, _| key <= Addr::new(160));
        table.shrink();
        assert!(table.bytes() < bytes / 8, "{} of {bytes} bytes", table.bytes());
        assert!((1..=10).all(|key| table.get(Addr::new(key * 16)) == Some(key as u64)) && table.len() == 10);
    }
}
