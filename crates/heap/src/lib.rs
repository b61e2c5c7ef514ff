//! Vellum's garbage collector, for Rust programs, with no `unsafe` in them.
//!
//! ```
//! use vellum_heap::{Field, Heap, object};
//!
//! object! {
//!     #[derive(Default)]
//!     struct Pair {
//!         head: Field<Pair>,
//!         tail: Field<Pair>,
//!         number: u64,
//!     }
//! }
//!
//! let sum = Heap::get().scope(|scope| {
//!     let mut list = None;
//!     for number in 1..=10 {
//!         let pair = scope.alloc(Pair { number, ..Pair::default() })?;
//!         scope.set(pair, &pair.tail, list);
//!         list = Some(pair);
//!     }
//!     let mut sum = 0;
//!     while let Some(pair) = list {
//!         sum += pair.number;
//!         list = pair.tail.get(scope);
//!     }
//!     Ok::<_, vellum_heap::OutOfMemory>(sum)
//! })?;
//! assert_eq!(sum, 55);
//! # Ok::<(), vellum_heap::OutOfMemory>(())
//! ```
//!
//! # Words
//! An *object* ([`Object`]) is a value that lies in the collected heap; the macro [`object!`] makes a type
//! one, and says where its pointers are. A *handle* ([`Gc`]) is a copyable pointer to one, which a *scope*
//! ([`Scope`]) keeps alive as long as it lasts. A *field* ([`Field`]) is a pointer from object to object.
//! What must outlive every scope is held by a [`Root`]; what must not keep its object, by a [`Weak`].
//!
//! For languages whose values have types at run time there are *families* of types ([`family!`]), *words*
//! ([`Word`]), which lead to objects of any of these or are immediates, and the machine's [`Stack`] of them.
//!
//! ```text
//! stack, Vec, Box ... ── Gc<'s, T> ──▶ object ── Field<U> ──▶ object
//!                           │            ▲ ▲
//! scope: a list of them ◀───┘ keeps ─────┘ │
//! Root<T>: static, 'static ────── keeps ───┘
//! ```
//!
//! # Why it is safe
//! * The collector scans stacks, but not memory of `Box` or `Vec`. So each handle is entered
//!   in its scope's list, which the collector does scan; and a handle's lifetime is the scope's, so
//!   that it cannot be kept for longer, wherever it lies.
//! * What a list leads to does not move, so `&T` from a handle stays valid, whatever is allocated meanwhile.
//!   All else may move.
//! * A field that is not null lies in an object: it is set by [`Scope::set`] only, which checks that, and
//!   there is no way to move it out. So a reader of one ([`Field::get`]) gets what the collector knows of.
//!   Where the type is known, the check costs nothing.
//! * Objects have no destructors, which would see others after theirs (`alloc` does not compile for a type
//!   that has one). A finalizer ([`Gc::on_death`]) sees an object whose referents are all there.
//! * Any thread may have handles to any object: objects are [`Sync`], and what changes in them is fields and
//!   atomics. Only a thread that the collector can stop changes a field, as that takes a scope of its own.
//! * In [`Heap::blocking`] a thread can reach no scope; what it may reach of the heap by other ways panics.
//! * A word's tag says its object's type, as each tag means one type; so pointers into objects must count
//!   (`only_starts` is refused).
//! * Stacks are scanned always: a heap that relies on frames of the program's own (`precise_stacks`) is
//!   refused, as there are none here.
//!
//! There is one heap a process. The functions of `vellum_gc`, C functions under Rust names, do not know of
//! these rules: a program that uses both must keep them itself.
//!
//! # Costs
//! A handle is a store into the scope's list. A loop that walks far should open a scope for each stretch, and
//! take what it needs beyond by [`Scope::keep`]: the list grows with each `get`.
//!
//! # Source
//! Scopes of handles are those of V8 and the Java Native Interface, where they are checked by nobody;
//! lifetimes that end with a scope and so check it are a well-known use of Rust's.

mod array;
mod ephemeron;
mod field;
mod finalizer;
mod handle;
mod handles;
mod heap;
mod object;
mod root;
mod scope;
mod stack;
mod weak;
mod word;

pub use array::Array;
pub use ephemeron::Keyed;
pub use field::Field;
pub use finalizer::Order;
pub use handle::Gc;
pub use heap::{Heap, Held, StartError};
pub use object::{Object, Plain, Pointers, TypeCell};
pub use root::Root;
pub use scope::Scope;
pub use stack::Stack;
pub use vellum_gc::{AfterMajor, Config, Plan, Sizing, Stats};
pub use weak::Weak;
#[doc(hidden)]
pub use word::are_disjoint;
pub use word::{Any, Family, IMMEDIATE_MIN, Member, Word};

/// There is no memory for that many bytes, or none below the heap's limits, after a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "the collected heap has no room for {} bytes more: raise its limit, or hold on to less",
            self.bytes
        )
    }
}

impl std::error::Error for OutOfMemory {}
