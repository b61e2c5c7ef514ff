//! Values, objects and stacks over any allocator: the common part of `counted` and `libgc`.
//!
//! ```text
//! pair:  (head) | car | cdr
//! slots: (head) | len | slot 0 | slot 1 ...
//! bytes: (head) | len | bytes ...
//! ```
//!
//! The words are those of `vellum.rs`: the same immediates, the same tags in pointers. The head is the
//! reference count; `libgc` has no head.

use super::{CAR, Kind, OutOfMemory};
use crate::immediate;
use std::alloc::Layout;
use std::cell::Cell;
use std::marker::PhantomData;

pub(super) const TAG: u64 = 15;
const WORD: usize = 8;
/// Initial words of a stack.
const STACK_MIN: usize = 512;

/// A memory manager.
///
/// # Safety
/// The words returned by `allocate` may be read and written, and are aligned to 16 bytes. They live as long
/// as a retained word, a slot or the Rust stack holds them.
pub unsafe trait Store: std::fmt::Debug + 'static {
    /// Words before the object's first word.
    const HEAD: usize;
    /// A new object of `bytes` bytes, which may contain words if `scanned`; null without memory.
    fn allocate(bytes: usize, scanned: bool) -> *mut u64;
    /// Adds a reference.
    fn retain(word: u64);
    /// Drops a reference.
    fn release(word: u64);
    /// Adds or removes words outside objects that hold references.
    fn roots(words: &[Cell<u64>], are_added: bool);
}

#[inline(always)]
pub(super) const fn is_object(word: u64) -> bool {
    word.wrapping_sub(1) < (1 << 48) - 1
}

#[inline(always)]
pub(super) const fn object(word: u64) -> *mut u64 {
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
#[derive(Debug)]
pub struct Value<'s, S: Store> {
    word: u64,
    scope: PhantomData<(&'s (), S)>,
}

impl<S: Store> Clone for Value<'_, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        Value::shared(self.word)
    }
}

impl<S: Store> Drop for Value<'_, S> {
    #[inline(always)]
    fn drop(&mut self) {
        S::release(self.word);
    }
}

#[allow(missing_docs, reason = "as in `vellum.rs`")]
impl<'s, S: Store> Value<'s, S> {
    /// A value of a word that another reference holds.
    #[inline(always)]
    fn shared(word: u64) -> Value<'s, S> {
        S::retain(word);
        Value { word, scope: PhantomData }
    }

    /// The word, whose reference passes to the caller.
    #[inline(always)]
    fn into_word(self) -> u64 {
        std::mem::ManuallyDrop::new(self).word
    }

    #[inline(always)]
    pub fn immediate(bits: u64) -> Value<'s, S> {
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
    pub fn is(&self, other: &Value<'_, S>) -> bool {
        self.word == other.word
    }

    #[inline(always)]
    pub fn kept<'t>(&self, _scope: &Scope<'t>) -> Value<'t, S> {
        Value::shared(self.word)
    }

    fn new(kind: Kind, bytes: usize, scanned: bool) -> Result<Value<'s, S>, OutOfMemory> {
        let bytes = bytes + S::HEAD * WORD;
        let place = S::allocate(bytes, scanned);
        if place.is_null() {
            return Err(OutOfMemory { bytes });
        }
        Ok(Value { word: place.expose_provenance() as u64 | kind as u64, scope: PhantomData })
    }

    /// The object's own word at `index`.
    #[inline(always)]
    fn own(&self, index: usize) -> *mut u64 {
        assert!(is_object(self.word), "an object");
        object(self.word).wrapping_add(S::HEAD + index)
    }

    #[inline(always)]
    pub fn pair(
        _scope: &Scope<'s>,
        car: &Value<'_, S>,
        cdr: &Value<'_, S>,
    ) -> Result<Value<'s, S>, OutOfMemory> {
        let pair = Value::new(Kind::Pair, 2 * WORD, true)?;
        // SAFETY: both words lie in the new pair.
        unsafe {
            pair.own(0).write(car.clone().into_word());
            pair.own(1).write(cdr.clone().into_word());
        }
        Ok(pair)
    }

    pub fn slots(_scope: &Scope<'s>, kind: Kind, len: usize, fill: u64) -> Result<Value<'s, S>, OutOfMemory> {
        let slots = Value::new(kind, (len + 1) * WORD, true)?;
        // SAFETY: the words lie in the new object; immediates need no reference count.
        unsafe {
            slots.own(0).write(len as u64);
            (1..=len).for_each(|index| slots.own(index).write(fill));
        }
        Ok(slots)
    }

    fn of_bytes(kind: Kind, bytes: &[u8]) -> Result<Value<'s, S>, OutOfMemory> {
        let value = Value::new(kind, WORD + bytes.len(), false)?;
        // SAFETY: the new object is large enough for the length and the bytes.
        unsafe {
            value.own(0).write(bytes.len() as u64);
            value.own(1).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Ok(value)
    }

    pub fn text(_scope: &Scope<'s>, kind: Kind, text: &str) -> Result<Value<'s, S>, OutOfMemory> {
        Value::of_bytes(kind, text.as_bytes())
    }

    pub fn bytes(_scope: &Scope<'s>, bytes: &[u8]) -> Result<Value<'s, S>, OutOfMemory> {
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
    pub fn get<'t>(&self, _scope: &Scope<'t>, index: usize) -> Value<'t, S> {
        // SAFETY: `slot` returns a slot of the object, which holds a reference to its word.
        Value::shared(unsafe { *self.slot(index) })
    }

    #[inline(always)]
    pub fn set(&self, _scope: &Scope<'_>, index: usize, value: &Value<'_, S>) {
        // SAFETY: `slot` returns a slot of the object; its old word is released after the new one is stored.
        S::release(unsafe { self.slot(index).replace(value.clone().into_word()) });
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

/// A symbol, which is never collected here: neither manager has weak references as cheap as Vellum's.
#[derive(Debug)]
pub struct Weak<S: Store>(u64, PhantomData<S>);

#[allow(missing_docs, reason = "as in `vellum.rs`")]
impl<S: Store> Weak<S> {
    pub fn new(symbol: &Value<'_, S>) -> Result<Weak<S>, OutOfMemory> {
        thread_local! {
            static KEPT: Cell<Vec<Box<dyn std::any::Any>>> = const { Cell::new(Vec::new()) };
        }
        let mut all = KEPT.take();
        let is_full = |stack: &Stack<S>| stack.len == stack.words.len();
        if all.last().and_then(|last| last.downcast_ref()).is_none_or(is_full) {
            all.push(Box::new(Stack::<S>::new()?));
        }
        let last = all.last_mut().and_then(|last| last.downcast_mut::<Stack<S>>());
        last.expect("just made").push(symbol)?;
        KEPT.set(all);
        Ok(Weak(symbol.word, PhantomData))
    }

    pub fn get<'s>(&self, _scope: &Scope<'s>) -> Option<Value<'s, S>> {
        Some(Value::shared(self.0))
    }
}

/// A stack of values.
#[derive(Debug)]
pub struct Stack<S: Store> {
    words: Box<[Cell<u64>]>,
    len: usize,
    store: PhantomData<S>,
}

impl<S: Store> Drop for Stack<S> {
    fn drop(&mut self) {
        self.truncate(0);
        S::roots(&self.words, false);
    }
}

#[allow(missing_docs, reason = "as in `vellum.rs`")]
impl<S: Store> Stack<S> {
    fn with(words: usize) -> Stack<S> {
        let words: Box<[Cell<u64>]> = vec![Cell::new(0); words].into();
        S::roots(&words, true);
        Stack { words, len: 0, store: PhantomData }
    }

    pub fn new() -> Result<Stack<S>, OutOfMemory> {
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
        S::retain(word);
        self.words[self.len].set(word);
        self.len += 1;
        Ok(())
    }

    #[cold]
    fn resize(&mut self, words: usize) {
        let new: Box<[Cell<u64>]> = vec![Cell::new(0); words].into();
        new.iter().zip(&self.words[..self.len]).for_each(|(new, old)| new.set(old.get()));
        S::roots(&new, true);
        S::roots(&self.words, false);
        self.words = new;
    }

    #[inline(always)]
    pub fn push(&mut self, value: &Value<'_, S>) -> Result<(), OutOfMemory> {
        self.push_word(value.word)
    }

    #[inline(always)]
    pub fn push_slot(&mut self, object: &Value<'_, S>, index: usize) -> Result<(), OutOfMemory> {
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
    pub fn get<'s>(&self, index: usize, _scope: &Scope<'s>) -> Value<'s, S> {
        Value::shared(self.at(index).get())
    }

    #[inline(always)]
    pub fn bits(&self, index: usize) -> Option<u64> {
        let word = self.at(index).get();
        (!is_object(word)).then_some(word)
    }

    #[inline(always)]
    pub fn set(&mut self, index: usize, value: &Value<'_, S>) {
        S::release(self.at(index).replace(value.clone().into_word()));
    }

    #[inline(always)]
    pub fn pop<'s>(&mut self, _scope: &Scope<'s>) -> Value<'s, S> {
        self.len -= 1;
        Value { word: self.words[self.len].replace(0), scope: PhantomData }
    }

    #[inline(always)]
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.len -= 1;
            S::release(self.words[self.len].replace(0));
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
