//! The last lines of each report of `vellum cost`: totals, and the cost of recording.

use super::observed::Observed;
use crate::outcome::Outcome;
use crate::text::{ending, shown_command};
use std::fmt::Write;
use vellum_measure::Unit;
use vellum_report::Section;
use vellum_report::units::{count, many, time};

/// The share of `part` in `whole`, in words.
fn share(part: u64, whole: u64) -> String {
    if part == whole {
        return "all".to_owned();
    }
    // Never rounded up to 100 %.
    format!("{:.2} %", (part as f64 / whole as f64 * 100.0).min(99.99))
}

/// Totals, and the cost of recording.
pub(super) fn closing(observed: &Observed) -> Section {
    let profile = &observed.profile;
    let (of, ending) = (shown_command(&observed.command), ending(&Outcome::of(observed.ended.outcome)));
    let mut section = Section::titled(format!("vellum cost: {of}: {ending}"));
    let mut line = |label, words| _ = section.rows([(label, words)]);
    let ns = |value| Unit::Nanoseconds.scaled(value);
    if profile.operations > 0 {
        let (all, from) = (count(profile.operations), many(profile.processes, "process"));
        let (on_lines, timed) = (share(profile.on_lines, profile.operations), count(profile.timed));
        line("operations", format!("{all} of {from}, {on_lines} with a source line; {timed} timed"));
    }
    let disturbed = profile.disturbed;
    if disturbed.count > 0 {
        let (number, all) = (count(disturbed.count), ns(disturbed.total_ns));
        line("", format!("{number} of the timed were disturbed, for {all} in all: in no mean"));
    }
    if let Some(faults) = &profile.faults {
        let mut words = format!("{} minor, {} major", count(faults.minor), count(faults.major));
        if profile.faults_placed > 0 {
            let part = share(profile.faults_on_lines, profile.faults_placed);
            let _ = write!(words, ", {part} with a source line");
        }
        if faults.own > 0 {
            let _ = write!(words, "; {} of them the recorder's own", count(faults.own));
        }
        if !faults.sees_kernel {
            words.push_str("; faults inside the kernel not among them");
        }
        line("faults", words);
        if let Some(each) = profile.minor_fault_ns {
            line("", format!("a fault of fresh memory costs {} here, measured apart", ns(each)));
        }
    }
    if let Some(own) = &profile.own {
        line("base", format!("{}; its smallest is subtracted", own.base.describe()));
        let [each, timed, all, rare] = [own.count_ns, own.timed_ns, own.total_ns, own.rare_ns].map(ns);
        let wall = time(observed.ended.wall);
        let costs = format!("{each} to count an operation, {timed} to time one too; {all} in all, of {wall}");
        line("recording", costs);
        line("", format!("{rare} of that to attach, look up, walk and query, over all threads"));
    }
    if profile.early > 0 {
        let early = count(profile.early);
        line("", format!("{early} operations of the loader came before anything could be recorded"));
    }
    section.notes(&observed.notes);
    section
}
