//! Tracing: from roots to everything alive.
//!
//! | file | what it is |
//! | --- | --- |
//! | `roots`, `loader` | static data; the loader's list of it, kept unchanged meanwhile |
//! | `stack`, `frames` | stacks |
//! | `callbacks`, `visitor` | functions of the program's |
//! | `mark`, `movement` | the marker, and whether it copies the objects that it meets |
//! | `parallel`, `work_packets`, `mark_bytes` | marking by several threads |
//! | `root_statistics` | counts of ambiguous roots |
//!
//! # Invariants
//! * The world stands still. The mark stack is bounded; objects that found no room are found again by their
//!   blocks.
//! * The marker knows nothing of plans: what moves, and where to, is its `Movement`'s concern.
//!
//! Source: Smith and Morrisett 1998, section 2.2.1; the queue in front of the mark stack: Cher, Hosking and
//! Vitek 2004.

pub(crate) mod callbacks;
pub(crate) mod frames;
pub(crate) mod loader;
pub(crate) mod mark;
pub(crate) mod mark_bytes;
pub(crate) mod movement;
pub(crate) mod parallel;
pub(crate) mod root_statistics;
pub(crate) mod roots;
pub(crate) mod stack;
pub(crate) mod visitor;
pub(crate) mod work_packets;
