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

/// A stretch of a thread's time during which handles are valid: see [`Heap::scope`](crate::Heap::scope).
///
/// A scope belongs to one thread:
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
    /// Makes `'s` invariant: neither longer nor shorter than the scope.
    brand: PhantomData<Cell<&'s ()>>,
    /// Makes the scope neither `Send` nor `Sync`.
    own: PhantomData<*const ()>,
}

impl<'s> Scope<'s> {
    /// Opens a scope, and closes it when `body` returns.
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

    /// Keeps an object alive and makes a handle to it.
    #[inline(always)]
    pub(crate) fn root<T: Object>(&self, object: NonNull<T>) -> Gc<'s, T> {
        self.enter(object.as_ptr().cast());
        // SAFETY: the list entry keeps the object alive and in place while the scope is open, which is as
        // long as 's.
        unsafe { Gc::new(object) }
    }

    /// Adds an object to the list.
    #[inline(always)]
    pub(crate) fn enter(&self, object: *const ()) {
        if self.used.get() == HANDLES {
            self.grow();
        }
        // SAFETY: the scope took this chunk and returns it only in `drop`.
        unsafe { self.chunk.get().as_ref() }.slots[self.used.get()].set(object);
        self.used.set(self.used.get() + 1);
    }

    #[cold]
    fn grow(&self) {
        let chunk = handles::take();
        // SAFETY: the chunk was taken just now, so no other scope has it.
        unsafe { chunk.as_ref() }.next.set(self.chunk.replace(chunk).as_ptr());
        self.used.set(0);
    }

    /// A handle of this scope to an object of another scope's handle. An object that must outlive an inner
    /// scope is kept by the outer one.
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
        // SAFETY: the object is new, has at least this many bytes, and is aligned to 16 bytes.
        unsafe { object.write(value) };
        Ok(self.root(object))
    }

    /// A new array of `len` elements, each made by `element` from its index.
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

    /// Makes `field`, which is a part of `object`, lead to `target`, or to nothing.
    ///
    /// # Panics
    /// If `field` is not a part of the object.
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
