//! `vellum run`: runs a program on Vellum once, and reports on it. The diagram names files of this folder:
//!
//! ```text
//! args ─▶ launch                         starts the command once, and waits for it
//!          │  ╲
//!          │   live · working_set        during the run: the status line, the pages referenced
//!          ▼
//!        gather ─▶ report (JSON) ─▶ shown, plots ─▶ text · HTML page
//! ```

pub(crate) mod args;
pub(crate) mod gather;
pub(crate) mod launch;
mod live;
mod plots;
pub(crate) mod report;
mod shown;
pub(crate) mod store;
mod working_set;

pub(crate) use args::Run;

use crate::failure::Failure;
use crate::heap::shown::Extent;
use launch::{Occasion, Plan};
use vellum_report::{Look, Output, Style, stderr, write_each};

/// Runs the command once, reports, and returns the program's exit status.
pub(crate) fn run(args: &Run) -> Result<u8, Failure> {
    let plan = Plan::new(args)?;
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let html = args.report.as_deref().map(Output::prepare).transpose()?;
    let live = !(args.no_live || args.quiet);
    let occasion = Occasion { on_vellum: true, live, watch: !args.no_watch, ..Occasion::default() };
    let observed = plan.launch(occasion)?;
    let document = gather::report(&plan, &observed)?;
    if !args.quiet {
        let look = Look { is_whole: args.verbose, ..Look::brief(Style::of_stderr()) };
        stderr::write(format_args!("{}", shown::report(&document, &Extent::RUN).text(look)));
    }
    let report = || shown::report(&document, &Extent::PAGE);
    write_each([(json, &|| report().json()), (html, &|| Ok(report().html()))]);
    Ok(observed.ended.outcome.shell_status())
}
