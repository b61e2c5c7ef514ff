//! Types whose values may lie in the heap, each with a map of the pointers in a value.

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use vellum_gc as gc;

const WORD: usize = gc::WORD;
const MAP_WORDS: usize = gc::TYPE_MAX / WORD / 64;

/// Which words of a type are fields: a bitmap over its first 4096 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointers([u64; MAP_WORDS]);

impl Pointers {
    /// No field.
    pub const NONE: Pointers = Pointers([0; MAP_WORDS]);
    /// The first word: a single field.
    pub const ONE: Pointers = {
        let mut map = [0; MAP_WORDS];
        map[0] = 1;
        Pointers(map)
    };

    /// These fields, and those of a part that lies `offset` bytes from the start.
    ///
    /// # Panics
    /// If a field of the part lies beyond the first 4096 bytes, or not at a multiple of a word. In a constant
    /// this is a compile error.
    #[must_use]
    pub const fn and(mut self, part: Pointers, offset: usize) -> Pointers {
        let mut word = 0;
        while word < MAP_WORDS * 64 {
            if part.0[word / 64] >> (word % 64) & 1 != 0 {
                assert!(offset.is_multiple_of(WORD), "a field lies at a multiple of a word");
                let to = word + offset / WORD;
                self.0[to / 64] |= 1 << (to % 64);
            }
            word += 1;
        }
        self
    }

    /// True if there is any field.
    pub const fn any(&self) -> bool {
        let mut index = 0;
        while index < MAP_WORDS {
            if self.0[index] != 0 {
                return true;
            }
            index += 1;
        }
        false
    }

    /// True if the word at `offset` bytes is a field.
    #[inline(always)]
    pub const fn has(&self, offset: usize) -> bool {
        let word = offset / WORD;
        offset.is_multiple_of(WORD) && word / 64 < MAP_WORDS && self.0[word / 64] >> (word % 64) & 1 != 0
    }

    fn word(&self, index: usize) -> u64 {
        self.0[index]
    }
}

/// A type whose values may lie in the collected heap.
///
/// [`object!`](crate::object!) declares structures as objects. Numbers, atomics, arrays of objects and
/// [`Plain`] values are objects, too.
///
/// # Safety
/// [`Object::POINTERS`] has every word of a value that is a [`Field`](crate::Field), and no other. If
/// [`Object::has_field`] is overridden, it returns true only for such words.
pub unsafe trait Object: Send + Sync + Sized + 'static {
    /// The words that are fields.
    const POINTERS: Pointers;

    /// True if a field lies `offset` bytes from the start of an object of this type.
    #[doc(hidden)]
    #[inline(always)]
    fn has_field(_object: NonNull<Self>, offset: usize) -> bool {
        offset < size_of::<Self>() && Self::POINTERS.has(offset)
    }

    /// The cell that caches the collector's type for this one, if there is a cell.
    #[doc(hidden)]
    #[inline(always)]
    fn type_cell() -> Option<&'static TypeCell> {
        None
    }
}

/// Declares structures as objects: `object! { struct Name { field: Type, ... } }`, without type parameters.
/// Each field's type must be an [`Object`].
///
/// ```
/// use vellum_heap::{Array, Field, object};
/// use std::sync::atomic::AtomicU64;
/// object! {
///     /// An entry of a dictionary.
///     pub struct Entry {
///         pub next: Field<Entry>,
///         pub name: Field<Array<u8>>,
///         pub seen: AtomicU64,
///     }
/// }
/// ```
///
/// The type of each field must be an [`Object`]:
///
/// ```compile_fail,E0277
/// vellum_heap::object! {
///     struct Bad {
///         text: String,
///     }
/// }
/// ```
#[macro_export]
macro_rules! object {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty),* $(,)?
        }
    )*) => {$(
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $type),*
        }

        // SAFETY: the macro adds the pointers of every field it declares, at the field's offset.
        unsafe impl $crate::Object for $name {
            const POINTERS: $crate::Pointers = $crate::Pointers::NONE
                $(.and(<$type as $crate::Object>::POINTERS, ::core::mem::offset_of!($name, $field)))*;

            #[inline(always)]
            fn type_cell() -> ::core::option::Option<&'static $crate::TypeCell> {
                static CELL: $crate::TypeCell = $crate::TypeCell::new();
                ::core::option::Option::Some(&CELL)
            }
        }
    )*};
}

macro_rules! numbers {
    // SAFETY: the listed types are numbers, atomics, text and `()`, none of which contains a field.
    ($($type:ty),*) => {$(unsafe impl Object for $type { const POINTERS: Pointers = Pointers::NONE; })*};
}
numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool, char, ());
numbers!(AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);
numbers!(AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, &'static str);

// SAFETY: the constant adds the fields of each of the N elements at the element's offset.
unsafe impl<T: Object, const N: usize> Object for [T; N] {
    const POINTERS: Pointers = {
        let (mut all, mut index) = (Pointers::NONE, 0);
        while index < N && T::POINTERS.any() {
            all = all.and(T::POINTERS, index * size_of::<T>());
            index += 1;
        }
        all
    };
}

// SAFETY: `PhantomData` has no bytes, and so no field.
unsafe impl<T: Send + Sync + 'static> Object for PhantomData<T> {
    const POINTERS: Pointers = Pointers::NONE;
}

/// Any value without a destructor, as a part of an object. The collector does not see fields in it, so they
/// cannot be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plain<T>(pub T);

// SAFETY: a field in the value is never set: `Scope::set` panics for words outside `POINTERS`.
unsafe impl<T: Send + Sync + 'static> Object for Plain<T> {
    const POINTERS: Pointers = Pointers::NONE;
}

impl<T> Deref for Plain<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Caches the collector's type of a Rust type.
#[derive(Debug)]
pub struct TypeCell(AtomicPtr<gc::Layout>);

impl TypeCell {
    /// An empty cell.
    #[expect(clippy::new_without_default, reason = "made in statics only")]
    pub const fn new() -> TypeCell {
        TypeCell(AtomicPtr::new(std::ptr::null_mut()))
    }
}

thread_local! {
    /// The collector's types of Rust types without a cell, by size and pointers.
    static OTHERS: Cell<HashMap<(usize, [u64; MAP_WORDS]), &'static gc::Layout>> = Cell::new(HashMap::new());
}

/// The collector's type of `T`, which has pointers; `None` without memory.
#[inline(always)]
pub(crate) fn layout<T: Object>() -> Option<&'static gc::Layout> {
    let Some(TypeCell(cell)) = T::type_cell() else { return other::<T>() };
    // SAFETY: the cell holds null or a type that `make` returned as a `&'static`.
    if let Some(layout) = unsafe { cell.load(Ordering::Relaxed).as_ref() } {
        return Some(layout);
    }
    let made = make::<T>()?;
    cell.store(std::ptr::from_ref(made).cast_mut(), Ordering::Relaxed);
    Some(made)
}

fn make<T: Object>() -> Option<&'static gc::Layout> {
    gc::type_of(size_of::<T>(), |index| T::POINTERS.word(index))
}

#[cold]
fn other<T: Object>() -> Option<&'static gc::Layout> {
    let key = (size_of::<T>(), T::POINTERS.0);
    let mut known = OTHERS.take();
    let layout = match known.get(&key) {
        Some(&layout) => Some(layout),
        None => make::<T>().inspect(|&made| _ = known.insert(key, made)),
    };
    OTHERS.set(known);
    layout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    object! {
        struct Inner { number: u32, first: Field<Inner>, list: [Field<Inner>; 3] }
        struct Outer { flag: bool, inner: Inner, plain: Plain<[u64; 4]>, last: Field<Outer> }
    }

    #[test]
    fn pointer_map_matches_fields() {
        fn offsets<T: Object>() -> Vec<usize> {
            (0..size_of::<T>()).filter(|&offset| T::POINTERS.has(offset)).collect()
        }
        let first = std::mem::offset_of!(Inner, first);
        let list = std::mem::offset_of!(Inner, list);
        let mut inner = vec![first, list, list + 8, list + 16];
        inner.sort_unstable();
        assert_eq!(offsets::<Inner>(), inner);
        let start = std::mem::offset_of!(Outer, inner);
        let mut outer: Vec<usize> = inner.iter().map(|offset| start + offset).collect();
        outer.push(std::mem::offset_of!(Outer, last));
        outer.sort_unstable();
        assert_eq!(offsets::<Outer>(), outer);
        assert!(!<Plain<[usize; 3]>>::POINTERS.any() && !u64::POINTERS.any());
        assert!(!Inner::POINTERS.has(first + 1) && !Inner::POINTERS.has(1 << 20));
        assert_eq!(offsets::<[Inner; 2]>().len(), 8);
    }
}
