//! A stack of words outside the heap, for the variables and temporaries of a language's virtual machine.
//!
//! ```text
//! words: | value 0 | value 1 | ... | value len-1 | null | null ... |   all of this memory is a root
//! ```
//!
//! The collector needs no notice of pushes and pops: the stack is a root, which every collection scans.
//! Pushing makes no handle. The stack doubles when full; `shrink` halves it if three quarters are unused.
//!
//! # Invariants
//! * Words beyond the length are null, so popped values are not kept alive.
//! * Values move within the stack only while the thread has a [`Scope`]. A collection stops such a thread
//!   first. It does not stop a thread in a blocking region (`Heap::blocking`): if that thread moved a value,
//!   the collection could miss it.
//! * The memory is a root as long as it is allocated. During growth, the old and the new memory are both
//!   roots.

use crate::OutOfMemory;
use crate::heap::expect_running;
use crate::scope::Scope;
use crate::word::{Any, Family, Of, Word};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use vellum_gc as gc;

/// The smallest capacity: one page.
const WORDS_MIN: usize = 512;

/// Words that are roots as long as the slab exists.
struct Slab(Box<[AtomicPtr<()>]>);

impl Slab {
    fn new(words: usize) -> Result<Slab, OutOfMemory> {
        let bytes = words.saturating_mul(size_of::<usize>());
        let mut slab = Vec::new();
        slab.try_reserve_exact(words).map_err(|_| OutOfMemory { bytes })?;
        slab.resize_with(words, || AtomicPtr::new(null_mut()));
        let slab = slab.into_boxed_slice();
        let range = slab.as_ptr_range();
        // SAFETY: the words stay readable until `drop` frees them, after removing the roots.
        let added = unsafe { gc::add_roots(range.start.cast(), range.end.cast()) };
        added.map_err(|_| OutOfMemory { bytes })?;
        Ok(Slab(slab))
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        expect_running("a stack is dropped");
        let range = self.0.as_ptr_range();
        gc::remove_roots(range.start.cast(), range.end.cast());
    }
}

/// A stack of values, which are kept alive until they are popped or the stack is dropped.
///
/// ```
/// use vellum_heap::{Any, Array, Heap, Stack, family};
/// family! { Lisp { Array<u8>: 0 } }
/// let heap = Heap::get();
/// let mut stack = Stack::<Lisp>::new()?;
/// heap.scope(|scope| stack.push(Any::of(scope.alloc_slice(b"kept")?, 0)))?;
/// heap.collect();
/// heap.scope(|scope| assert_eq!(stack.pop(scope).cast::<Array<u8>>().unwrap().items(), b"kept"));
/// # Ok::<(), vellum_heap::OutOfMemory>(())
/// ```
pub struct Stack<F> {
    slab: Slab,
    len: usize,
    /// Binds the stack to one thread. A collection stops that thread, and so never sees a half-done change.
    own: PhantomData<(*const (), Of<F>)>,
}

impl<F: Family> Stack<F> {
    /// An empty stack.
    pub fn new() -> Result<Stack<F>, OutOfMemory> {
        expect_running("a stack is made");
        Ok(Stack { slab: Slab::new(WORDS_MIN)?, len: 0, own: PhantomData })
    }

    /// The number of values.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "a machine asks for the length only")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a value.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the stack has not changed then.
    #[inline(always)]
    pub fn push(&mut self, value: Any<'_, F>) -> Result<(), OutOfMemory> {
        self.push_raw(value.word())
    }

    /// Adds the value of an object's word, without a handle.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the stack has not changed then.
    #[inline(always)]
    pub fn push_word(&mut self, word: &Word<F>) -> Result<(), OutOfMemory> {
        self.push_raw(word.load())
    }

    /// Pushes a copy of the value at `index`.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the stack has not changed then.
    ///
    /// # Panics
    /// If there is no value at `index`.
    #[inline(always)]
    pub fn push_copy(&mut self, index: usize, _scope: &Scope<'_>) -> Result<(), OutOfMemory> {
        self.push_raw(self.at(index).load(Ordering::Relaxed))
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// If there is no value at `index`.
    #[inline(always)]
    pub fn get<'s>(&self, index: usize, scope: &Scope<'s>) -> Any<'s, F> {
        scope.root_word(self.at(index).load(Ordering::Relaxed))
    }

    /// The bits of an immediate at `index`; `None` for an object. Makes no handle.
    ///
    /// # Panics
    /// If there is no value at `index`.
    #[inline(always)]
    pub fn bits(&self, index: usize) -> Option<u64> {
        Any::<F>::bits(Any::borrowed(self.at(index).load(Ordering::Relaxed)))
    }

    /// Replaces the value at `index`.
    ///
    /// # Panics
    /// If there is no value at `index`.
    #[inline(always)]
    pub fn set(&mut self, index: usize, value: Any<'_, F>) {
        self.at(index).store(value.word(), Ordering::Relaxed);
    }

    /// Removes the last value.
    ///
    /// # Panics
    /// If the stack is empty.
    #[inline(always)]
    pub fn pop<'s>(&mut self, scope: &Scope<'s>) -> Any<'s, F> {
        let value = self.get(self.len.wrapping_sub(1), scope);
        self.truncate(self.len - 1);
        value
    }

    /// Removes all values from `len` on.
    #[inline(always)]
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.len -= 1;
            self.slab.0[self.len].store(null_mut(), Ordering::Relaxed);
        }
    }

    /// Removes the values from `from` on, except for the last `count`, which move down.
    ///
    /// # Panics
    /// If the stack has fewer values.
    #[inline(always)]
    pub fn slide(&mut self, from: usize, count: usize, _scope: &Scope<'_>) {
        let first = self.len.checked_sub(count).filter(|&first| first >= from);
        let first = first.expect("the values that move lie on the stack");
        for index in 0..count {
            let word = self.slab.0[first + index].load(Ordering::Relaxed);
            self.slab.0[from + index].store(word, Ordering::Relaxed);
        }
        self.truncate(from + count);
    }

    /// Halves the memory as long as three quarters of it are unused.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the stack has not changed then.
    pub fn shrink(&mut self) -> Result<(), OutOfMemory> {
        let mut words = self.slab.0.len();
        while words > WORDS_MIN && self.len < words / 4 {
            words /= 2;
        }
        if words < self.slab.0.len() { self.resize(words) } else { Ok(()) }
    }

    #[inline(always)]
    fn at(&self, index: usize) -> &AtomicPtr<()> {
        assert!(index < self.len, "a value lies on the stack");
        &self.slab.0[index]
    }

    #[inline(always)]
    fn push_raw(&mut self, word: *mut ()) -> Result<(), OutOfMemory> {
        if self.len == self.slab.0.len() {
            self.push_growing(word)?;
        } else {
            self.slab.0[self.len].store(word, Ordering::Relaxed);
        }
        self.len += 1;
        Ok(())
    }

    #[cold]
    fn push_growing(&mut self, word: *mut ()) -> Result<(), OutOfMemory> {
        // Growing may collect, so the value is a root during it.
        crate::Heap::get().scope(|scope| {
            let value: Any<'_, F> = scope.root_word(word);
            self.resize(self.len * 2)?;
            self.slab.0[self.len].store(value.word(), Ordering::Relaxed);
            Ok(())
        })
    }

    fn resize(&mut self, words: usize) -> Result<(), OutOfMemory> {
        expect_running("a stack changes its size");
        let slab = Slab::new(words)?;
        for (to, from) in slab.0.iter().zip(&self.slab.0[..self.len]) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.slab = slab;
        Ok(())
    }
}

impl<F> fmt::Debug for Stack<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stack({} values)", self.len)
    }
}
