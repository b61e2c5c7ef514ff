//! Weak references, which lead to an object without keeping it alive.
//!
//! The pointer to the object lies in a box that is not scanned. The collector records where this pointer is
//! (a link), and clears it when the object dies. Removing the link takes the heap's lock, so a reference
//! dropped in a blocking region ([`Heap::blocking`](crate::Heap::blocking)) leaves its box in a list. The
//! next weak reference that is made, or is dropped outside such a region, frees these boxes.

use crate::OutOfMemory;
use crate::handle::Gc;
use crate::heap::{expect_running, is_blocked, refused};
use crate::object::Object;
use crate::scope::Scope;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};
use vellum_gc as gc;

type Word = AtomicPtr<u8>;

/// An unused word, which may still be a link.
struct Left(NonNull<Word>);

// SAFETY: the word was moved out of its `Weak`, so this is the only pointer to it.
unsafe impl Send for Left {}

static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// Leads to an object as long as another reference keeps it alive.
///
/// ```
/// # use vellum_heap::{Heap, Weak};
/// # let heap = Heap::get();
/// heap.scope(|scope| {
///     let number = scope.alloc(7u64)?;
///     let weak = Weak::new(number)?;
///     heap.collect();
///     assert!(weak.get(scope).is_some_and(|found| found.is(number)));
///     Ok::<(), vellum_heap::OutOfMemory>(())
/// })?;
/// # Ok::<(), vellum_heap::OutOfMemory>(())
/// ```
pub struct Weak<T: Object> {
    word: NonNull<Word>,
    object: PhantomData<fn() -> T>,
}

// SAFETY: the box holds an atomic, which any thread may access and free.
unsafe impl<T: Object> Send for Weak<T> {}
// SAFETY: shared access only loads the atomic.
unsafe impl<T: Object> Sync for Weak<T> {}

impl<T: Object> Weak<T> {
    /// Leads to the handle's object until that dies. The reference is cleared before the finalizer runs.
    pub fn new(handle: Gc<'_, T>) -> Result<Weak<T>, OutOfMemory> {
        expect_running("a weak reference is made");
        clear_left();
        let object = handle.as_ptr().cast::<u8>();
        let word = NonNull::from(Box::leak(Box::new(Word::new(object))));
        // SAFETY: the word may be written until `undo` frees the box, after removing the link.
        let linked = unsafe { gc::link(word.as_ptr().cast(), object, false) };
        if let Err(why) = linked {
            // SAFETY: no link was made, so this function has the only pointer to the box.
            drop(unsafe { Box::from_raw(word.as_ptr()) });
            return Err(refused(why));
        }
        Ok(Weak { word, object: PhantomData })
    }

    /// A handle to the object, if it lives.
    #[inline]
    pub fn get<'s>(&self, scope: &Scope<'s>) -> Option<Gc<'s, T>> {
        // SAFETY: only `drop` frees the box, and `self` is borrowed here.
        let object = unsafe { self.word.as_ref() }.load(Ordering::Acquire);
        NonNull::new(object.cast::<T>()).map(|object| scope.root(object))
    }
}

fn undo(word: NonNull<Word>) {
    gc::unlink(word.as_ptr().cast());
    // SAFETY: `new` leaked the box, and the collector no longer writes to it.
    drop(unsafe { Box::from_raw(word.as_ptr()) });
}

fn clear_left() {
    let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    left.into_iter().for_each(|Left(word)| undo(word));
}

impl<T: Object> Drop for Weak<T> {
    fn drop(&mut self) {
        if is_blocked() {
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(Left(self.word));
        } else {
            clear_left();
            undo(self.word);
        }
    }
}

impl<T: Object> fmt::Debug for Weak<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: only `drop` frees the box, and `self` is borrowed here.
        write!(formatter, "Weak({:p})", unsafe { self.word.as_ref() }.load(Ordering::Relaxed))
    }
}
