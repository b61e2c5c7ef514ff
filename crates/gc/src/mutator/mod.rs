//! The mutator (the program's threads, as the collector sees them): allocation, and the collections that
//! allocation makes.
//!
//! | file | contents |
//! | --- | --- |
//! | `attach`, `access` | attaching threads to the heap, and access to it |
//! | `start`, `types` | the start of a heap, and its types |
//! | `alloc`, `supply` | allocation; where blocks come from |
//! | `collect` | when an allocation collects |
//! | `idle`, `idle_thread` | collection while the program waits |
//! | `run`, `sampling` | calls of the program's functions after a collection |
//!
//! # Invariants
//! * Allocation within a block takes no lock and no atomic operation.
//!
//! Source for collecting in idle time and for yielding: Bates 1999, section "Improving the Results".

pub(crate) mod access;
pub(crate) mod alloc;
pub(crate) mod attach;
pub(crate) mod collect;
pub(crate) mod idle;
pub(crate) mod idle_thread;
pub(crate) mod run;
pub(crate) mod sampling;
pub(crate) mod start;
pub(crate) mod supply;
pub(crate) mod types;
