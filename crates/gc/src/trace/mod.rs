//! Tracing: from roots to everything alive.
//!
//! | file | what it is |
//! | --- | --- |
//! | `roots` | static data, by the loader's list; the program's roots callback |
//! | `frames` | pointers on stacks whose places are exact |
//! | `mark`, `movement` | the marker, and whether it copies the objects that it meets |
//! | `parallel`, `mark_bytes` | marking by several threads |
//! | `root_statistics` | counts of ambiguous roots |
//!
//! # Invariants
//! * The world stands still. The mark stack is bounded; the blocks of objects without room are scanned again.
//! * The marker is independent of plans: what moves, and where to, is its `Movement`'s concern.
//!
//! Sources: Smith and Morrisett 1998, section 2.2.1; Cher, Hosking and Vitek 2004 (the queue).

pub(crate) mod frames;
#[cfg(test)]
mod graph;
pub(crate) mod mark;
pub(crate) mod mark_bytes;
pub(crate) mod movement;
pub(crate) mod parallel;
pub(crate) mod root_statistics;
pub(crate) mod roots;
