//! Tests of the command `vellum`, in one program, as linking takes longest.
//!
//! Each module tests a subcommand, or a promise of several. Tests in `alone` run with nothing
//! beside them.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/python.rs"]
mod python;

mod alone;
mod cost;
mod doctor;
mod exit;
mod gc_stat;
mod govern;
mod heap;
mod heap_collected;
mod heap_page;
mod heap_storms;
mod install;
mod kill;
mod reports;
mod terminal;
mod top;
mod trace;
mod transparent;
mod watch;
