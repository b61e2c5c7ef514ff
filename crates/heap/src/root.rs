//! Roots, which keep objects alive beyond every scope.
//!
//! Each root has a pointer in one of several slabs (blocks of memory) that the collector scans. Slabs are
//! never freed; the pointer of a dropped root is used again. A root's object does not move, so a root may be
//! dropped even during a collection, in a blocking region ([`Heap::blocking`](crate::Heap::blocking)).

use crate::OutOfMemory;
use crate::handle::Gc;
use crate::heap::{expect_running, refused};
use crate::object::Object;
use crate::scope::Scope;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};
use vellum_gc as gc;

/// Words in a slab: 4 KiB.
const WORDS: usize = 512;

type Word = AtomicPtr<()>;

static FREE: Mutex<Vec<&'static Word>> = Mutex::new(Vec::new());

/// Keeps an object alive until the root is dropped, on any thread and wherever the root is stored.
///
/// ```
/// # use vellum_heap::{Heap, Root};
/// # let heap = Heap::get();
/// let root = heap.scope(|scope| Root::new(scope.alloc(7u64)?))?;
/// heap.collect();
/// assert_eq!(heap.scope(|scope| *root.get(scope)), 7);
/// # Ok::<(), vellum_heap::OutOfMemory>(())
/// ```
pub struct Root<T: Object> {
    word: &'static Word,
    object: PhantomData<fn() -> T>,
}

impl<T: Object> Root<T> {
    /// Keeps the handle's object alive.
    ///
    /// # Errors
    /// [`OutOfMemory`]: for the word, if a new slab is needed.
    pub fn new(handle: Gc<'_, T>) -> Result<Root<T>, OutOfMemory> {
        let word = match take() {
            Some(word) => word,
            None => {
                expect_running("room for roots is made");
                fill()?;
                take().ok_or(OutOfMemory { bytes: size_of::<Word>() })?
            }
        };
        word.store(handle.as_ptr().cast(), Ordering::Release);
        Ok(Root { word, object: PhantomData })
    }

    /// A handle to the object.
    #[inline]
    pub fn get<'s>(&self, scope: &Scope<'s>) -> Gc<'s, T> {
        let object = NonNull::new(self.word.load(Ordering::Acquire).cast::<T>());
        scope.root(object.expect("a root leads to its object"))
    }
}

fn take() -> Option<&'static Word> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Adds a slab of words. The lock is not held: the collector may run finalizers, which may drop roots.
fn fill() -> Result<(), OutOfMemory> {
    let slab: &'static [Word; WORDS] =
        Box::leak(Box::new([const { Word::new(std::ptr::null_mut()) }; WORDS]));
    let range = slab.as_ptr_range();
    // SAFETY: the slab was leaked, so it is readable for ever.
    unsafe { gc::add_roots(range.start.cast(), range.end.cast()) }.map_err(refused)?;
    FREE.lock().unwrap_or_else(PoisonError::into_inner).extend(slab);
    Ok(())
}

impl<T: Object> Drop for Root<T> {
    fn drop(&mut self) {
        self.word.store(std::ptr::null_mut(), Ordering::Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.word);
    }
}

impl<T: Object> fmt::Debug for Root<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Root({:p})", self.word.load(Ordering::Relaxed))
    }
}
