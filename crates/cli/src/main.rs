//! The command `vellum`: its entry point and the map of its source files.
//!
//! The command is a thin layer over library crates: `vellum-process` starts and watches programs,
//! `vellum-wire` defines the layout of their counters, `vellum-measure` compares times. This crate has the
//! options, texts, tables and pictures.
//!
//! Each subcommand has a folder, or a file if it is short, with one function that [`main`] calls. The
//! function takes the arguments and returns the exit status, or a [`Failure`](failure::Failure) with a
//! message and an exit status. Subcommands share the files that the diagram shows below them:
//!
//! ```text
//! main ─▶ args ─▶ run · compare · cost · heap · bench · plot · trace · watch · govern · top · ...
//!                  │
//!                  ├─▶ observations, explain ─▶ accounts          files of timings, causes of their outliers
//!                  ├─▶ working_set_text, jobs_table, gc_account   tables and sentences of several reports
//!                  ├─▶ environment, outcome, text                 how programs start and end, in words
//!                  └─▶ failure, screen                            messages, exit statuses, the terminal
//! ```
//!
//! Standard output belongs to the program that is run. The report goes to standard error, all at once,
//! after the program has ended.
//!
//! `vellum run` exits as env(1) does, usually with the program's own status. Other statuses: 128 + N if
//! signal N killed the program; 127 if it does not exist; 126 if it cannot be executed; 125 if `vellum`
//! failed.

#[macro_use(say)]
extern crate vellum_report;

mod accounts;
mod args;
mod bench;
mod companion;
mod compare;
mod compare_report;
mod cost;
mod doctor;
mod document;
mod environment;
mod explain;
mod failure;
mod gc_account;
mod gc_stat;
mod govern;
mod heap;
mod jobs_table;
mod named;
mod obs;
mod observations;
mod outcome;
mod plot;
mod progress;
mod run;
mod screen;
mod shell;
mod text;
mod top;
mod trace;
mod watch;
mod working_set_text;

use failure::FAILED;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use vellum_report::exit;

fn main() -> ExitCode {
    vellum_process::on_enough_stack(command);
    ExitCode::from(STATUS.load(Relaxed))
}

static STATUS: AtomicU8 = AtomicU8::new(FAILED);

extern "C" fn command() {
    STATUS.store(status(), Relaxed);
}

fn status() -> u8 {
    let args: args::Args = match vellum_report::arguments::parse() {
        Ok(args) => args,
        Err(status) => return status,
    };
    let ended = match args.command {
        args::Command::Run(run) if run.compare.is_some() => compare::compare(&run),
        args::Command::Run(run) => run::run(&run),
        args::Command::Cost(args) => cost::cost(&args),
        args::Command::Heap(args) => heap::heap(&args),
        args::Command::Bench(args) => bench::bench(&args),
        args::Command::Obs(args) => obs::obs(&args),
        args::Command::Plot(args) => plot::plot(&args),
        args::Command::Trace(args) => trace::trace(&args),
        args::Command::Watch(args) => watch::watch(&args),
        args::Command::Govern(args) => govern::govern(&args),
        args::Command::GcStat(args) => gc_stat::gc_stat(&args),
        args::Command::Agent(_) | args::Command::Recommend(_) | args::Command::Plan(_) => companion::fleet(),
        args::Command::Top(args) => top::top(&args),
        args::Command::Doctor(args) => doctor::doctor(&args),
        args::Command::Papers(_) => companion::papers(),
        args::Command::Version => shell::version(),
        args::Command::Completions { shell } => shell::completions(shell),
        args::Command::Man { directory } => shell::man(directory.as_deref()),
    };
    exit::status(ended.unwrap_or_else(|failure| {
        exit::failed(&failure);
        failure.status()
    }))
}
