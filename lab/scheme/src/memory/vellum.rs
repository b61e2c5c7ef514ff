//! Memory by Vellum's collector, an example of its use by a language's runtime. The steps:
//!
//! 1. Declare the objects (`object!`), with a [`Word`] in each field that may hold any value, and the types
//!    that the pointers' tags mean (`family!`).
//! 2. Hold values only by handles in a scope, in slots of objects, or on a [`vellum_heap::Stack`].
//! 3. Open a scope for each stretch of work, and close it soon, since handles accumulate.

use super::{CAR, Kind, OutOfMemory};
use std::sync::atomic::{AtomicU8, Ordering};
use vellum_heap::{Any, Array, Config, Gc, Heap, Word, family, object};

object! {
    /// Two values.
    pub struct Pair { car: Word<Scheme>, cdr: Word<Scheme> }
}

type Slots = Array<Word<Scheme>>;

family! {
    /// Scheme's objects: the tags are [`Kind`]s.
    pub Scheme {
        Pair: 0,
        Slots: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10,
        Array<u8>: 11 | 12,
        Array<AtomicU8>: 13,
    }
}

/// A scope in which values may be held.
pub type Scope<'s> = vellum_heap::Scope<'s>;

/// An immediate, or a handle to an object.
#[derive(Clone, Debug)]
pub struct Value<'s>(Any<'s, Scheme>);

impl From<vellum_heap::OutOfMemory> for OutOfMemory {
    fn from(error: vellum_heap::OutOfMemory) -> OutOfMemory {
        OutOfMemory { bytes: error.bytes }
    }
}

/// Starts the heap; it collects at one allocation in `eager`, if that is not 0.
///
/// # Errors
/// The reason why there is no heap.
pub fn start(eager: u32, seed: u64) -> Result<(), String> {
    let config = Config { eager, seed, poison: eager != 0, ..Config::DEFAULT };
    Heap::start(config).map(|_| ()).map_err(|error| error.to_string())
}

/// Calls `body` with a scope that ends after it.
#[inline(always)]
pub fn in_scope<R>(body: impl for<'s> FnOnce(&Scope<'s>) -> R) -> R {
    Heap::get().scope(body)
}

/// Statistics of the collector, as text.
pub fn statistics() -> String {
    let stats = Heap::get().stats();
    let millis = |nanos: u64| nanos as f64 / 1e6;
    format!(
        "{} collections ({} partial), {:.1} ms in all, longest pause {:.2} ms; allocated {} KiB, heap {} KiB, \
         at most {} KiB, alive at the last collection {} KiB",
        stats.collections,
        stats.partial,
        millis(stats.pause_ns_total),
        millis(stats.pause_ns_longest),
        stats.allocated_bytes >> 10,
        stats.heap_bytes >> 10,
        stats.heap_peak_bytes >> 10,
        stats.live_bytes >> 10,
    )
}

impl<'s> Value<'s> {
    /// An immediate: see `immediate`.
    #[inline(always)]
    pub fn immediate(bits: u64) -> Value<'s> {
        Value(Any::immediate(bits))
    }

    /// The bits of an immediate; `None` for an object.
    #[inline(always)]
    pub fn bits(&self) -> Option<u64> {
        self.0.bits()
    }

    /// The kind of an object.
    #[inline(always)]
    pub fn kind(&self) -> Option<Kind> {
        self.0.tag().map(Kind::of)
    }

    /// Whether both are one immediate or one object.
    #[inline(always)]
    pub fn is(&self, other: &Value<'_>) -> bool {
        self.0.is(other.0)
    }

    /// The same value, valid as long as `scope`.
    #[inline(always)]
    pub fn kept<'t>(&self, scope: &Scope<'t>) -> Value<'t> {
        Value(scope.keep_any(self.0))
    }

    /// A new pair.
    #[inline(always)]
    pub fn pair(scope: &Scope<'s>, car: &Value<'_>, cdr: &Value<'_>) -> Result<Value<'s>, OutOfMemory> {
        let pair = scope.alloc(Pair { car: Word::new(0), cdr: Word::new(0) })?;
        scope.put(pair, &pair.car, car.0);
        scope.put(pair, &pair.cdr, cdr.0);
        Ok(Value(Any::of(pair, Kind::Pair as u32)))
    }

    /// A new object of slots, all set to the immediate `fill`.
    pub fn slots(scope: &Scope<'s>, kind: Kind, len: usize, fill: u64) -> Result<Value<'s>, OutOfMemory> {
        let slots = scope.alloc_array(len, |_| Word::<Scheme>::new(fill))?;
        Ok(Value(Any::of(slots, kind as u32)))
    }

    /// A new text.
    pub fn text(scope: &Scope<'s>, kind: Kind, text: &str) -> Result<Value<'s>, OutOfMemory> {
        Ok(Value(Any::of(scope.alloc_slice(text.as_bytes())?, kind as u32)))
    }

    /// A new object of bytes.
    pub fn bytes(scope: &Scope<'s>, bytes: &[u8]) -> Result<Value<'s>, OutOfMemory> {
        let bytes = scope.alloc_array(bytes.len(), |index| AtomicU8::new(bytes[index]))?;
        Ok(Value(Any::of(bytes, Kind::Bytes as u32)))
    }

    #[inline(always)]
    fn as_slots(&self) -> Option<Gc<'s, Slots>> {
        self.0.cast()
    }

    /// The number of slots or bytes.
    #[expect(clippy::len_without_is_empty, reason = "objects without slots are like others")]
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self.as_slots() {
            Some(slots) => slots.len(),
            None if self.0.cast::<Pair>().is_some() => 2,
            None => {
                let text = self.0.cast::<Array<u8>>().map(|text| text.len());
                text.or_else(|| Some(self.0.cast::<Array<AtomicU8>>()?.len())).unwrap_or(0)
            }
        }
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> &'s Word<Scheme> {
        match self.0.cast::<Pair>() {
            Some(pair) if index == CAR => &pair.as_ref().car,
            Some(pair) => &pair.as_ref().cdr,
            None => &self.as_slots().expect("an object of slots").items()[index],
        }
    }

    /// A slot's value.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline(always)]
    pub fn get<'t>(&self, scope: &Scope<'t>, index: usize) -> Value<'t> {
        Value(self.slot(index).get(scope))
    }

    /// Sets a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline(always)]
    pub fn set(&self, scope: &Scope<'_>, index: usize, value: &Value<'_>) {
        match self.0.cast::<Pair>() {
            Some(pair) => scope.put(pair, self.slot(index), value.0),
            None => scope.put(self.as_slots().expect("an object of slots"), self.slot(index), value.0),
        }
    }

    /// The text of a text or symbol; otherwise "".
    pub fn as_text(&self) -> &str {
        let text = self.0.cast::<Array<u8>>().map_or(&[][..], Gc::items);
        std::str::from_utf8(text).expect("made of text")
    }

    fn at(&self, index: usize) -> &'s AtomicU8 {
        &self.0.cast::<Array<AtomicU8>>().expect("an object of bytes").items()[index]
    }

    /// A byte.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn byte(&self, index: usize) -> u8 {
        self.at(index).load(Ordering::Relaxed)
    }

    /// Sets a byte.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn set_byte(&self, index: usize, byte: u8) {
        self.at(index).store(byte, Ordering::Relaxed);
    }
}

/// A weak reference to a symbol's text.
#[derive(Debug)]
pub struct Weak(vellum_heap::Weak<Array<u8>>);

impl Weak {
    /// A weak reference to a symbol.
    pub fn new(symbol: &Value<'_>) -> Result<Weak, OutOfMemory> {
        let text = symbol.0.cast::<Array<u8>>().expect("a symbol");
        Ok(Weak(vellum_heap::Weak::new(text)?))
    }

    /// The symbol, if it is still alive.
    pub fn get<'s>(&self, scope: &Scope<'s>) -> Option<Value<'s>> {
        self.0.get(scope).map(|text| Value(Any::of(text, Kind::Symbol as u32)))
    }
}

/// A stack of values, which keeps them alive.
#[derive(Debug)]
pub struct Stack(vellum_heap::Stack<Scheme>);

impl Stack {
    /// An empty stack.
    pub fn new() -> Result<Stack, OutOfMemory> {
        Ok(Stack(vellum_heap::Stack::new()?))
    }

    /// The number of values.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "a machine asks for the length only")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a value.
    #[inline(always)]
    pub fn push(&mut self, value: &Value<'_>) -> Result<(), OutOfMemory> {
        Ok(self.0.push(value.0)?)
    }

    /// Adds a slot's value.
    #[inline(always)]
    pub fn push_slot(&mut self, object: &Value<'_>, index: usize) -> Result<(), OutOfMemory> {
        Ok(self.0.push_word(object.slot(index))?)
    }

    /// Adds the value at `index` once more.
    #[inline(always)]
    pub fn push_copy(&mut self, index: usize, scope: &Scope<'_>) -> Result<(), OutOfMemory> {
        Ok(self.0.push_copy(index, scope)?)
    }

    /// The value at `index`.
    #[inline(always)]
    pub fn get<'s>(&self, index: usize, scope: &Scope<'s>) -> Value<'s> {
        Value(self.0.get(index, scope))
    }

    /// The bits of an immediate at `index`.
    #[inline(always)]
    pub fn bits(&self, index: usize) -> Option<u64> {
        self.0.bits(index)
    }

    /// Replaces the value at `index`.
    #[inline(always)]
    pub fn set(&mut self, index: usize, value: &Value<'_>) {
        self.0.set(index, value.0);
    }

    /// Removes the last value.
    #[inline(always)]
    pub fn pop<'s>(&mut self, scope: &Scope<'s>) -> Value<'s> {
        Value(self.0.pop(scope))
    }

    /// Removes all values from `len` on.
    #[inline(always)]
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Removes the values from `from` on but for the last `count`.
    #[inline(always)]
    pub fn slide(&mut self, from: usize, count: usize, scope: &Scope<'_>) {
        self.0.slide(from, count, scope);
    }

    /// Frees memory that a deep recursion used.
    pub fn shrink(&mut self) -> Result<(), OutOfMemory> {
        Ok(self.0.shrink()?)
    }
}
