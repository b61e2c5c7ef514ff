//! All stress tests, in one executable: those that need minutes, an emulator, or other projects' programs.

mod aarch64;
mod common;
mod injected;
mod libgc;
#[path = "../../../../crates/cli/tests/cli/libgc_programs.rs"]
mod libgc_programs;
mod storms;
