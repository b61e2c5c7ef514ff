//! Memory by the Boehm-Demers-Weiser collector, through its C interface (`gc.h`, Debian's libgc-dev), for
//! comparison with Vellum's. The layout of objects:
//!
//! ```text
//! pair:  car | cdr
//! slots: len | slot 0 | slot 1 ...
//! bytes: len | bytes ...
//! ```
//!
//! Values have the same words as in `vellum.rs`: the same immediates, the same tags in pointers. The setup
//! is usual for such tags. Only pointers with a tag's offset count as pointers into objects, so a pair takes
//! 16 bytes. Slots are scanned conservatively, text and bytes not at all. Other settings are the defaults.

use super::{CAR, Kind, OutOfMemory};
use crate::immediate;
use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

const TAG: u64 = 15;
const WORD: usize = 8;
/// Initial words of a stack.
const STACK_MIN: usize = 512;

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

/// Adds or removes words outside objects that the collector scans.
fn roots(words: &[Cell<u64>], are_added: bool) {
    let range = words.as_ptr_range();
    let (start, end) = (range.start.cast_mut().cast(), range.end.cast_mut().cast());
    // SAFETY: the range is the words of a live stack, which removes it before it is freed.
    unsafe { if are_added { GC_add_roots(start, end) } else { GC_remove_roots(start, end) } };
}

#[inline(always)]
const fn is_object(word: u64) -> bool {
    word.wrapping_sub(1) < (1 << 48) - 1
}

#[inline(always)]
const fn object(word: u64) -> *mut u64 {
    std::ptr::with_exposed_provenance_mut((word & !TAG) as usize)
}

/// A scope, which keeps nothing alive here.
#[derive(Debug)]
pub struct Scope<'s>(PhantomData<Cell<&'s ()>>);

/// Calls `body` with a scope.
#[inline(always)]
pub fn in_scope<R>(body: impl for<'s> FnOnce(&Scope<'s>) -> R) -> R {
    body(&Scope(PhantomData))
}

/// An immediate or an object.
#[derive(Clone, Debug)]
pub struct Value<'s> {
    word: u64,
    scope: PhantomData<&'s ()>,
}

#[allow(missing_docs, clippy::len_without_is_empty, reason = "as in `vellum.rs`")]
impl<'s> Value<'s> {
    /// A value of a word.
    #[inline(always)]
    fn shared(word: u64) -> Value<'s> {
        Value { word, scope: PhantomData }
    }

    #[inline(always)]
    pub fn immediate(bits: u64) -> Value<'s> {
        Value { word: bits, scope: PhantomData }
    }

    #[inline(always)]
    pub fn bits(&self) -> Option<u64> {
        (!is_object(self.word)).then_some(self.word)
    }

    #[inline(always)]
    pub fn kind(&self) -> Option<Kind> {
        is_object(self.word).then(|| Kind::of((self.word & TAG) as u32))
    }

    #[inline(always)]
    pub fn is(&self, other: &Value<'_>) -> bool {
        self.word == other.word
    }

    #[inline(always)]
    pub fn kept<'t>(&self, _scope: &Scope<'t>) -> Value<'t> {
        Value::shared(self.word)
    }

    fn new(kind: Kind, bytes: usize, scanned: bool) -> Result<Value<'s>, OutOfMemory> {
        // SAFETY: `start` has initialised the collector.
        let place: *mut u64 =
            unsafe { if scanned { GC_malloc(bytes) } else { GC_malloc_atomic(bytes) }.cast() };
        if place.is_null() {
            return Err(OutOfMemory { bytes });
        }
        Ok(Value { word: place.expose_provenance() as u64 | kind as u64, scope: PhantomData })
    }

    /// The object's own word at `index`.
    #[inline(always)]
    fn own(&self, index: usize) -> *mut u64 {
        assert!(is_object(self.word), "an object");
        object(self.word).wrapping_add(index)
    }

    #[inline(always)]
    pub fn pair(_scope: &Scope<'s>, car: &Value<'_>, cdr: &Value<'_>) -> Result<Value<'s>, OutOfMemory> {
        let pair = Value::new(Kind::Pair, 2 * WORD, true)?;
        // SAFETY: both words lie in the new pair.
        unsafe {
            pair.own(0).write(car.word);
            pair.own(1).write(cdr.word);
        }
        Ok(pair)
    }

    pub fn slots(_scope: &Scope<'s>, kind: Kind, len: usize, fill: u64) -> Result<Value<'s>, OutOfMemory> {
        let slots = Value::new(kind, (len + 1) * WORD, true)?;
        // SAFETY: the words lie in the new object.
        unsafe {
            slots.own(0).write(len as u64);
            (1..=len).for_each(|index| slots.own(index).write(fill));
        }
        Ok(slots)
    }

    fn of_bytes(kind: Kind, bytes: &[u8]) -> Result<Value<'s>, OutOfMemory> {
        let value = Value::new(kind, WORD + bytes.len(), false)?;
        // SAFETY: the new object is large enough for the length and the bytes.
        unsafe {
            value.own(0).write(bytes.len() as u64);
            value.own(1).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Ok(value)
    }

    pub fn text(_scope: &Scope<'s>, kind: Kind, text: &str) -> Result<Value<'s>, OutOfMemory> {
        Value::of_bytes(kind, text.as_bytes())
    }

    pub fn bytes(_scope: &Scope<'s>, bytes: &[u8]) -> Result<Value<'s>, OutOfMemory> {
        Value::of_bytes(Kind::Bytes, bytes)
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        // SAFETY: every object but a pair has its length in its first word.
        if self.kind() == Some(Kind::Pair) { 2 } else { unsafe { *self.own(0) as usize } }
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> *mut u64 {
        match self.kind() {
            Some(Kind::Pair) => self.own(usize::from(index != CAR)),
            Some(Kind::Text | Kind::Symbol | Kind::Bytes) | None => panic!("an object of slots"),
            Some(_) => {
                assert!(index < self.len(), "a slot of the object");
                self.own(index + 1)
            }
        }
    }

    #[inline(always)]
    pub fn get<'t>(&self, _scope: &Scope<'t>, index: usize) -> Value<'t> {
        // SAFETY: `slot` returns a slot of the object.
        Value::shared(unsafe { *self.slot(index) })
    }

    #[inline(always)]
    pub fn set(&self, _scope: &Scope<'_>, index: usize, value: &Value<'_>) {
        // SAFETY: `slot` returns a slot of the object.
        unsafe { self.slot(index).write(value.word) };
    }

    pub fn as_text(&self) -> &str {
        if !matches!(self.kind(), Some(Kind::Text | Kind::Symbol)) {
            return "";
        }
        // SAFETY: the bytes were copied from a `str` and are never changed.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.own(1).cast::<u8>(), self.len());
            std::str::from_utf8_unchecked(bytes)
        }
    }

    fn byte_at(&self, index: usize) -> *mut u8 {
        assert!(self.kind() == Some(Kind::Bytes) && index < self.len(), "a byte of the object");
        self.own(1).cast::<u8>().wrapping_add(index)
    }

    pub fn byte(&self, index: usize) -> u8 {
        // SAFETY: `byte_at` returns a byte of the object.
        unsafe { *self.byte_at(index) }
    }

    pub fn set_byte(&self, index: usize, byte: u8) {
        // SAFETY: `byte_at` returns a byte of the object, to which no reference exists.
        unsafe { self.byte_at(index).write(byte) }
    }
}

/// A symbol, which is never collected here: libgc has no weak references as cheap as Vellum's.
#[derive(Debug)]
pub struct Weak(u64);

#[allow(missing_docs, clippy::len_without_is_empty, reason = "as in `vellum.rs`")]
impl Weak {
    pub fn new(symbol: &Value<'_>) -> Result<Weak, OutOfMemory> {
        thread_local! {
            static KEPT: Cell<Vec<Stack>> = const { Cell::new(Vec::new()) };
        }
        let mut all = KEPT.take();
        let is_full = |stack: &Stack| stack.len == stack.words.len();
        if all.last().is_none_or(is_full) {
            all.push(Stack::new()?);
        }
        all.last_mut().expect("just made").push(symbol)?;
        KEPT.set(all);
        Ok(Weak(symbol.word))
    }

    pub fn get<'s>(&self, _scope: &Scope<'s>) -> Option<Value<'s>> {
        Some(Value::shared(self.0))
    }
}

/// A stack of values.
#[derive(Debug)]
pub struct Stack {
    words: Box<[Cell<u64>]>,
    len: usize,
}

impl Drop for Stack {
    fn drop(&mut self) {
        roots(&self.words, false);
    }
}

#[allow(missing_docs, clippy::len_without_is_empty, reason = "as in `vellum.rs`")]
impl Stack {
    fn with(words: usize) -> Stack {
        let words: Box<[Cell<u64>]> = vec![Cell::new(0); words].into();
        roots(&words, true);
        Stack { words, len: 0 }
    }

    pub fn new() -> Result<Stack, OutOfMemory> {
        Ok(Stack::with(STACK_MIN))
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn push_word(&mut self, word: u64) -> Result<(), OutOfMemory> {
        if self.len == self.words.len() {
            self.resize(self.len * 2);
        }
        self.words[self.len].set(word);
        self.len += 1;
        Ok(())
    }

    #[cold]
    fn resize(&mut self, words: usize) {
        let new: Box<[Cell<u64>]> = vec![Cell::new(0); words].into();
        new.iter().zip(&self.words[..self.len]).for_each(|(new, old)| new.set(old.get()));
        roots(&new, true);
        roots(&self.words, false);
        self.words = new;
    }

    #[inline(always)]
    pub fn push(&mut self, value: &Value<'_>) -> Result<(), OutOfMemory> {
        self.push_word(value.word)
    }

    #[inline(always)]
    pub fn push_slot(&mut self, object: &Value<'_>, index: usize) -> Result<(), OutOfMemory> {
        // SAFETY: `slot` returns a slot of the object.
        self.push_word(unsafe { *object.slot(index) })
    }

    #[inline(always)]
    pub fn push_copy(&mut self, index: usize, _scope: &Scope<'_>) -> Result<(), OutOfMemory> {
        self.push_word(self.at(index).get())
    }

    #[inline(always)]
    fn at(&self, index: usize) -> &Cell<u64> {
        assert!(index < self.len, "a value lies on the stack");
        &self.words[index]
    }

    #[inline(always)]
    pub fn get<'s>(&self, index: usize, _scope: &Scope<'s>) -> Value<'s> {
        Value::shared(self.at(index).get())
    }

    #[inline(always)]
    pub fn bits(&self, index: usize) -> Option<u64> {
        let word = self.at(index).get();
        (!is_object(word)).then_some(word)
    }

    #[inline(always)]
    pub fn set(&mut self, index: usize, value: &Value<'_>) {
        self.at(index).set(value.word);
    }

    #[inline(always)]
    pub fn pop<'s>(&mut self, _scope: &Scope<'s>) -> Value<'s> {
        self.len -= 1;
        Value { word: self.words[self.len].replace(0), scope: PhantomData }
    }

    #[inline(always)]
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.len -= 1;
            self.words[self.len].set(0);
        }
    }

    #[inline(always)]
    pub fn slide(&mut self, from: usize, count: usize, _scope: &Scope<'_>) {
        let first = self.len - count;
        for index in 0..count {
            let below = self.words[from + index].replace(self.words[first + index].get());
            self.words[first + index].set(below);
        }
        self.truncate(from + count);
    }

    pub fn shrink(&mut self) -> Result<(), OutOfMemory> {
        let mut words = self.words.len();
        while words > STACK_MIN && self.len < words / 4 {
            words /= 2;
        }
        if words < self.words.len() {
            self.resize(words);
        }
        Ok(())
    }
}

const _: () = assert!(Layout::new::<u64>().size() == WORD && immediate::NIL >= 1 << 48);
