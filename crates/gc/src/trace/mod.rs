//! Tracing: marks all objects that can be reached from the roots.
//!
//! | file | contents |
//! | --- | --- |
//! | `roots` | scans static data, by the loader's list, and calls the program's roots callback |
//! | `frames` | marks the objects that *frames* refer to: a program's lists of exact pointers on stacks |
//! | `mark`, `movement` | the marker, and whether it copies the objects that it meets |
//! | `parallel`, `mark_bytes` | marking by several threads |
//! | `root_statistics` | counts of ambiguous roots |
//!
//! # Invariants
//! * The program's threads are stopped.
//! * The mark stack is bounded: if it has no room for an object, the object's block is scanned again.
//! * The marker is independent of plans: its `Movement` decides which objects move, and where to.
//!
//! Sources: Smith and Morrisett 1998, section 2.2.1; Cher, Hosking and Vitek 2004 (the prefetch queue).

pub(crate) mod frames;
#[cfg(test)]
mod graph;
pub(crate) mod mark;
pub(crate) mod mark_bytes;
pub(crate) mod movement;
pub(crate) mod parallel;
pub(crate) mod root_statistics;
pub(crate) mod roots;
