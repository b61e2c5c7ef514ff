//! Arrays in the heap. An array's length is fixed when it is allocated.
//!
//! ```text
//! len   (padding) | element 0 | element 1 | ...
//! together as large as one element, if elements contain pointers
//! ```
//!
//! If elements contain pointers, the collector scans every element by the map of its type. It scans the
//! padded length like one more element. The map may name the length as a pointer; this is harmless, because a
//! length is too small to be an object's address.

use crate::OutOfMemory;
use crate::handle::Gc;
use crate::object::{Object, Pointers, layout};
use crate::scope::Scope;
use std::marker::PhantomData;
use std::ptr::NonNull;
use vellum_gc as gc;

/// An array in the heap. Handles ([`Gc::items`]) and fields lead to it.
#[repr(C)]
#[derive(Debug)]
pub struct Array<T> {
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: `has_field` returns true only for fields of elements. An array is never a part of another object,
// so `POINTERS` of the array alone is not used for one.
unsafe impl<T: Object> Object for Array<T> {
    const POINTERS: Pointers = Pointers::NONE;

    #[inline]
    fn has_field(object: NonNull<Self>, offset: usize) -> bool {
        // SAFETY: the caller has a handle to the array, whose scope keeps it alive.
        let len = unsafe { object.as_ref() }.len;
        offset >= Self::FIRST
            && (offset - Self::FIRST) / size_of::<T>().max(1) < len
            && T::POINTERS.has((offset - Self::FIRST) % size_of::<T>().max(1))
    }
}

impl<T: Object> Array<T> {
    /// Bytes from the start to the first element.
    const FIRST: usize = {
        assert!(align_of::<T>() <= gc::GRANULE, "an element is aligned to 16 bytes at most");
        assert!(!std::mem::needs_drop::<T>(), "an element has no destructor");
        let len = size_of::<usize>();
        if T::POINTERS.any() {
            assert!(size_of::<T>() >= len && size_of::<T>() <= gc::TYPE_MAX);
            size_of::<T>()
        } else {
            len.next_multiple_of(align_of::<T>())
        }
    };

    pub(crate) fn alloc<'s>(
        scope: &Scope<'s>,
        len: usize,
        mut element: impl FnMut(usize) -> T,
    ) -> Result<Gc<'s, Array<T>>, OutOfMemory> {
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(Self::FIRST));
        let bytes = bytes.ok_or(OutOfMemory { bytes: usize::MAX })?;
        let object = if const { T::POINTERS.any() } {
            layout::<T>().map_or(std::ptr::null_mut(), |layout| gc::alloc_array(layout, len + 1))
        } else {
            gc::alloc_atomic(bytes)
        };
        let object = NonNull::new(object.cast::<Array<T>>()).ok_or(OutOfMemory { bytes })?;
        // SAFETY: the object is new and has at least FIRST bytes, which hold the length.
        unsafe { (&raw mut (*object.as_ptr()).len).write(0) };
        // The function that makes elements may collect, so the array is rooted first.
        let array = scope.root(object);
        for index in 0..len {
            let value = element(index);
            // SAFETY: `index` is below `len`, so the element lies in the object; its memory is not yet
            // readable.
            unsafe {
                object.cast::<u8>().add(Self::FIRST).cast::<T>().add(index).write(value);
            }
        }
        // SAFETY: `array` roots the object, and no other handle to it exists yet.
        unsafe { (&raw mut (*object.as_ptr()).len).write(len) };
        Ok(array)
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'s, T: Object> Gc<'s, Array<T>> {
    /// The elements.
    #[inline]
    pub fn items(self) -> &'s [T] {
        let first = self.object().cast::<u8>();
        // SAFETY: `alloc` wrote `len` elements from FIRST on before it stored the length; the scope keeps the
        // array, and no `&mut` to it exists.
        unsafe { std::slice::from_raw_parts(first.add(Array::<T>::FIRST).cast().as_ptr(), self.as_ref().len) }
    }
}
