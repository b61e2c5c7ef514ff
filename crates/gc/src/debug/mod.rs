//! Debug checks: collections at random allocations (`checks`), every invariant of a heap (`validate`), and
//! drawn object graphs for tests (`graph`).
//!
//! # Invariants
//! * While it is off, nothing here is on a path of allocation, except for one test of a flag where a run has
//!   ended.

pub(crate) mod checks;
#[cfg(test)]
mod graph;
pub(crate) mod validate;
