//! Vellum under real programs: the runtime's guarantees to a process, checked from outside.
//!
//! The tests of the other crates look at Vellum from within. These tests run a program with `libvellum.so`
//! preloaded and again without; its output and its exit status must be the same. The programs are real ones
//! (interpreters, compilers, databases, debuggers) and, in `c/`, small programs that each test one
//! guarantee of the interface. `docs/malloc.md` lists the guarantees.
//!
//! This library has the helpers of those tests:
//!
//! | module | what it does |
//! | --- | --- |
//! | [`mod@library`] | finds the shared object under test |
//! | [`run`] | runs a command under a watchdog, with or without Vellum, and reads its board |
//! | [`program`] | the programs of `c/`, compiled once, and tools |
//! | [`scenario`] | runs every scenario of such a program both ways and reports all that failed |
//!
//! A test whose tool or privilege is missing calls [`skip`] with the reason and passes. No test measures
//! time. The watchdog's deadlines only turn a hang into a failure; any scenario is much shorter.

pub mod library;
pub mod program;
pub mod run;
pub mod scenario;

pub use library::library;
pub use program::{Place, compiled, compiled_by, tool};
pub use run::{Outcome, Seat, plain, same, seated, served, settle, with_args, with_env};
pub use scenario::check_all;
pub use vellum_skip::{Group, skip};
