//! The mutator: the program's threads, how they allocate, and how they are stopped.
//!
//! | file | what it is |
//! | --- | --- |
//! | `thread`, `tls` | a thread's record, and its pointer to that |
//! | `arch` | what of that depends on the machine |
//! | `attach`, `access` | how threads join the heap, and reach it |
//! | `start`, `types` | the start of a heap, and its types |
//! | `alloc`, `supply` | allocation; where blocks come from |
//! | `collect` | when an allocation collects |
//! | `stop` | stopping the world |
//! | `idle`, `idle_thread`, `idle_signal` | collection while the program waits |
//! | `budget` | how long a slice may last |
//!
//! # Invariants
//! * A thread that is inside the collector is not stopped; it stops itself when it leaves.
//! * Allocation within a block takes no lock and no atomic operation.
//!
//! Source: Bates, "Improving the Results", for idle time and for yielding.

pub(crate) mod access;
pub(crate) mod alloc;
pub(crate) mod arch;
pub(crate) mod attach;
pub(crate) mod budget;
pub(crate) mod collect;
pub(crate) mod idle;
pub(crate) mod idle_signal;
pub(crate) mod idle_thread;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod supply;
pub(crate) mod thread;
pub(crate) mod tls;
pub(crate) mod types;
