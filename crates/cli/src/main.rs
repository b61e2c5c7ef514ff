//! `vellum`, the command.
//!
//! A thin hand over the library crates: `vellum-probe` starts and watches programs, `vellum-wire` says what their page
//! layers report, `vellum-measure` compares; here are only words, tables and pictures.
//!
//! ```text
//! args ─▶ run ─▶ launch ──▶ probe          one run of the command: files, environment, start, wait
//!          │        ▲ ╲
//!          │        │  live                the line on the terminal meanwhile
//!          ├─▶ compare                     many runs, with and without
//!          ├─▶ cost ─▶ cost_text · cost_summary · cost_json
//!          ▼
//!        report ─▶ text · output(json) · page(html, plots)
//! ```
//!
//! Standard output belongs to the program that is run. What this command has to say goes to standard error, in one
//! piece, after the program has ended.
//!
//! Exit statuses of `vellum run` are those of env(1) and its kin: the program's own; 128 + N if signal N killed it; 127 if there is
//! no such program; 126 if it cannot be executed; 125 if this command itself failed.

#[macro_use]
mod stderr;
mod accounts;
mod amount;
mod args;
mod bench;
mod compare;
mod compare_report;
mod cost;
mod cost_json;
mod cost_summary;
mod cost_text;
mod explain;
mod gather;
mod gc_account;
mod gc_stat;
mod govern;
mod govern_text;
mod launch;
mod library;
mod live;
mod obs;
mod obs_explain;
mod obs_stat;
mod observations;
mod output;
mod page;
mod papers;
mod plot;
mod plot_command;
mod report;
mod run;
mod screen;
mod shell;
mod stdout;
mod store;
mod style;
mod table;
mod text;
mod top;
mod trace;
mod units;
mod watch;
mod working_set;

use clap::Parser;
use std::process::ExitCode;

/// The exit status when this command, and not the program it runs, failed.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { FAILED } else { 0 });
        }
    };
    let ended = match args.command {
        args::Command::Run(run) if run.compare.is_some() => compare::compare(&run),
        args::Command::Run(run) => run::run(&run),
        args::Command::Cost(args) => cost::cost(&args),
        args::Command::Bench(args) => bench::bench(&args),
        args::Command::Obs(args) => obs::obs(&args),
        args::Command::Plot(args) => plot_command::plot(&args),
        args::Command::Trace(args) => trace::trace(&args),
        args::Command::Watch(args) => watch::watch(&args),
        args::Command::Govern(args) => govern::govern(&args),
        args::Command::GcStat(args) => gc_stat::gc_stat(&args),
        args::Command::Top(args) => top::top(&args),
        args::Command::Papers { source } => papers::papers(&source),
        args::Command::Completions { shell } => shell::completions(shell),
        args::Command::Man { directory } => shell::man(directory.as_deref()),
    };
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            say!("vellum: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
