//! The text of `vellum doctor`: one row for each feature, with a reason and a remedy if it does not work.

use super::row::{Report as Examined, State};
use vellum_report::units::{bytes, many};
use vellum_report::{Head, Report, Row, Section};

pub(super) fn report(examined: &Examined) -> Report<'_> {
    let below = examined.hypervisor.as_ref().map_or(String::new(), |name| format!(", on {name}"));
    let ending = format!(
        "{}, {} of memory{below}",
        many(examined.processors as u64, "processor"),
        bytes(examined.memory_bytes)
    );
    let of = format!("Linux {}", examined.kernel);
    let name = concat!("vellum ", env!("CARGO_PKG_VERSION"));
    let mut report = Report::new(Head { name, of, ending, ..Head::default() });
    for features in examined.features.chunk_by(|row, next| row.section == next.section) {
        report.section(Section::titled(features[0].section.words()), |section| {
            for row in features {
                let (state, what) = (row.state, row.what.as_str());
                section.row(Row::words(row.name, what).state(state.words(), state != State::Works));
                let instead = if state == State::Missing { "so" } else { "to" };
                for (label, words) in [(instead, &row.instead), ("why", &row.why), ("cure", &row.cure)] {
                    if let Some(words) = words.as_ref().filter(|words| !words.is_empty()) {
                        section.row(Row::words("", words).state(label, false));
                    }
                }
            }
        });
    }
    let counts = State::ALL.map(|state| (state, examined.count(state)));
    let counts = counts.iter().filter(|(_, number)| *number > 0);
    let counts: Vec<String> = counts.map(|(state, number)| state.counted(*number)).collect();
    report.section(Section::new(), |section| _ = section.verdict(counts.join(", ")));
    report.documented(examined)
}
