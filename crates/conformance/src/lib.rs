//! Vellum under real programs: what it promises to a process it is preloaded into, checked from outside.
//!
//! The tests of the other crates look at Vellum from within. These look at it as a user does: a
//! program is run with `libvellum.so` preloaded and again without, and nothing the program can say
//! may differ. The programs are real ones (interpreters, compilers, databases, debuggers) and, in
//! `c/`, small ones that each press on one promise of the interface; `docs/malloc.md` lists the
//! promises.
//!
//! This library is what those tests share:
//!
//! | module | what it does |
//! | --- | --- |
//! | [`mod@library`] | finds the shared object under test |
//! | [`run`] | runs a command under a watchdog, with or without Vellum, and reads its board |
//! | [`program`] | the programs of `c/`, compiled once, and tools |
//! | [`scenario`] | runs every scenario of such a program both ways and reports all that failed |
//!
//! A test whose tool or privilege is missing calls [`skip`] with the reason and passes. Nothing is
//! measured in time; the watchdog's deadlines are there so that a hang is a failure, and are far
//! from what any scenario needs.

pub mod library;
pub mod program;
pub mod run;
pub mod scenario;

pub use library::library;
pub use program::{Place, tool};
pub use run::{Outcome, Seat, plain, same, seated, served, settle, with_args};
pub use scenario::check_all;
pub use vellum_skip::{Group, skip};
