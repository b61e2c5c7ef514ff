//! `vellum run`: once, with a report.
//!
//! ```text
//! args ─▶ launch ──▶ process             one run of the command: files, environment, start, wait
//!          │  ╲
//!          │   live · working_set        meanwhile: the line on the terminal, which pages are referenced
//!          ▼
//!        gather ─▶ report ─▶ text · JSON · page (HTML, plots)
//! ```

pub(crate) mod args;
pub(crate) mod gather;
pub(crate) mod launch;
mod live;
mod page;
pub(crate) mod report;
mod store;
mod text;
mod working_set;

pub(crate) use args::Run;

use crate::failure::Failure;
use launch::{Occasion, Plan};
use vellum_report::exit::failed;
use vellum_report::{Output, Style};

/// Runs the command once, reports, and returns the program's exit status.
pub(crate) fn run(args: &Run) -> Result<u8, Failure> {
    let plan = Plan::new(args)?;
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let html = args.report.as_deref().map(Output::prepare).transpose()?;
    let live = !(args.no_live || args.quiet);
    let occasion = Occasion { on_vellum: true, live, watch: !args.no_watch, ..Occasion::default() };
    let observed = plan.launch(occasion)?;
    let report = gather::report(&plan, &observed)?;
    if !args.quiet {
        text::print(&report, args.verbose, Style::of_stderr());
    }
    for (output, make) in [(json, vellum_report::json as fn(&_) -> String), (html, page::html)] {
        if let Some(Err(failure)) = output.map(|output| output.write(make(&report))) {
            failed(failure);
        }
    }
    Ok(observed.ended.outcome.shell_status())
}
