//! Vellum where it takes minutes, an emulator, or programs of others. One executable for all.

mod aarch64;
mod common;
mod injected;
mod libgc;
#[path = "../../../../crates/cli/tests/cli/libgc_programs.rs"]
mod libgc_programs;
mod storms;
