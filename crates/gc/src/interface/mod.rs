//! The program's interface: the functions that the crate exports, except for allocation (`mutator::alloc`).
//!
//! Each function takes the heap's lock by `mutator::access` and calls the folder that does the work. Until
//! the function returns, objects passed to it are pinned: they stay at their addresses.
//!
//! # Invariants
//! * Only `lib.rs` names files of this folder.

pub(crate) mod deaths;
pub(crate) mod kept;
pub(crate) mod objects;
pub(crate) mod roots;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod stop_the_world;
