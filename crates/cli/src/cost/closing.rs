//! The last lines of each report: totals, and the cost of recording.

use super::observed::Observed;
use crate::text::{ending, shown_command};
use crate::wrap::wrapped_to;
use std::fmt::Write;
use vellum_measure::Unit;
use vellum_report::Style;
use vellum_report::units::{count, time};

/// Columns before the words.
const INDENT: usize = 13;

/// What share `part` is of `whole`.
fn share(part: u64, whole: u64) -> String {
    if part == whole {
        return "all".to_owned();
    }
    // All but a few is not all.
    format!("{:.2} %", (part as f64 / whole as f64 * 100.0).min(99.99))
}

/// Totals, and the cost of recording.
pub(crate) fn closing(observed: &Observed, style: Style, width: usize) -> String {
    let profile = &observed.profile;
    let mut text = String::new();
    let head = format!("vellum cost: {}", shown_command(&observed.command));
    let _ = writeln!(text, "\n{}: {}", style.bold(&head), ending(&observed.outcome()));
    let mut line = |label: &str, words: String| {
        for (at, words) in wrapped_to(&words, INDENT, width).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(text, "  {} {words}", style.label(&format!("{label:<10}")));
        }
    };
    if profile.operations > 0 {
        let from = if profile.processes == 1 {
            "1 process"
        } else {
            &format!("{} processes", count(profile.processes))
        };
        line(
            "operations",
            format!(
                "{} of {from}, {} with a source line; {} timed",
                count(profile.operations),
                share(profile.on_lines, profile.operations),
                count(profile.timed)
            ),
        );
    }
    if profile.disturbed.count > 0 {
        line(
            "",
            format!(
                "{} of the timed were disturbed, for {} in all: in no mean",
                count(profile.disturbed.count),
                Unit::Nanoseconds.scaled(profile.disturbed.total_ns)
            ),
        );
    }
    if let Some(faults) = &profile.faults {
        let placed = profile.faults_placed;
        let mut words = format!("{} minor, {} major", count(faults.minor), count(faults.major));
        if placed > 0 {
            let _ = write!(words, ", {} with a source line", share(profile.faults_on_lines, placed));
        }
        if faults.own > 0 {
            let _ = write!(words, "; {} of them the recorder's own", count(faults.own));
        }
        if !faults.sees_kernel {
            words.push_str("; faults inside the kernel not among them");
        }
        line("faults", words);
        if let Some(each) = profile.minor_fault_ns {
            line(
                "",
                format!(
                    "a fault of fresh memory costs {} here, measured apart",
                    Unit::Nanoseconds.scaled(each)
                ),
            );
        }
    }
    if let Some(own) = &profile.own {
        line("base", format!("{}; its smallest is subtracted", own.base.describe()));
        line(
            "recording",
            format!(
                "{} to count an operation, {} to time one too; {} in all, of {}",
                Unit::Nanoseconds.scaled(own.count_ns),
                Unit::Nanoseconds.scaled(own.timed_ns),
                Unit::Nanoseconds.scaled(own.total_ns),
                time(observed.ended.wall)
            ),
        );
        line(
            "",
            format!(
                "{} of that to attach, look up, walk and ask, over all threads",
                Unit::Nanoseconds.scaled(own.rare_ns)
            ),
        );
    }
    if profile.early > 0 {
        line(
            "",
            format!(
                "{} operations of the loader came before anything could be recorded",
                count(profile.early)
            ),
        );
    }
    for note in &observed.notes {
        for (at, words) in wrapped_to(note, INDENT, width).into_iter().enumerate() {
            let label = format!("{:<10}", if at == 0 { "note" } else { "" });
            let _ = writeln!(text, "  {} {words}", if at == 0 { style.notice(&label) } else { label });
        }
    }
    text
}
