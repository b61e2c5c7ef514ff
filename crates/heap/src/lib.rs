//! Vellum's garbage collector for Rust programs: a safe interface, so that they need no `unsafe`.
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
//! An *object* ([`Object`]) is a value in the collected heap. The macro [`object!`] declares structures as
//! objects and records where their pointers are. A *handle* ([`Gc`]) is a copyable pointer to an object. A
//! *scope* ([`Scope`]) keeps the objects of its handles alive until it ends. A *field* ([`Field`]) is a
//! pointer from one object to another. A [`Root`] keeps its object alive beyond every scope; a [`Weak`]
//! reference keeps nothing alive.
//!
//! Dynamically typed languages use *families* of types ([`family!`]). A *word* ([`Word`]) holds an immediate
//! (a value without an object) or a pointer to an object of one of the family's types. A [`Stack`] of words
//! serves the language's virtual machine.
//!
//! ```text
//! stack, Vec, Box ... ── Gc<'s, T> ──▶ object ── Field<U> ──▶ object
//!                           │            ▲ ▲
//! scope: a list of handles ◀┘ keeps ─────┘ │
//! Root<T>: static, 'static ────── keeps ───┘
//! ```
//!
//! # Why it is safe
//! * The collector scans stacks, but not memory of `Box` or `Vec`. Each handle is therefore recorded in its
//!   scope's list, which the collector scans. A handle's lifetime is its scope's, so it cannot outlive the
//!   scope, wherever it is stored.
//! * Objects in a scope's list do not move, so `&T` from a handle stays valid during later allocations. All
//!   other objects may move.
//! * A field that is not null lies in an object: [`Scope::set`] alone sets fields and checks this, and a
//!   field cannot be moved out of its object. [`Field::get`] therefore reads only pointers that the collector
//!   sees. The compiler removes the check where it can compute the field's offset.
//! * Objects have no destructors, because a destructor could use an object that is already destroyed. `alloc`
//!   does not compile for types with one. A finalizer ([`Gc::on_death`]) sees its object with all referents.
//! * Any thread may have handles to any object: objects are [`Sync`], and only fields and atomics in them
//!   change. Setting a field needs a scope, so only threads that the collector can stop set fields.
//! * Code in [`Heap::blocking`], which no collection stops, can reach no scope; other heap functions panic.
//! * A tag stands for one type, so a word's tag determines its object's type. Tagged words point into their
//!   objects, so settings that ignore interior pointers (`only_starts`) are refused.
//! * Stacks are always scanned. The setting `precise_stacks`, with which the program describes its stack
//!   frames, is refused, because this interface describes none.
//!
//! There is one heap per process. The functions of `vellum_gc` are C functions under Rust names and do not
//! enforce these rules. A program that uses both interfaces must follow the rules itself.
//!
//! # Costs
//! Each handle costs a store into the scope's list, and each `get` makes a handle. A loop that visits many
//! objects should open a scope for every few objects and move the results out with [`Scope::keep`].
//!
//! # Source
//! V8 and the Java Native Interface have scopes of handles, but do not check them. Here lifetimes check them,
//! a common Rust technique.

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

/// The heap has no memory for that many bytes, or none within its limits, even after a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The requested bytes.
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
