//! Tests of Vellum with whole programs: they check, from outside, what the runtime guarantees to a process.
//!
//! Most tests run a program twice, with `libvellum.so` preloaded and without it. Its output and its exit
//! status must be the same. The programs are real ones (interpreters, compilers, databases, debuggers) and
//! the small programs in `c/`. Each scenario (test case) of these small programs tests one guarantee of the
//! interface; `docs/malloc.md` lists the guarantees.
//!
//! This library has the helpers of those tests:
//!
//! | module | contents |
//! | --- | --- |
//! | [`mod@library`] | finds the `libvellum.so` under test |
//! | [`run`] | runs a command under a watchdog, with or without Vellum, and reads its processes' counters |
//! | [`program`] | compiles the programs of `c/`, each once, and finds external tools |
//! | [`scenario`] | runs the scenarios of a program of `c/` both ways, and reports all that failed |
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
