//! Words for dynamically typed languages: 64 bits that hold a pointer with a type tag, or an immediate value.
//!
//! ```text
//!   63      48 47                        4 3   0
//!  |    0     | address of an object      | tag |   a pointer; the tag stands for the object's type
//!  |  not 0   | chosen by the language          |   an immediate: numbers, characters, truth values ...
//!  |    0     | 0                               |   nothing
//! ```
//!
//! User-space addresses have their upper 16 bits clear, so an immediate is never mistaken for a pointer, even
//! when the collector moves objects. Floating-point numbers fit without loss, with 2^48 added to their bits,
//! if all NaNs become one.
//!
//! # Invariants
//! Each tag belongs to one type ([`Member`]). The tag alone therefore determines an object's type, and
//! handles are made without reading the object.
//!
//! # Source
//! NaN-boxing for immediates, as in JavaScriptCore; tags in low bits for pointers (Steenkiste and Hennessy,
//! *Tags and type checking in LISP*, ASPLOS 1987). Both are combined because the collector must be able to
//! read a word as an address inside an object.

use crate::handle::Gc;
use crate::object::{Object, Pointers};
use crate::scope::Scope;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use vellum_gc as gc;

/// The smallest immediate other than 0.
pub const IMMEDIATE_MIN: u64 = 1 << 48;
/// Bits of an address that an object's alignment leaves free.
const TAG: usize = gc::GRANULE - 1;

/// The types that one language's words may lead to. [`family!`](crate::family!) makes a family.
///
/// # Safety
/// No tag is in [`Member::TAGS`] of two members.
pub unsafe trait Family: Sized + 'static {}

/// A type that words of the family lead to.
///
/// # Safety
/// See [`Family`].
pub unsafe trait Member<F: Family>: Object {
    /// The tags for this type, from 0 to 15, as a bit each.
    const TAGS: u16;
}

/// True if the sets are disjoint.
#[doc(hidden)]
pub const fn are_disjoint(sets: &[u16]) -> bool {
    let (mut all, mut index) = (0, 0);
    while index < sets.len() {
        if all & sets[index] != 0 {
            return false;
        }
        all |= sets[index];
        index += 1;
    }
    true
}

/// Makes a family: `family! { Name { Type: tag | tag, ... } }`. A type may have several tags. A tag with two
/// types is a compile error.
///
/// ```
/// use vellum_heap::{Any, Array, Heap, Word, family, object};
/// object! {
///     #[derive(Default)]
///     struct Pair { head: Word<Lisp>, tail: Word<Lisp> }
/// }
/// family! {
///     /// The types of a small Lisp.
///     Lisp { Pair: 0, Array<Word<Lisp>>: 1 | 2, Array<u8>: 3 }
/// }
/// Heap::get().scope(|scope| {
///     let pair = scope.alloc(Pair::default())?;
///     scope.put(pair, &pair.head, Any::immediate(7 << 48));
///     scope.put(pair, &pair.tail, Any::of(scope.alloc_slice(b"text")?, 3));
///     let tail = pair.tail.get(scope);
///     assert!(tail.cast::<Pair>().is_none());
///     assert_eq!(tail.cast::<Array<u8>>().unwrap().items(), b"text");
///     Ok::<_, vellum_heap::OutOfMemory>(())
/// })?;
/// # Ok::<(), vellum_heap::OutOfMemory>(())
/// ```
///
/// ```compile_fail,E0080
/// vellum_heap::family! { Bad { u64: 1, vellum_heap::Array<u8>: 2 | 1 } }
/// ```
#[macro_export]
macro_rules! family {
    ($(#[$attribute:meta])* $visibility:vis $name:ident { $($type:ty: $($tag:literal)|+),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Debug)]
        $visibility enum $name {}
        // SAFETY: the assertion below fails to compile if two members share a tag.
        unsafe impl $crate::Family for $name {}
        const _: () = assert!(
            $crate::are_disjoint(&[$(<$type as $crate::Member<$name>>::TAGS),+]),
            "a tag means one type"
        );
        // SAFETY: the assertion above fails to compile if two members share a tag.
        $(unsafe impl $crate::Member<$name> for $type { const TAGS: u16 = $(1 << $tag)|+; })+
    };
}

/// Marks a type as belonging to a family, without containing a value of it.
pub(crate) type Of<F> = fn() -> F;

/// The value of a word: an immediate, or a handle to an object of one of the family's types.
pub struct Any<'s, F> {
    word: *mut (),
    scope: PhantomData<(&'s (), Of<F>)>,
}

impl<F> Clone for Any<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Any<'_, F> {}

impl<F> fmt::Debug for Any<'_, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Any({:#x})", self.word.addr())
    }
}

#[inline(always)]
fn immediate(word: *mut ()) -> Option<u64> {
    let bits = word.addr() as u64;
    (bits.wrapping_sub(1) >= IMMEDIATE_MIN - 1).then_some(bits)
}

impl<'s, F: Family> Any<'s, F> {
    /// An immediate.
    ///
    /// # Panics
    /// If the bits are neither 0 nor at least [`IMMEDIATE_MIN`].
    #[inline(always)]
    pub const fn immediate(bits: u64) -> Any<'s, F> {
        assert!(bits == 0 || bits >= IMMEDIATE_MIN, "an immediate is no address");
        Any { word: without_provenance_mut(bits as usize), scope: PhantomData }
    }

    /// The value of a handle, with that tag.
    ///
    /// # Panics
    /// If the tag is not one of the type's. With a constant tag the check costs nothing.
    #[inline(always)]
    pub fn of<T: Member<F>>(object: Gc<'s, T>, tag: u32) -> Any<'s, F> {
        assert!(tag < 16 && T::TAGS >> tag & 1 != 0, "the tag means the object's type");
        Any { word: object.as_ptr().cast::<()>().wrapping_byte_add(tag as usize), scope: PhantomData }
    }

    /// The bits of an immediate; `None` for an object.
    #[inline(always)]
    pub fn bits(self) -> Option<u64> {
        immediate(self.word)
    }

    /// The tag of an object; `None` for an immediate.
    #[inline(always)]
    pub fn tag(self) -> Option<u32> {
        immediate(self.word).is_none().then_some((self.word.addr() & TAG) as u32)
    }

    /// The handle, if this is an object of the type.
    #[inline(always)]
    pub fn cast<T: Member<F>>(self) -> Option<Gc<'s, T>> {
        let tag = self.tag()?;
        if T::TAGS >> tag & 1 == 0 {
            return None;
        }
        let object = NonNull::new(self.word.cast::<T>().wrapping_byte_sub(tag as usize))?;
        // SAFETY: `of` and `Scope::root_word` made this word from an object that the scope keeps. Its tag
        // belongs to `T` alone, by the condition of `Family`.
        Some(unsafe { Gc::new(object) })
    }

    /// True if both are equal immediates, or the same object with the same tag.
    #[inline(always)]
    pub fn is(self, other: Any<'_, F>) -> bool {
        self.word.addr() == other.word.addr()
    }

    #[inline(always)]
    pub(crate) fn word(self) -> *mut () {
        self.word
    }

    /// A value that is read while another reference keeps its object; never cast to a handle.
    #[inline(always)]
    pub(crate) fn borrowed(word: *mut ()) -> Any<'s, F> {
        Any { word, scope: PhantomData }
    }
}

/// A part of an object that holds an [`Any`]. Only [`Scope::put`] sets it, for the same reasons as
/// [`Scope::set`] for a [`Field`](crate::Field).
#[repr(transparent)]
pub struct Word<F> {
    word: AtomicPtr<()>,
    family: PhantomData<Of<F>>,
}

// SAFETY: the type is one word, and that word is the field.
unsafe impl<F: Family> Object for Word<F> {
    const POINTERS: Pointers = Pointers::ONE;
}

impl<F: Family> Word<F> {
    /// An immediate.
    ///
    /// # Panics
    /// As [`Any::immediate`].
    #[inline(always)]
    pub const fn new(bits: u64) -> Word<F> {
        Word { word: AtomicPtr::new(Any::<F>::immediate(bits).word), family: PhantomData }
    }

    /// The value.
    #[inline(always)]
    pub fn get<'s>(&self, scope: &Scope<'s>) -> Any<'s, F> {
        scope.root_word(self.load())
    }

    /// The bits of an immediate; `None` for an object. Makes no handle.
    #[inline(always)]
    pub fn bits(&self) -> Option<u64> {
        immediate(self.load())
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> *mut () {
        self.word.load(Ordering::Acquire)
    }
}

impl<F: Family> Default for Word<F> {
    fn default() -> Self {
        Word::new(0)
    }
}

impl<F> fmt::Debug for Word<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Word({:p})", self.word.load(Ordering::Relaxed))
    }
}

impl<'s> Scope<'s> {
    /// A value of this scope, from a word that keeps its object until now.
    #[inline(always)]
    pub(crate) fn root_word<F: Family>(&self, word: *mut ()) -> Any<'s, F> {
        if immediate(word).is_none() {
            self.enter(word.wrapping_byte_sub(word.addr() & TAG));
        }
        Any { word, scope: PhantomData }
    }

    /// A value of this scope, from a value of another scope: see [`Scope::keep`].
    #[inline(always)]
    pub fn keep_any<F: Family>(&self, value: Any<'_, F>) -> Any<'s, F> {
        self.root_word(value.word)
    }

    /// Stores `value` in `word`, which is a part of `object`.
    ///
    /// # Panics
    /// If `word` is not a part of the object.
    #[inline(always)]
    pub fn put<T: Object, F: Family>(&self, object: Gc<'_, T>, word: &Word<F>, value: Any<'_, F>) {
        let place = std::ptr::from_ref(word);
        let offset = place.addr().wrapping_sub(object.as_ptr().addr());
        assert!(T::has_field(object.object(), offset), "a word that is set is a part of the object");
        word.word.store(value.word, Ordering::Release);
        gc::wrote(place.cast());
    }
}
