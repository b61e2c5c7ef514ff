//! Objects of an interpreter that counts references (after what Python programs do to their allocator).
//!
//! A toy job runs over and over: make text, split it into words, count them in a dictionary, turn the
//! dictionary into a list of pairs, and forget everything. Objects die the moment their count reaches zero,
//! mostly in reverse order of birth; lists grow by an eighth at a time, dictionaries double.

use super::{Failure, Metrics, Params, Rng, measured, raw};

const JOBS: u64 = 700;
const WORDS: usize = 6000;
const VOCABULARY: u64 = 1500;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let jobs = params.scaled(JOBS);
    measured(|| {
        let mut rng = Rng::new(params.seed());
        for _ in 0..jobs {
            job(&mut rng)?;
        }
        Ok(())
    })
}

fn job(rng: &mut Rng) -> Result<(), Failure> {
    let mut text = List::new();
    for _ in 0..WORDS {
        text.push(word(rng.below(VOCABULARY)));
    }
    let mut counts = Dict::new();
    for word in text.items() {
        // The old number object dies, a new one is born: numbers cannot change.
        let old = counts.get(*word).map_or(0, |count| count.number());
        counts.set(*word, Ref::new_number(old + 1));
    }
    let mut pairs = List::new();
    counts.each(|word, count| pairs.push(Ref::new_pair(word, count)));
    drop(counts);
    let total: u64 = pairs.items().iter().map(|pair| pair.pair()[1].number()).sum();
    if total != WORDS as u64 {
        let what = format!("{WORDS} words were counted as {total}");
        return Err(Failure::Wrong { workload: "python", what });
    }
    Ok(())
}

/// A word of 3 to 34 letters, the same for the same number.
fn word(number: u64) -> Ref {
    let length = 3 + (number * 7 % 32) as usize;
    Ref::new_text(length, number)
}

#[repr(C)]
struct Head {
    count: usize,
    kind: Kind,
    length: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Number,
    Text,
    Pair,
}

/// A plain pointer to an object; who owns a count says so.
#[derive(Clone, Copy)]
struct Ref(*mut Head);

impl Ref {
    /// A new object with one reference and `bytes` behind its head.
    fn new(kind: Kind, length: u32, bytes: usize) -> Self {
        let head = raw::malloc(size_of::<Head>() + bytes).cast::<Head>();
        // SAFETY: the block holds the head.
        unsafe { head.write(Head { count: 1, kind, length }) };
        Self(head)
    }

    fn new_number(value: u64) -> Self {
        let number = Self::new(Kind::Number, 0, 8);
        // SAFETY: eight bytes lie behind the head.
        unsafe { number.behind().cast::<u64>().write(value) };
        number
    }

    fn new_text(length: usize, number: u64) -> Self {
        let text = Self::new(Kind::Text, length as u32, length.max(8));
        // SAFETY: `length` bytes, at least eight, lie behind the head.
        unsafe {
            text.behind().write_bytes(b'x', length.max(8));
            text.behind().cast::<u32>().write(number as u32);
        }
        text
    }

    /// A pair that takes a count of each of its two.
    fn new_pair(one: Ref, other: Ref) -> Self {
        let pair = Self::new(Kind::Pair, 2, 2 * size_of::<Ref>());
        // SAFETY: two references lie behind the head.
        unsafe { pair.behind().cast::<[Ref; 2]>().write([one.again(), other.again()]) };
        pair
    }

    fn behind(self) -> *mut u8 {
        // SAFETY: every object is longer than its head.
        unsafe { self.0.add(1).cast() }
    }

    fn again(self) -> Self {
        // SAFETY: the object is live: somebody owns a count.
        unsafe { (*self.0).count += 1 };
        self
    }

    /// Gives up one count; the last one frees the object and what it refers to.
    fn forget(self) {
        // SAFETY: the caller owns the count it gives up; a dead object is not touched again.
        unsafe {
            (*self.0).count -= 1;
            if (*self.0).count > 0 {
                return;
            }
            if (*self.0).kind == Kind::Pair {
                self.pair().into_iter().for_each(Self::forget);
            }
            raw::free(self.0.cast());
        }
    }

    fn number(self) -> u64 {
        // SAFETY: numbers have eight bytes behind the head.
        unsafe { self.behind().cast::<u64>().read() }
    }

    fn pair(self) -> [Ref; 2] {
        // SAFETY: pairs have two references behind the head.
        unsafe { self.behind().cast::<[Ref; 2]>().read() }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: texts have `length` bytes behind the head, which do not change.
        unsafe { std::slice::from_raw_parts(self.behind(), (*self.0).length as usize) }
    }
}

/// A growing array of owned references, itself in two blocks.
struct List {
    items: *mut Ref,
    len: usize,
    room: usize,
}

impl List {
    fn new() -> Self {
        Self { items: std::ptr::null_mut(), len: 0, room: 0 }
    }

    fn push(&mut self, item: Ref) {
        if self.len == self.room {
            self.room += self.room / 8 + 6;
            // SAFETY: null or this list's block, replaced at once.
            self.items = unsafe { raw::realloc(self.items.cast(), self.room * size_of::<Ref>()) }.cast();
        }
        // SAFETY: there is room for one more.
        unsafe { self.items.add(self.len).write(item) };
        self.len += 1;
    }

    fn items(&self) -> &[Ref] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `len` references were pushed.
        unsafe { std::slice::from_raw_parts(self.items, self.len) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        self.items().iter().rev().for_each(|item| item.forget());
        // SAFETY: this list's block or null.
        unsafe { raw::free(self.items.cast()) };
    }
}

/// An open-addressed dictionary from text; owns a count of each key and value.
struct Dict {
    places: *mut [Ref; 2],
    room: usize,
    used: usize,
}

impl Dict {
    fn new() -> Self {
        Self { places: Self::table(8), room: 8, used: 0 }
    }

    fn table(room: usize) -> *mut [Ref; 2] {
        raw::calloc(room, size_of::<[Ref; 2]>()).cast()
    }

    /// The place of `key`, or the empty one where it belongs.
    fn place(&self, key: Ref) -> *mut [Ref; 2] {
        let hash = key.bytes().iter().fold(5381usize, |h, b| h.wrapping_mul(33) ^ usize::from(*b));
        let mut at = hash % self.room;
        loop {
            // SAFETY: the table has `room` places, each zero or filled with live references.
            unsafe {
                let place = self.places.add(at);
                let held = (*place)[0];
                if held.0.is_null() || held.bytes() == key.bytes() {
                    return place;
                }
            }
            at = (at + 1) % self.room;
        }
    }

    fn get(&self, key: Ref) -> Option<Ref> {
        // SAFETY: `place` lies in the table.
        let [held, value] = unsafe { *self.place(key) };
        (!held.0.is_null()).then_some(value)
    }

    /// Takes over `value`; takes a count of `key` when it is new.
    fn set(&mut self, key: Ref, value: Ref) {
        if 3 * self.used >= 2 * self.room {
            self.widen();
        }
        let place = self.place(key);
        // SAFETY: `place` lies in the table.
        unsafe {
            if (*place)[0].0.is_null() {
                *place = [key.again(), value];
                self.used += 1;
            } else {
                std::mem::replace(&mut (*place)[1], value).forget();
            }
        }
    }

    fn widen(&mut self) {
        let (old, old_room) = (self.places, self.room);
        self.room *= 2;
        self.places = Self::table(self.room);
        for at in 0..old_room {
            // SAFETY: the old table has `old_room` places; references move over as they are.
            unsafe {
                let entry = *old.add(at);
                if !entry[0].0.is_null() {
                    *self.place(entry[0]) = entry;
                }
            }
        }
        // SAFETY: the old table, no longer used.
        unsafe { raw::free(old.cast()) };
    }

    fn each(&self, mut with: impl FnMut(Ref, Ref)) {
        for at in 0..self.room {
            // SAFETY: the table has `room` places.
            let [key, value] = unsafe { *self.places.add(at) };
            if !key.0.is_null() {
                with(key, value);
            }
        }
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        self.each(|key, value| {
            value.forget();
            key.forget();
        });
        // SAFETY: this dictionary's table.
        unsafe { raw::free(self.places.cast()) };
    }
}
