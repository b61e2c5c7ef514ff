//! A store of strings (after the load that redis' own benchmark puts on a server).
//!
//! A hash table with chains; each entry is a block, its key another, its value a third. Values are set,
//! appended to (realloc), read and deleted; the table itself doubles as it fills. Block sizes follow the
//! values, lifetimes follow nothing: what fragments an allocator's pages.

use super::{Failure, Metrics, Params, Rng, measured, raw};

const KEYS: u64 = 60_000;
const COMMANDS: u64 = 1_600_000;
const LONGEST: usize = 4096;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (commands, keys) = (params.scaled(COMMANDS), params.scaled(KEYS).max(16));
    measured(|| {
        let mut rng = Rng::new(params.seed());
        let mut store = Store::new();
        for turn in 0..commands {
            let key = rng.below(keys);
            let fine = match rng.below(10) {
                0..4 => store.set(key, value_length(&mut rng)),
                4..6 => store.append(key, 1 + rng.below(64) as usize),
                6..9 => store.get(key),
                _ => store.delete(key),
            };
            if !fine {
                return Err(Failure::Wrong {
                    workload: "redis",
                    what: format!("the value of key {key} at command {turn}"),
                });
            }
        }
        Ok(())
    })
}

/// Mostly short, some long.
fn value_length(rng: &mut Rng) -> usize {
    if rng.below(20) == 0 { 512 + rng.below(1500) as usize } else { 3 + rng.below(120) as usize }
}

struct Entry {
    next: *mut Entry,
    key: *mut u8,
    value: *mut u8,
    length: usize,
}

struct Store {
    table: *mut *mut Entry,
    places: usize,
    entries: usize,
}

const KEY_BYTES: usize = 18;

/// The text of a key, as a client would send it.
fn name(key: u64) -> [u8; KEY_BYTES] {
    let mut text = *b"key:00000000000000";
    let mut left = key;
    for digit in text.iter_mut().rev().take(14) {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    text
}

fn hash(name: &[u8]) -> usize {
    name.iter().fold(0xcbf2_9ce4_8422_2325_usize, |h, b| (h ^ usize::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// What every byte of a key's value is.
fn letter(key: u64) -> u8 {
    b'a' + (key % 26) as u8
}

impl Store {
    fn new() -> Self {
        let places = 16;
        Self { table: raw::calloc(places, size_of::<*mut Entry>()).cast(), places, entries: 0 }
    }

    /// The place that points, or would point, to the entry of this name.
    fn find(&self, name: &[u8; KEY_BYTES]) -> *mut *mut Entry {
        // SAFETY: the table has `places` places; entries and their keys are live while linked.
        unsafe {
            let mut place = self.table.add(hash(name) % self.places);
            while !(*place).is_null() && (*(**place).key.cast::<[u8; KEY_BYTES]>()) != *name {
                place = &raw mut (**place).next;
            }
            place
        }
    }

    fn set(&mut self, key: u64, length: usize) -> bool {
        let name = name(key);
        let place = self.find(&name);
        // SAFETY: `find` returns a valid place; new blocks are as large as what is written to them.
        unsafe {
            let value = raw::malloc(length);
            value.write_bytes(letter(key), length);
            if (*place).is_null() {
                let entry = raw::malloc(size_of::<Entry>()).cast::<Entry>();
                let text = raw::malloc(KEY_BYTES);
                text.copy_from_nonoverlapping(name.as_ptr(), KEY_BYTES);
                entry.write(Entry { next: std::ptr::null_mut(), key: text, value, length });
                *place = entry;
                self.entries += 1;
                self.widen();
            } else {
                raw::free((**place).value);
                (**place).value = value;
                (**place).length = length;
            }
        }
        true
    }

    fn append(&mut self, key: u64, more: usize) -> bool {
        let place = self.find(&name(key));
        // SAFETY: as in `set`.
        unsafe {
            let Some(entry) = (*place).as_mut() else { return self.set(key, more) };
            if entry.length + more > LONGEST {
                return self.delete(key);
            }
            entry.value = raw::realloc(entry.value, entry.length + more);
            entry.value.add(entry.length).write_bytes(letter(key), more);
            entry.length += more;
        }
        true
    }

    /// Whether the value, if there is one, still begins, ends and fills its middle with the key's letter.
    fn get(&self, key: u64) -> bool {
        let place = self.find(&name(key));
        // SAFETY: as in `set`; values have at least one byte.
        unsafe {
            let Some(entry) = (*place).as_ref() else { return true };
            let at = |place: usize| *entry.value.add(place) == letter(key);
            at(0) && at(entry.length / 2) && at(entry.length - 1)
        }
    }

    fn delete(&mut self, key: u64) -> bool {
        let place = self.find(&name(key));
        // SAFETY: as in `set`; the entry is unlinked before it is freed.
        unsafe {
            if let Some(entry) = (*place).as_ref() {
                let gone = *place;
                *place = entry.next;
                free_entry(gone);
                self.entries -= 1;
            }
        }
        true
    }

    /// Doubles the table when there are more entries than places.
    fn widen(&mut self) {
        if self.entries <= self.places {
            return;
        }
        let places = self.places * 2;
        let table = raw::calloc(places, size_of::<*mut Entry>()).cast::<*mut Entry>();
        // SAFETY: every entry is unlinked from the old table and linked into the new; the old table is freed
        // once.
        unsafe {
            for place in 0..self.places {
                let mut entry = *self.table.add(place);
                while !entry.is_null() {
                    let next = (*entry).next;
                    let place = table.add(hash(&*(*entry).key.cast::<[u8; KEY_BYTES]>()) % places);
                    (*entry).next = *place;
                    *place = entry;
                    entry = next;
                }
            }
            raw::free(self.table.cast());
        }
        (self.table, self.places) = (table, places);
    }
}

/// Frees an unlinked entry and what it owns.
///
/// # Safety
/// `entry` is live and no longer reachable.
unsafe fn free_entry(entry: *mut Entry) {
    // SAFETY: as the caller promises.
    unsafe {
        raw::free((*entry).key);
        raw::free((*entry).value);
        raw::free(entry.cast());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: every entry is linked once; all end here, and the table with them.
        unsafe {
            for place in 0..self.places {
                let mut entry = *self.table.add(place);
                while !entry.is_null() {
                    let next = (*entry).next;
                    free_entry(entry);
                    entry = next;
                }
            }
            raw::free(self.table.cast());
        }
    }
}
