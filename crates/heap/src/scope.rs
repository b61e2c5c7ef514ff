//! Scopes, which keep the objects of their handles alive, and the operations that need a scope: allocating
//! objects and setting fields.

use crate::OutOfMemory;
use crate::array::Array;
use crate::field::Field;
use crate::handle::Gc;
use crate::handles::{self, Chunk, HANDLES};
use crate::heap;
use crate::object::{Object, layout};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use vellum_gc as gc;

/// A stretch of a thread's time in which handles are good: see [`Heap::scope`](crate::Heap::scope).
///
/// It belongs to its thread:
///
/// ```compile_fail,E0277
/// # use vellum_heap::Heap;
/// Heap::get().scope(|scope| {
///     std::thread::scope(|threads| {
///         threads.spawn(|| scope.alloc(1u64).is_ok());
///     });
/// });
/// ```
#[derive(Debug)]
pub struct Scope<'s> {
    chunk: Cell<NonNull<Chunk>>,
    used: Cell<usize>,
    /// Neither longer nor shorter than the scope.
    brand: PhantomData<Cell<&'s ()>>,
    /// Not another thread's.
    own: PhantomData<*const ()>,
}

impl<'s> Scope<'s> {
    /// Opens a scope, and closes it when `body` is over.
    pub(crate) fn with<R>(body: impl for<'b> FnOnce(&Scope<'b>) -> R) -> R {
        heap::expect_running("a scope is opened");
        let scope = Scope {
            chunk: Cell::new(handles::take()),
            used: Cell::new(0),
            brand: PhantomData,
            own: PhantomData,
        };
        body(&scope)
    }

    /// Keeps an object, and makes a handle to it.
    #[inline(always)]
    pub(crate) fn root<T: Object>(&self, object: NonNull<T>) -> Gc<'s, T> {
        self.enter(object.as_ptr().cast());
        // SAFETY: the list keeps the object as long as the scope is open, which is as long as 's.
        unsafe { Gc::new(object) }
    }

    /// Enters an object into the list.
    #[inline(always)]
    pub(crate) fn enter(&self, object: *const ()) {
        if self.used.get() == HANDLES {
            self.grow();
        }
        // SAFETY: the scope's own chunk.
        unsafe { self.chunk.get().as_ref() }.slots[self.used.get()].set(object);
        self.used.set(self.used.get() + 1);
    }

    #[cold]
    fn grow(&self) {
        let chunk = handles::take();
        // SAFETY: a chunk that was just taken.
        unsafe { chunk.as_ref() }.next.set(self.chunk.replace(chunk).as_ptr());
        self.used.set(0);
    }

    /// A handle of this scope to an object that another keeps: an object that is to outlive an inner scope is
    /// taken out by the outer one's.
    ///
    /// ```
    /// # use vellum_heap::Heap;
    /// # let heap = Heap::get();
    /// heap.scope(|outer| {
    ///     let last = heap.scope(|inner| {
    ///         let numbers: Vec<_> = (0..1000u64).map(|number| inner.alloc(number).unwrap()).collect();
    ///         outer.keep(numbers[999])
    ///     });
    ///     assert_eq!(*last, 999);
    /// });
    /// ```
    #[inline]
    pub fn keep<T: Object>(&self, handle: Gc<'_, T>) -> Gc<'s, T> {
        self.root(handle.object())
    }

    /// A new object.
    ///
    /// A type with a destructor does not compile:
    ///
    /// ```compile_fail
    /// # use vellum_heap::{Heap, Plain};
    /// Heap::get().scope(|scope| scope.alloc(Plain(String::from("text"))).is_ok());
    /// ```
    #[inline]
    pub fn alloc<T: Object>(&self, value: T) -> Result<Gc<'s, T>, OutOfMemory> {
        const {
            assert!(!std::mem::needs_drop::<T>(), "an object has no destructor: see Gc::on_death");
            assert!(size_of::<T>() <= gc::TYPE_MAX, "an object has 4096 bytes at most: see Array");
            assert!(align_of::<T>() <= gc::GRANULE, "an object is aligned to 16 bytes at most");
        }
        let bytes = size_of::<T>().max(1);
        let object = if const { T::POINTERS.any() } {
            layout::<T>().map_or(std::ptr::null_mut(), gc::alloc_typed_inline)
        } else {
            gc::alloc_atomic(bytes)
        };
        let object = NonNull::new(object.cast::<T>()).ok_or(OutOfMemory { bytes })?;
        // SAFETY: a new object of that many bytes, aligned to a granule.
        unsafe { object.write(value) };
        Ok(self.root(object))
    }

    /// A new array of `len` elements, made by `element` of their indices.
    #[inline]
    pub fn alloc_array<T: Object>(
        &self,
        len: usize,
        element: impl FnMut(usize) -> T,
    ) -> Result<Gc<'s, Array<T>>, OutOfMemory> {
        Array::alloc(self, len, element)
    }

    /// A new array with these elements.
    #[inline]
    pub fn alloc_slice<T: Object + Copy>(&self, elements: &[T]) -> Result<Gc<'s, Array<T>>, OutOfMemory> {
        Array::alloc(self, elements.len(), |index| elements[index])
    }

    /// Has `field`, which is a part of `object`, lead to `target`, or to nothing.
    ///
    /// # Panics
    /// If it is no part of the object.
    #[inline]
    pub fn set<'a, T: Object, U: Object>(
        &self,
        object: Gc<'_, T>,
        field: &Field<U>,
        target: impl Into<Option<Gc<'a, U>>>,
    ) {
        let place = std::ptr::from_ref(field);
        let offset = place.addr().wrapping_sub(object.as_ptr().addr());
        assert!(T::has_field(object.object(), offset), "a field that is set is a part of the object");
        field.store(target.into().map_or(std::ptr::null_mut(), Gc::as_ptr));
        gc::wrote(place.cast());
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        handles::put(self.chunk.get(), self.used.get());
    }
}
