//! The examination in words: at most 80 columns, a row a feature, with reason and cure if it does not work.

use super::row::{Report, Row, State};
use crate::wrap::wrapped;
use vellum_report::Style;
use vellum_report::units::{bytes, many};

/// Columns of a name, and of a state, each with the blank behind it.
const NAME: usize = 16;
const STATE: usize = 11;
/// What stands before a row.
const INDENT: usize = 2;

/// The report, ending in a newline.
pub(super) fn render(report: &Report, style: Style) -> String {
    let below = report.hypervisor.as_ref().map_or(String::new(), |name| format!(", on {name}"));
    let machine = format!(
        "Linux {}, {}, {} of memory{below}",
        report.kernel,
        many(report.processors as u64, "processor"),
        bytes(report.memory_bytes)
    );
    let mut text = String::new();
    let heading = format!("vellum {}: {machine}", report.vellum_version);
    for line in wrapped(&heading, 0) {
        text += &format!("{}\n", style.bold(&line));
    }
    let mut section = None;
    for row in &report.features {
        if section.replace(row.section) != Some(row.section) {
            text += &format!("\n{}\n", style.label(row.section.words()));
        }
        text += &of_row(row, style);
    }
    let counts = State::ALL.map(|state| (state, report.count(state)));
    let counts = counts.iter().filter(|(_, number)| *number > 0);
    let counts: Vec<String> = counts.map(|(state, number)| state.counted(*number)).collect();
    text + &format!("\n{}\n", style.bold(&counts.join(", ")))
}

fn of_row(row: &Row, style: Style) -> String {
    let state = format!("{:<STATE$}", row.state.words());
    let state = if row.state == State::Works { state } else { style.notice(&state) };
    let mut lines = vec![(format!("{:<NAME$}{state}", row.name), row.what.as_str())];
    let instead = if row.state == State::Missing { "so" } else { "to" };
    for (label, words) in [(instead, &row.instead), ("why", &row.why), ("cure", &row.cure)] {
        if let Some(words) = words {
            lines.push((format!("{:NAME$}{label:<STATE$}", ""), words));
        }
    }
    let mut text = String::new();
    for (head, words) in lines.into_iter().filter(|(head, words)| !words.is_empty() || !head.starts_with(' '))
    {
        for (at, line) in wrapped(words, INDENT + NAME + STATE).into_iter().enumerate() {
            let head = if at == 0 { head.clone() } else { " ".repeat(NAME + STATE) };
            text += format!("{:INDENT$}{head}{line}", "").trim_end();
            text.push('\n');
        }
    }
    text
}
