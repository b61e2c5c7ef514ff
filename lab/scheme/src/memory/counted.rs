//! Memory by reference counts, over `malloc`: an object is freed with its last reference; cycles leak.
//!
//! The counts are written by hand. `std::rc::Rc` would need a second word in each object, and the
//! comparison would be of that library. Objects that die together are linked through their heads and freed
//! in a loop, so that a long list needs no recursion.

use super::Kind;
use super::raw::{self, Store, TAG, is_object, object};
use std::cell::Cell;

pub use raw::{Scope, in_scope};

// SAFETY: the declarations are those of the C library.
unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u64;
    fn free(place: *mut u64);
}

/// Counts in the objects' heads.
#[derive(Debug)]
pub struct Counts;

/// A value.
pub type Value<'s> = raw::Value<'s, Counts>;
/// A stack of values.
pub type Stack = raw::Stack<Counts>;
/// A symbol.
pub type Weak = raw::Weak<Counts>;

/// There is nothing to start.
///
/// # Errors
/// Never.
pub fn start(_eager: u32, _seed: u64) -> Result<(), String> {
    Ok(())
}

/// A line without figures: there are no statistics.
pub fn statistics() -> String {
    "reference counts: no collections".to_owned()
}

// SAFETY: an object is freed when its count is 0; malloc aligns to 16 bytes on this platform.
unsafe impl Store for Counts {
    const HEAD: usize = 1;

    #[inline(always)]
    fn allocate(bytes: usize, _scanned: bool) -> *mut u64 {
        // SAFETY: malloc has no precondition; the head is the first word of its result.
        unsafe {
            let place = malloc(bytes);
            if !place.is_null() {
                place.write(1);
            }
            place
        }
    }

    #[inline(always)]
    fn retain(word: u64) {
        if is_object(word) {
            // SAFETY: the word is an object that a live reference holds.
            unsafe { *object(word) += 1 };
        }
    }

    #[inline(always)]
    fn release(word: u64) {
        // SAFETY: the word is an object, to which the released reference pointed until now.
        if is_object(word) && unsafe { lose(word) } {
            // SAFETY: the count is 0, so no reference to the object is left.
            unsafe { free_all(word) };
        }
    }

    fn roots(_words: &[Cell<u64>], _are_added: bool) {}
}

/// Counts down; returns whether no reference is left.
///
/// # Safety
/// The word is an object that has a reference.
#[inline(always)]
unsafe fn lose(word: u64) -> bool {
    // SAFETY: the word is an object by this function's `# Safety`, and its head is its count.
    unsafe {
        let count = object(word);
        *count -= 1;
        *count == 0
    }
}

/// The slots of an object, by its word.
///
/// # Safety
/// The word is an object of this store.
unsafe fn slots_of(word: u64) -> (*mut u64, usize) {
    // SAFETY: the word is an object by this function's `# Safety`, laid out as in `raw.rs`.
    unsafe {
        match Kind::of((word & TAG) as u32) {
            Kind::Pair => (object(word).add(1), 2),
            Kind::Text | Kind::Symbol | Kind::Bytes => (object(word), 0),
            _ => (object(word).add(2), *object(word).add(1) as usize),
        }
    }
}

/// # Safety
/// The object has no reference.
#[cold]
#[inline(never)]
unsafe fn free_all(word: u64) {
    let mut next = word;
    // SAFETY: each object on the list has no reference; its head, no longer a count, links the list.
    unsafe {
        *object(word) = 0;
        while next != 0 {
            let dead = next;
            next = *object(dead);
            let (slots, len) = slots_of(dead);
            for index in 0..len {
                let inner = *slots.add(index);
                if is_object(inner) && lose(inner) {
                    *object(inner) = next;
                    next = inner;
                }
            }
            free(object(dead));
        }
    }
}
