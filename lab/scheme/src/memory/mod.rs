//! The interpreter's interface to memory: values, scopes, and the machine's stack.
//!
//! Two files implement the same few functions; a Cargo feature chooses one of them:
//!
//! | file | memory | feature |
//! | --- | --- | --- |
//! | `vellum.rs` | Vellum's collector, by `vellum-heap`, without `unsafe` | (default) |
//! | `libgc.rs` | the Boehm-Demers-Weiser collector, by its C interface | `libgc` |
//!
//! The first is the example. The other is for comparison: the words of values, the machine and the programs
//! are the same.
//!
//! # Words
//! A *value* is an immediate (`immediate`) or an object. An object has a [`Kind`], and one of four shapes: a
//! pair, slots, text, bytes. A *scope* is a stretch of time in which values may also be held outside objects
//! and stacks.

#[cfg(feature = "libgc")]
mod libgc;
#[cfg(not(feature = "libgc"))]
mod vellum;

#[cfg(feature = "libgc")]
pub use libgc::{Scope, Stack, Value, Weak, in_scope, start, statistics};
#[cfg(not(feature = "libgc"))]
pub use vellum::{Scope, Stack, Value, Weak, in_scope, start, statistics};

use crate::immediate as word;

/// The kind of an object, which is also the tag of the pointers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Two slots: [`CAR`] and [`CDR`].
    Pair = 0,
    /// Slots: elements.
    Vector = 1,
    /// Slots: the place of the code, and the values of captured variables.
    Closure = 2,
    /// Slots: its type, and its fields.
    Record = 3,
    /// One slot: a variable that is both captured and assigned to.
    Cell = 4,
    /// Slots: a copy of the stack.
    Continuation = 5,
    /// Slots: several values.
    Values = 6,
    /// Slots: the number of entries, and a vector of lists of pairs.
    Table = 7,
    /// Slots: see `primitives::ports`.
    Port = 8,
    /// Slots: a record type's name and the names of its fields.
    Type = 9,
    /// Slots: whether the value is computed, and the value or the procedure that computes it.
    Promise = 10,
    /// Immutable text.
    Text = 11,
    /// Text with one object for each name.
    Symbol = 12,
    /// Mutable bytes.
    Bytes = 13,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::Pair,
        Kind::Vector,
        Kind::Closure,
        Kind::Record,
        Kind::Cell,
        Kind::Continuation,
        Kind::Values,
        Kind::Table,
        Kind::Port,
        Kind::Type,
        Kind::Promise,
        Kind::Text,
        Kind::Symbol,
        Kind::Bytes,
    ];

    #[inline(always)]
    fn of(tag: u32) -> Kind {
        Kind::ALL[tag as usize]
    }
}

/// A pair's first slot.
pub const CAR: usize = 0;
/// A pair's second slot.
pub const CDR: usize = 1;

/// Memory for an object ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The requested bytes.
    pub bytes: usize,
}

impl<'s> Value<'s> {
    /// `()`.
    pub fn nil() -> Value<'s> {
        Value::immediate(word::NIL)
    }

    /// The unspecified value.
    pub fn unspecified() -> Value<'s> {
        Value::immediate(word::UNSPECIFIED)
    }

    /// `#t` or `#f`.
    pub fn boolean(holds: bool) -> Value<'s> {
        Value::immediate(word::boolean(holds))
    }

    /// An integer, which must fit.
    pub fn integer(number: i64) -> Value<'s> {
        Value::immediate(word::integer(number))
    }

    /// An inexact number.
    pub fn float(number: f64) -> Value<'s> {
        Value::immediate(word::float(number))
    }

    /// A character.
    pub fn character(character: char) -> Value<'s> {
        Value::immediate(word::character(character))
    }

    /// The integer that it is.
    pub fn as_integer(&self) -> Option<i64> {
        self.bits().and_then(word::as_integer)
    }

    /// The character that it is.
    pub fn as_character(&self) -> Option<char> {
        self.bits().and_then(word::as_character)
    }

    /// Whether it is this immediate.
    pub fn is_immediate(&self, bits: u64) -> bool {
        self.bits() == Some(bits)
    }

    /// Whether it is `()`.
    pub fn is_nil(&self) -> bool {
        self.is_immediate(word::NIL)
    }

    /// Whether it is `#f`.
    pub fn is_false(&self) -> bool {
        self.is_immediate(word::FALSE)
    }

    /// Whether it is an object of the kind.
    pub fn is_a(&self, kind: Kind) -> bool {
        self.kind() == Some(kind)
    }

    /// An object with these values in its slots.
    pub fn of_slots(scope: &Scope<'s>, kind: Kind, slots: &[&Value<'_>]) -> Result<Value<'s>, OutOfMemory> {
        let object = Value::slots(scope, kind, slots.len(), word::UNSPECIFIED)?;
        for (index, slot) in slots.iter().enumerate() {
            object.set(scope, index, slot);
        }
        Ok(object)
    }
}
