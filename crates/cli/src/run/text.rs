//! The report on standard error: short, aligned, a unit on every number.
//!
//! ```text
//! vellum: python3 script.py: exit status 0
//!   time      wall 2.31 s       user 2.10 s       system 181 ms
//!   resident  peak 412 MiB      average 211 MiB
//!   ...
//! ```
//!
//! Lines about things that did not happen are left out, unless their absence is news.

use super::report::{PAGE_BYTES, PeakParts, Report, Standing};
use super::working_set::WorkingSet;
use crate::heap;
use crate::text::{ending, shown_shortly, some};
use crate::working_set_text::{cost, grain, meaning, recommended};
use crate::wrap::{COLUMNS, wrapped};
use std::time::Duration;
use vellum_reference::Window;
use vellum_report::units::{bytes, count, many, time};
use vellum_report::{Style, stderr};
use vellum_wire::Counter;

/// Lines that are named of those that hold memory.
const HOLDERS_MAX: usize = 5;
const LABEL_WIDTH: usize = 9;
/// Width of each of a line's cells but the last.
const CELL_WIDTH: usize = 20;
/// What stands before a label.
const INDENT: usize = 2;

/// Prints the report to standard error in one write.
pub(crate) fn print(report: &Report, is_verbose: bool, style: Style) {
    stderr::write(format_args!("{}", render(report, is_verbose, style)));
}

/// The report as text: a dozen lines at most, or all of it.
pub(crate) fn render(report: &Report, is_verbose: bool, style: Style) -> String {
    let mut lines = Lines { text: String::new(), style };
    let head = format!("vellum: {}", shown_shortly(&report.command));
    let first = format!("{head}: {}", ending(&report.outcome));
    for (at, line) in wrapped(&first, 0).into_iter().enumerate() {
        let line = if at == 0 { line.replacen(&head, &style.bold(&head), 1) } else { line };
        lines.text.push_str(&format!("{line}\n"));
    }
    if let Some(words) = slowed_by_paging(report) {
        lines.note(&words);
    }
    let (used, memory, faults) = (&report.time, &report.memory, &report.faults);
    let nanos = |ns| time(Duration::from_nanos(ns));
    lines.cells(
        "time",
        &[
            format!("wall {}", nanos(used.wall_ns)),
            format!("user {}", nanos(used.user_ns)),
            format!("system {}", nanos(used.system_ns)),
        ],
    );
    let mut cells = vec![format!("peak {}", bytes(memory.peak_bytes))];
    cells.extend(memory.average_bytes.map(|average| format!("average {}", bytes(average))));
    if report.samples.processes.iter().any(|processes| *processes > 1) {
        cells.push(format!("largest process {}", bytes(memory.largest_process_peak_bytes)));
    }
    lines.cells("resident", &cells);
    if let Some(parts) = memory.at_peak {
        at_peak(&mut lines, parts);
    }
    let mut cells = vec![format!("minor {}", count(faults.minor)), format!("major {}", count(faults.major))];
    if report.pages.faults_avoided > 0 {
        cells.push(format!("avoided {}", count(report.pages.faults_avoided)));
    }
    lines.cells("faults", &cells);
    if report.attachment.serving_processes > 0 {
        pages(&mut lines, report);
    }
    if let Some(set) = &report.working_set {
        if let Some(words) = recommended(&set.frame, set.delay.as_ref()) {
            lines.wrapped("memory", &words);
        }
        if is_verbose {
            working_set(&mut lines, set);
        }
        if let Some(caveat) = &set.frame.caveat {
            lines.note(caveat);
        }
    }
    notes(&mut lines, report);
    if let Some(profile) = report.heap.as_ref().filter(|heap| !heap.holders.is_empty()) {
        lines.text.push_str(&heap::text::part(profile, HOLDERS_MAX, COLUMNS, style));
    }
    if is_verbose {
        counted(&mut lines, report);
    }
    lines.text
}

/// That paging took most of the time, and what would help.
fn slowed_by_paging(report: &Report) -> Option<String> {
    let get = |counter| report.pages.get(counter);
    let waited = get(Counter::PagedWaitNs);
    if waited * 2 <= report.time.wall_ns {
        return None;
    }
    let cure = match get(Counter::PeakPagedEnough) {
        enough if enough > get(Counter::PeakPagedFrames) => {
            format!("try --frames {}M", (enough * PAGE_BYTES).div_ceil(1 << 20))
        }
        _ => "give it more frames".to_owned(),
    };
    let [waited, wall] = [waited, report.time.wall_ns].map(|ns| time(Duration::from_nanos(ns)));
    Some(format!("paging took {waited} of {wall}: {cure}"))
}

/// What was resident when the most was.
fn at_peak(lines: &mut Lines, parts: PeakParts) {
    let named = [
        (parts.in_use_bytes, "in use"),
        (parts.kept_bytes, "kept for reuse"),
        (parts.files_bytes, "code and files"),
        (parts.unseen_bytes, "between samples"),
    ];
    let cells = named.into_iter().filter(|(size, _)| *size > 0);
    lines.cells("at peak", &cells.map(|(size, name)| format!("{} {name}", bytes(size))).collect::<Vec<_>>());
}

fn counted(lines: &mut Lines, report: &Report) {
    lines.text.push_str("\ncounted\n");
    for counter in Counter::ALL {
        let value = report.pages.get(*counter);
        if value > 0 {
            lines.text.push_str(&format!("{:>13}  {}\n", measured(counter.unit(), value), counter.words()));
        }
    }
}

/// A counter's value with its unit, or the number of what its words name.
pub(super) fn measured(unit: &str, value: u64) -> String {
    match unit {
        "bytes" => bytes(value),
        "nanoseconds" => time(Duration::from_nanos(value)),
        "pages" => format!("{} pages", count(value)),
        _ => count(value),
    }
}

fn pages(lines: &mut Lines, report: &Report) {
    let get = |counter| report.pages.get(counter);
    if get(Counter::GcCollections) > 0 {
        let nanos = |counter| time(Duration::from_nanos(get(counter)));
        lines.cells(
            "gc",
            &[
                many(get(Counter::GcCollections), "collection"),
                format!("paused {}", nanos(Counter::GcPauseNs)),
                format!("longest {}", nanos(Counter::PeakGcPauseNs)),
            ],
        );
    }
    if get(Counter::PeakPagedFrames) > 0 {
        paging(lines, report);
    }
    if get(Counter::OutOfMemory) > 0 {
        lines.note(&format!("{} answered with out-of-memory", many(get(Counter::OutOfMemory), "request")));
    }
}

/// What the pager did, in short.
fn paging(lines: &mut Lines, report: &Report) {
    let get = |counter| report.pages.get(counter);
    let size = |counter| bytes(get(counter) * PAGE_BYTES);
    lines.cells(
        "paged",
        &[
            format!("peak {}", size(Counter::PeakPagedPages)),
            format!("in frames of {}", size(Counter::PeakPagedFrames)),
            format!("{} brought ahead", many(get(Counter::PagedAhead), "page")),
        ],
    );
    if let Some(asked) = report.frames_asked.filter(|&asked| asked > get(Counter::PeakPagedFrames)) {
        lines.note(&format!(
            "{} of frames were asked for; the limit of a control group, or memory that is not paged, leaves room for \
             no more than these",
            bytes(asked * PAGE_BYTES)
        ));
    }
    let reads = get(Counter::PagedReadRead) + get(Counter::PagedWriteRead);
    if get(Counter::PagedWaitNs) > 0 {
        let mut cells = vec![time(Duration::from_nanos(get(Counter::PagedWaitNs)))];
        if reads > 0 && get(Counter::PeakPagedEnough) > get(Counter::PeakPagedFrames) {
            let enough = size(Counter::PeakPagedEnough);
            cells.push(format!("with frames of {enough}, nine of ten reads would not have happened"));
        }
        lines.cells("waited", &cells);
    }
    unpaged(lines, report);
}

/// Why more was in memory than there were to be frames.
fn unpaged(lines: &mut Lines, report: &Report) {
    let Some(asked) = report.frames_asked.map(|pages| pages * PAGE_BYTES) else { return };
    let peak = report.memory.largest_process_peak_bytes;
    let unpaged = report.pages.get(Counter::PeakUnpagedPages) * PAGE_BYTES;
    if unpaged > 0 && peak > asked {
        lines.note(&format!(
            "up to {} in memory could not be paged: code, stacks, shared and small mappings, the pager's own records",
            bytes(unpaged)
        ));
    } else if unpaged == 0 && peak > asked {
        lines.note(
            "only blocks above 256 KiB and collected objects were paged: for all of its memory the kernel's own faults must \
             wait, too (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1)",
        );
    }
}

/// What was referenced, and the memory that it is worth.
fn working_set(lines: &mut Lines, set: &WorkingSet) {
    let curve = &set.frame.curve;
    let nanos = |ns| time(Duration::from_nanos(ns));
    let at = |window: &Window| format!("{} in {}", bytes(window.bytes), nanos(window.window_ns));
    // The ends of the curve and its middle: all of it is in the JSON and on the page.
    let mut shown: Vec<&Window> =
        [curve.first(), curve.get(curve.len() / 2), curve.last()].into_iter().flatten().collect();
    shown.dedup();
    lines.cells("working", &shown.into_iter().map(at).collect::<Vec<_>>());
    if let Some(words) = grain(set.frame.grain) {
        lines.wrapped("grain", &words);
    }
    for (label, words) in meaning(&set.frame, set.delay.as_ref()) {
        lines.wrapped(label, &words);
    }
    lines.wrapped("watching", &cost(&set.frame));
}

/// Who did not take part, and what could not be seen.
fn notes(lines: &mut Lines, report: &Report) {
    let attachment = &report.attachment;
    if let Some(reason) = &attachment.reason {
        let how = match attachment.program {
            Standing::NotPreloaded | Standing::NoAnswer => "ran without Vellum",
            _ => "ran with Vellum passing its calls through",
        };
        lines.note(&format!("the program {how}: {reason}"));
    }
    // A library that could enter nobody is one fact, not one for each process.
    let nobody = attachment.program == Standing::NoAnswer && attachment.seated_processes == 0;
    if !attachment.strangers.is_empty() && !nobody {
        let total: u64 = attachment.strangers.iter().map(|stranger| stranger.processes).sum();
        let names = attachment.strangers.iter().map(|stranger| {
            let times =
                if stranger.processes > 1 { format!(" x{}", stranger.processes) } else { String::new() };
            let why = stranger.words.map(|words| format!(", {words}")).unwrap_or_default();
            match times.len() + why.len() {
                0 => stranger.name.clone(),
                _ => {
                    format!("{} ({})", stranger.name, format!("{times}{why}").trim_start_matches([',', ' ']))
                }
            }
        });
        lines.note(&format!("{} ran without Vellum: {}", many(total, "other process"), some(names)));
    }
    if attachment.unseated_processes > 0 {
        let more = many(attachment.unseated_processes, "process");
        lines.note(&format!("{more} found the statistics board full: not counted above"));
    }
    if !report.survivors.is_empty() {
        let number = report.survivors.len() as u64;
        let names =
            report.survivors.iter().map(|survivor| format!("{} (pid {})", survivor.name, survivor.pid));
        lines.note(&format!("{} still running: {}", many(number, "background process"), some(names)));
    }
    let of_heap = report.heap.iter().flat_map(|heap| &heap.notes);
    for missing in report.missing.iter().chain(of_heap) {
        lines.note(missing);
    }
}

struct Lines {
    text: String,
    style: Style,
}

impl Lines {
    /// A line of cells in columns, continued on a further one where they do not fit.
    fn cells(&mut self, label: &str, cells: &[String]) {
        let mut rows = vec![String::new()];
        for cell in cells {
            let at = rows.len() - 1;
            // A space at least between two cells.
            let filled = match rows[at].chars().count() {
                0 => 0,
                width => (width + 1).div_ceil(CELL_WIDTH + 1) * (CELL_WIDTH + 1),
            };
            if filled > 0 && INDENT + LABEL_WIDTH + 1 + filled + cell.chars().count() > COLUMNS {
                rows.push(cell.clone());
            } else {
                rows[at] = format!("{:<filled$}{cell}", rows[at]);
            }
        }
        for (at, row) in rows.iter().enumerate() {
            self.wrapped(if at == 0 { label } else { "" }, row);
        }
    }

    fn wrapped(&mut self, label: &str, text: &str) {
        self.folded(&self.style.label(&format!("{label:<LABEL_WIDTH$}")), text);
    }

    fn folded(&mut self, label: &str, text: &str) {
        for (at, text) in wrapped(text, INDENT + LABEL_WIDTH + 1).into_iter().enumerate() {
            if at == 0 { self.line(label, &text) } else { self.line(&" ".repeat(LABEL_WIDTH), &text) }
        }
    }

    fn note(&mut self, text: &str) {
        self.folded(&self.style.notice(&format!("{:<LABEL_WIDTH$}", "note")), text);
    }

    fn line(&mut self, label: &str, text: &str) {
        self.text.push_str(&format!("  {label} {text}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::report::sample;

    #[test]
    fn the_whole_report_is_aligned_and_has_units() {
        let expected = "\
vellum: python3 'script <one>.py': exit status 0
  time      wall 2.31 s          user 2.10 s          system 181 ms
  resident  peak 412 MiB         average 211 MiB      largest process 400 MiB
  at peak   360 MiB in use       10.0 MiB kept for reuse
            30.0 MiB code and files                   12.0 MiB between samples
  faults    minor 103,211        major 2              avoided 1,048,576
  note      3 other processes ran without Vellum: busybox (x2, statically
            linked), brief
  note      1 background process still running: daemon (pid 12)
";
        assert_eq!(render(&sample::report(), false, Style::plain()), expected);
        let more = "
counted
        1,234  extents handed out
     5.00 GiB  memory handed out
        1,200  extents from the free-page cache
     4.00 GiB  memory whose frames were there
     3.00 MiB  memory added in place
     1.00 MiB  memory marked discardable
     7.00 MiB  flushed: not needed for a while
     2.00 MiB  flushed: memory was short
            1  mappings served
     8.00 MiB  memory of these mappings
      300 MiB  peak in use
";
        let all = render(&sample::report(), true, Style::plain());
        assert!(all.ends_with(more), "{all}");
    }

    #[test]
    fn paging_that_took_most_of_the_time_comes_first() {
        let mut report = sample::report();
        for (name, value) in [
            (Counter::PagedWaitNs, report.time.wall_ns / 3 * 2),
            (Counter::PeakPagedFrames, 1000),
            (Counter::PeakPagedEnough, 4096),
        ] {
            report.pages.counters.insert(name.name(), value);
        }
        let text = render(&report, false, Style::plain());
        assert!(text.lines().nth(1).is_some_and(|line| line.ends_with(": try --frames 16M")), "{text}");
        report.pages.counters.insert(Counter::PagedWaitNs.name(), 1);
        assert!(!render(&report, false, Style::plain()).contains("try --frames"));
    }
}
