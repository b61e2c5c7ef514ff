//! Tests of Vellum that need minutes, an emulator, or programs of others, in one executable.

mod aarch64;
mod common;
mod injected;
mod libgc;
#[path = "../../../../crates/cli/tests/cli/libgc_programs.rs"]
mod libgc_programs;
mod storms;
