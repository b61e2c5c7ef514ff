//! The program's interface: the functions that the crate exports, except for allocation (`mutator::alloc`).
//!
//! Each takes the heap's lock by `mutator::access`, pins its arguments meanwhile, and leaves the work to the
//! part that it belongs to.
//!
//! # Invariants
//! * Nothing else in the crate depends on a file of this folder.

pub(crate) mod disclaimers;
pub(crate) mod ephemerons;
pub(crate) mod explicit_free;
pub(crate) mod finalizers;
pub(crate) mod links;
pub(crate) mod objects;
pub(crate) mod roots;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod stop_the_world;
pub(crate) mod uncollectable;
