//! `vellum trace`: the memory that a program needs, computed from a recorded trace of its references.
//!
//! ```text
//! FILE or - ─▶ read (Trace ─▶ Intervals, one pass) ─▶ report ─▶ text + plot │ JSON │ SVG
//!                     └─▶ --save: the same references as a page trace
//! ```
//!
//! Intervals are the times between two references to a page. The file is read once, as a stream. Memory holds
//! a table of the pages that occur in the trace, never the trace itself.

mod args;
mod read;
mod report;
mod text;

pub(crate) use args::TraceArgs;

use crate::failure::Failure;
use crate::screen;
use vellum_report::{Look, Output, Style, stdout};

/// The default height of the plot, in lines.
const HEIGHT: usize = 18;
pub(crate) fn trace(args: &TraceArgs) -> Result<u8, Failure> {
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let told = [&json, &svg].iter().all(|output| !matches!(output, Some(Output::Stdout)));
    let read = read::read(args)?;
    let report = report::Report::new(args, &read)?;
    let drawn = svg.is_some();
    if let Some(output) = json {
        output.write(vellum_report::json(&report)?)?;
    }
    if let Some(output) = svg {
        output.write(report.chart()?.svg())?;
    }
    if told {
        let style = Style::of_stdout();
        let mut words = text::report(&report).text(Look::brief(style));
        if !drawn {
            let (width, height) = screen::plot((args.width, args.height), HEIGHT);
            let chart = report.chart()?;
            words += &format!("\n{}", chart.terminal(width, height, style.is_coloured()));
        }
        stdout::write_all(words.as_bytes())?;
    }
    Ok(0)
}
