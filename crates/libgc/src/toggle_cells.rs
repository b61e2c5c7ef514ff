//! The cells of toggle references: references from outside the heap, which the program makes strong or weak
//! at each collection.
//!
//! A reference is a cell in `malloc`'s memory, which the collector does not scan. The cell is registered as
//! a weak link that is cleared only after the object's finalizers have run. While the reference is strong,
//! `name_roots` reports its object as a root.
//!
//! Invariants: a cell never moves and is never freed; an empty cell is used again. The list of cells only
//! grows, and a longer list replaces it as a whole, so it can be read at any moment with the world stopped.

use crate::{variables, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// `GC_ToggleRefStatus`.
const DROP: c_int = 0;
const STRONG: c_int = 1;

/// `GC_toggleref_func`: returns the new status of an object's reference.
pub type Toggle = unsafe extern "C" fn(object: *mut c_void) -> c_int;

pub(crate) static CALLBACK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A reference; null in an empty cell.
pub(crate) struct Cell {
    pub(crate) object: AtomicPtr<c_void>,
    pub(crate) is_strong: AtomicBool,
}

/// Cells in the first list.
const LEAST: usize = 64;

/// The list: [`LENGTH`] cells, with room for [`ROOM`].
static LIST: AtomicPtr<*const Cell> = AtomicPtr::new(null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static ROOM: AtomicUsize = AtomicUsize::new(0);

fn cells() -> impl Iterator<Item = &'static Cell> {
    let (length, list) = (LENGTH.load(Acquire), LIST.load(Acquire));
    // SAFETY: `LENGTH` entries were written, and cells are never freed. The caller has stopped the world or
    // holds the lock for changes, so the list is not replaced.
    (0..length).map(move |index| unsafe { &**list.add(index) })
}

/// Cells before this one are in use, unless the program emptied them since the last collection.
static FULL: AtomicUsize = AtomicUsize::new(0);

/// An empty cell; `None` without memory. The caller holds the lock.
pub(crate) fn empty_cell() -> Option<&'static Cell> {
    let full = FULL.load(Relaxed);
    for (index, cell) in cells().enumerate().skip(full) {
        FULL.store(index, Relaxed);
        if cell.object.load(Relaxed).is_null() {
            return Some(cell);
        }
    }
    FULL.store(LENGTH.load(Relaxed), Relaxed);
    let (length, room, list) = (LENGTH.load(Relaxed), ROOM.load(Relaxed), LIST.load(Relaxed));
    // SAFETY: the new list has room for the old entries and one more. The old list is freed after it was
    // replaced: a reader would have stopped this thread elsewhere, or wait for the lock.
    unsafe {
        let cell = libc::malloc(size_of::<Cell>()).cast::<Cell>();
        if cell.is_null() {
            return None;
        }
        cell.write(Cell { object: AtomicPtr::new(null_mut()), is_strong: AtomicBool::new(false) });
        if length == room {
            let room = (room * 2).max(LEAST);
            let longer = libc::malloc(room * size_of::<*const Cell>()).cast::<*const Cell>();
            if longer.is_null() {
                libc::free(cell.cast());
                return None;
            }
            if length > 0 {
                longer.copy_from_nonoverlapping(list, length);
            }
            LIST.store(longer, Release);
            ROOM.store(room, Relaxed);
            libc::free(list.cast());
        }
        LIST.load(Relaxed).add(length).write(cell);
        LENGTH.store(length + 1, Release);
        Some(&*cell)
    }
}

/// Updates the status of each reference and reports the strong ones. The world is stopped.
pub(crate) fn name_roots(visitor: *const vel::Visitor) {
    // SAFETY: `GC_set_toggleref_func` alone stores here, null or a `Toggle`.
    let callback = unsafe { variables::function::<Toggle>(&CALLBACK) };
    // Collections empty cells.
    FULL.store(0, Relaxed);
    for cell in cells() {
        let object = cell.object.load(Relaxed);
        if object.is_null() {
            continue;
        }
        if let Some(callback) = callback {
            // SAFETY: a `Toggle` accepts a live object, which the cell's object is.
            match unsafe { callback(object) } {
                DROP => {
                    cell.object.store(null_mut(), Relaxed);
                    continue;
                }
                status => cell.is_strong.store(status == STRONG, Relaxed),
            }
        }
        if cell.is_strong.load(Relaxed) {
            // SAFETY: the collector passed the visitor to this call.
            unsafe { vel::vel_gc_visit(visitor, object) };
        }
    }
}
