//! Tests of the command `vellum`. They are one test program, because linking takes longest.
//!
//! Each module tests a subcommand, or a guarantee of several. Tests in `alone` run while no other test runs.

mod common;
mod libgc_programs;
mod python;

mod alone;
mod bench;
mod companion;
mod cost;
mod doctor;
mod exit;
mod gc_stat;
mod govern;
mod heap;
mod heap_collected;
mod heap_page;
mod heap_report;
mod heap_storms;
mod install;
mod instructions;
mod kill;
mod libgc;
mod obs;
mod plot;
mod reports;
mod terminal;
mod top;
mod trace;
mod transparent;
mod watch;
