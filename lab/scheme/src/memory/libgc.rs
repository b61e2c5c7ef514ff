//! Memory by the Boehm-Demers-Weiser collector, through its C interface (`gc.h`, Debian's libgc-dev).
//!
//! The setup is the usual one for runtimes with tags in pointers. Only pointers with a tag's offset count as
//! pointers into objects, so that a pair takes 16 bytes. Slots are scanned conservatively; text and bytes are
//! not scanned. All other settings are the defaults.

use super::raw::{self, Store};
use std::cell::Cell;
use std::ffi::{c_int, c_void};

pub use raw::{Scope, in_scope};

#[link(name = "gc")]
// SAFETY: the declarations are those of `gc.h`.
unsafe extern "C" {
    fn GC_set_all_interior_pointers(on: c_int);
    fn GC_init();
    fn GC_register_displacement(offset: usize);
    fn GC_malloc(bytes: usize) -> *mut c_void;
    fn GC_malloc_atomic(bytes: usize) -> *mut c_void;
    fn GC_add_roots(start: *mut c_void, end: *mut c_void);
    fn GC_remove_roots(start: *mut c_void, end: *mut c_void);
    fn GC_get_gc_no() -> usize;
    fn GC_get_heap_size() -> usize;
    fn GC_get_total_bytes() -> usize;
}

/// The collector.
#[derive(Debug)]
pub struct Collector;

/// A value.
pub type Value<'s> = raw::Value<'s, Collector>;
/// A stack of values.
pub type Stack = raw::Stack<Collector>;
/// A symbol.
pub type Weak = raw::Weak<Collector>;

/// Starts the collector.
///
/// # Errors
/// Never.
pub fn start(_eager: u32, _seed: u64) -> Result<(), String> {
    // SAFETY: `start` runs on the main thread, before any other call of the collector.
    unsafe {
        GC_set_all_interior_pointers(0);
        GC_init();
        (1..16).for_each(|tag| GC_register_displacement(tag));
    }
    Ok(())
}

/// Statistics of the collector.
pub fn statistics() -> String {
    // SAFETY: the calls only read counters, and `start` has initialised the collector.
    let (collections, heap, total) = unsafe { (GC_get_gc_no(), GC_get_heap_size(), GC_get_total_bytes()) };
    format!("{collections} collections; allocated {} KiB, heap {} KiB", total >> 10, heap >> 10)
}

// SAFETY: the collector finds words in objects, in the registered roots and on the stack, and aligns to 16
// bytes.
unsafe impl Store for Collector {
    const HEAD: usize = 0;

    #[inline(always)]
    fn allocate(bytes: usize, scanned: bool) -> *mut u64 {
        // SAFETY: `start` has initialised the collector.
        unsafe { if scanned { GC_malloc(bytes) } else { GC_malloc_atomic(bytes) }.cast() }
    }

    #[inline(always)]
    fn retain(_word: u64) {}

    #[inline(always)]
    fn release(_word: u64) {}

    fn roots(words: &[Cell<u64>], are_added: bool) {
        let range = words.as_ptr_range();
        let (start, end) = (range.start.cast_mut().cast(), range.end.cast_mut().cast());
        // SAFETY: the range is the words of a live stack, which removes it before it is freed.
        unsafe { if are_added { GC_add_roots(start, end) } else { GC_remove_roots(start, end) } };
    }
}
