//! The text of a report of `vellum run`: a dozen lines by default, all lines with `--verbose` and as HTML.
//!
//! Lines about events that did not happen are left out, unless their absence is important.

use super::live::SLOW_READS;
use super::plots;
use super::report::{PAGE_BYTES, Report as Document, Standing};
use super::working_set::WorkingSet;
use crate::heap::shown::{Extent, sections};
use crate::text::{ending, shown_shortly, some};
use crate::working_set_text::{cost, grain, meaning, recommended};
use vellum_reference::Window;
use vellum_report::Figure::{Bytes, Count, Many, Nanos};
use vellum_report::units::{count, many};
use vellum_report::{Figure, Head, Moment, Parts, Report, Row, Section, Table};
use vellum_wire::Counter;

const PROCESSES_MAX: usize = 100;

/// The report, with names as long as `extent` allows.
pub(super) fn report<'a>(document: &'a Document, extent: &Extent) -> Report<'a> {
    let Document { sampling, schema, .. } = document;
    let (looks, cost) = (count(sampling.looks), Nanos(sampling.cost_ns));
    let mut report = Report::new(Head {
        name: "vellum",
        subject: "memory report",
        of: shown_shortly(&document.command),
        ending: ending(&document.outcome),
        footer: format!("{looks} looks at the job, which cost {cost} of CPU time · schema {schema}"),
    });
    report.section(Section::new(), |section| summary(section, document));
    report.section(Section::new(), |section| plots::add(section, document));
    if let Some(heap) = document.heap.as_ref().filter(|heap| !heap.holders.is_empty()) {
        report.sections(sections(heap, extent));
    }
    report.section(Section::titled("counted"), |section| {
        section.whole(|section| _ = section.table(counted(document)));
    });
    report.section(Section::titled("processes"), |section| {
        section.whole(|section| processes(section, document));
    });
    report.documented(document)
}

fn summary(section: &mut Section, document: &Document) {
    section.notes(slowed_by_paging(document));
    let (used, memory, faults) = (&document.time, &document.memory, &document.faults);
    let time = Row::new("time").figure("wall", Nanos(used.wall_ns)).figure("user", Nanos(used.user_ns));
    section.row(time.figure("system", Nanos(used.system_ns)));
    let mut resident = Row::new("resident").figure("peak", Bytes(memory.peak_bytes));
    if let Some(average) = memory.average_bytes {
        resident = resident.figure("average", Bytes(average));
    }
    if document.samples.processes.iter().any(|processes| *processes > 1) {
        resident = resident.figure("largest process", Bytes(memory.largest_process_peak_bytes));
    }
    section.row(resident);
    if let Some(at) = memory.at_peak {
        let parts = [
            ("in use", at.in_use_bytes),
            ("kept for reuse", at.kept_bytes),
            // Paged memory is mapped from the store, so the kernel counts it as pages of a file.
            (
                if document.frames_asked.is_some() { "paged, code and files" } else { "code and files" },
                at.files_bytes,
            ),
        ];
        section.parts(
            &Parts::new(Bytes, Moment::Peak, memory.peak_bytes, parts).rest_is("unseen between samples"),
        );
    }
    let row = Row::new("faults").figure("minor", Count(faults.minor)).figure("major", Count(faults.major));
    let avoided = document.pages.faults_avoided;
    section.row(if avoided > 0 { row.figure("avoided", Count(avoided)) } else { row });
    if document.attachment.serving_processes > 0 {
        pages(section, document);
    }
    if let Some(set) = &document.working_set {
        let words = recommended(&set.frame, set.delay.as_ref());
        section.rows(words.map(|words| ("memory", words)));
        section.whole(|section| working_set(section, set));
        section.notes(set.frame.caveat.clone());
    }
    notes(section, document);
}

/// A note that paging slowed the program, with a remedy, if it mostly waited for pages from the store.
fn slowed_by_paging(document: &Document) -> Option<String> {
    let (used, read) = (&document.time, document.pages.get(Counter::PagedRead));
    let idle = used.wall_ns.saturating_sub(used.user_ns + used.system_ns);
    let seconds = used.wall_ns as f64 / 1e9;
    if idle * 2 <= used.wall_ns || read as f64 <= seconds * SLOW_READS {
        return None;
    }
    let all = document.pages.get(Counter::PeakPagedPages) * PAGE_BYTES;
    Some(format!(
        "paging: off the processor for {} of {}, with {} read from the store; try more frames \
         (--frames {}M holds all paged memory)",
        Nanos(idle),
        Nanos(used.wall_ns),
        many(read, "page"),
        all.div_ceil(1 << 20)
    ))
}

fn counted(document: &Document) -> Table {
    let mut table = Table::plain(&["", ""], 0).with_words_last();
    for counter in Counter::ALL {
        let value = document.pages.get(*counter);
        if value > 0 {
            table.row(vec![measured(counter.unit(), value), counter.words().to_owned()]);
        }
    }
    table
}

/// A counter's value with its unit, or as a plain number.
fn measured(unit: &str, value: u64) -> String {
    let figure = match unit {
        "bytes" => Bytes(value),
        "nanoseconds" => Nanos(value),
        "pages" => return format!("{} pages", count(value)),
        _ => Count(value),
    };
    figure.to_string()
}

fn processes(section: &mut Section, document: &Document) {
    if document.processes.len() < 2 {
        return;
    }
    let heads = ["pid", "name", "memory", "from", "handed out", "peak in use", "cache hits"];
    let mut table = Table::plain(&heads, 3);
    for process in document.processes.iter().take(PROCESSES_MAX) {
        let get = |counter: Counter| process.counters.get(counter.name()).copied().unwrap_or(0);
        let words = [process.pid.to_string(), process.name.clone(), process.standing.words().to_owned()];
        let figures = [
            Nanos(process.attached_ns),
            Bytes(get(Counter::BytesOut)),
            Bytes(get(Counter::PeakLive)),
            Count(get(Counter::CacheHits)),
        ];
        table.row(words.into_iter().chain(figures.map(|figure| figure.to_string())).collect());
    }
    let more = document.processes.len().saturating_sub(PROCESSES_MAX);
    let more = (more > 0).then(|| format!("and {} more, in the JSON", count(more as u64)));
    section.table(table).remark(more);
}

fn pages(section: &mut Section, document: &Document) {
    let get = |counter| document.pages.get(counter);
    if get(Counter::GcCollections) > 0 {
        let row = Row::new("gc").amount(Many(get(Counter::GcCollections), "collection"), "");
        let row = row.figure("paused", Nanos(get(Counter::GcPauseNs)));
        section.row(row.figure("longest", Nanos(get(Counter::PeakGcPauseNs))));
    }
    if get(Counter::PeakPagedFrames) > 0 {
        paging(section, document);
    }
    if get(Counter::OutOfMemory) > 0 {
        let requests = many(get(Counter::OutOfMemory), "request");
        section.note(format!("{requests} answered with out-of-memory"));
    }
}

/// A summary of the pager's activity.
fn paging(section: &mut Section, document: &Document) {
    let get = |counter| document.pages.get(counter);
    let size = |counter| Bytes(get(counter) * PAGE_BYTES);
    let row = Row::new("paged").figure("peak", size(Counter::PeakPagedPages));
    let row = row.figure("in frames of", size(Counter::PeakPagedFrames));
    let moved = [
        (Counter::PagedRead, "read"),
        (Counter::PagedWritten, "written"),
        (Counter::PagedDiscarded, "discarded"),
    ];
    let moved = moved.into_iter().filter(|(counter, _)| get(*counter) > 0);
    section.row(moved.fold(row, |row, (counter, words)| row.amount(Many(get(counter), "page"), words)));
    if let Some(asked) = document.frames_asked.filter(|&asked| asked > get(Counter::PeakPagedFrames)) {
        section.note(format!(
            "--frames {} was lowered: a control group's limit, or memory that cannot be paged, leaves less",
            Bytes(asked * PAGE_BYTES)
        ));
    }
    unpaged(section, document);
}

/// The reason why more memory was resident than the requested frames.
fn unpaged(section: &mut Section, document: &Document) {
    let Some(asked) = document.frames_asked.map(|pages| pages * PAGE_BYTES) else { return };
    let peak = document.memory.largest_process_peak_bytes;
    let unpaged = document.pages.get(Counter::PeakUnpagedPages) * PAGE_BYTES;
    if unpaged > 0 && peak > asked {
        section.note(format!(
            "up to {} in memory could not be paged: code, stacks, shared and small mappings, the pager's own records",
            Bytes(unpaged)
        ));
    }
}

fn working_set(section: &mut Section, set: &WorkingSet) {
    let curve = &set.frame.curve;
    // Only the ends and the middle of the curve; the JSON and the page have all of it.
    let mut shown: Vec<&Window> =
        [curve.first(), curve.get(curve.len() / 2), curve.last()].into_iter().flatten().collect();
    shown.dedup();
    let at = |row: Row, window: &Window| {
        row.amount(Bytes(window.bytes), format!("in {}", Nanos(window.window_ns)))
    };
    section.row(shown.into_iter().fold(Row::new("working"), at));
    section.rows(grain(set.frame.grain).map(|words| ("grain", words)));
    section.rows(meaning(&set.frame, set.delay.as_ref()));
    section.rows([("watching", cost(&set.frame))]);
}

/// Notes on processes that did not run on Vellum, and on missing data.
fn notes(section: &mut Section, document: &Document) {
    let attachment = &document.attachment;
    if let Some(reason) = &attachment.reason {
        let how = match attachment.program {
            Standing::NotPreloaded | Standing::NoAnswer => "ran without Vellum",
            _ => "ran with Vellum passing its calls through",
        };
        section.note(format!("the program {how}: {reason}"));
    }
    // If no process loaded the library, one note is enough.
    let nobody = attachment.program == Standing::NoAnswer && attachment.seated_processes == 0;
    if !attachment.strangers.is_empty() && !nobody {
        let total: u64 = attachment.strangers.iter().map(|stranger| stranger.processes).sum();
        let names = attachment.strangers.iter().map(|stranger| {
            let times = (stranger.processes > 1).then(|| format!("x{}", stranger.processes));
            let why: Vec<String> = times.into_iter().chain(stranger.words.map(str::to_owned)).collect();
            match why.is_empty() {
                true => stranger.name.clone(),
                false => format!("{} ({})", stranger.name, why.join(", ")),
            }
        });
        section.note(format!("{} ran without Vellum: {}", many(total, "other process"), some(names)));
    }
    if attachment.unseated_processes > 0 {
        let more = many(attachment.unseated_processes, "process");
        section.note(format!("{more} found the statistics board full: not counted above"));
    }
    if !document.survivors.is_empty() {
        let number = Figure::Many(document.survivors.len() as u64, "background process");
        let names =
            document.survivors.iter().map(|survivor| format!("{} (pid {})", survivor.name, survivor.pid));
        section.note(format!("{number} still running: {}", some(names)));
    }
    section.notes(&document.missing);
    section.notes(document.heap.iter().flat_map(|heap| &heap.notes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::report::{Samples, sample};
    use vellum_report::{Look, Style};

    fn text(document: &Document, is_whole: bool) -> String {
        let look = Look { is_whole, ..Look::brief(Style::plain()) };
        report(document, &Extent::PAGE).text(look)
    }

    #[test]
    fn verbose_report_is_aligned_and_has_units() {
        let expected = "\
vellum: python3 'script <one>.py': exit status 0
  time      wall 2.31 s          user 2.10 s          system 181 ms
  resident  peak 412 MiB         average 211 MiB      largest process 400 MiB
  at peak   360 MiB in use       10.0 MiB kept for reuse
            30.0 MiB code and files
            12.0 MiB unseen between samples
  faults    minor 103,211        major 2              avoided 1,048,576
  note      3 other processes ran without Vellum: busybox (x2, statically
            linked), brief
  note      1 background process still running: daemon (pid 12)
";
        let document = sample::report();
        assert_eq!(text(&document, false), expected);
        let all = text(&document, true);
        let [counted, process] = [
            "\ncounted\n     1,234  extents handed out\n  5.00 GiB  memory handed out\n",
            "  11   <b>      Vellum  2.00 ms    5.00 GiB      300 MiB       1,200\n",
        ];
        assert!(all.contains(counted) && all.ends_with(process), "{all}");
    }

    #[test]
    fn note_on_slow_paging_comes_first() {
        let mut document = sample::report();
        document.frames_asked = Some(1000);
        for (counter, value) in [
            (Counter::PagedRead, 2000),
            (Counter::PagedWritten, 1),
            (Counter::PeakPagedFrames, 1000),
            (Counter::PeakPagedPages, 4096),
        ] {
            document.pages.counters.insert(counter.name(), value);
        }
        let is_first = |shown: &str| shown.lines().nth(1).is_some_and(|line| line.contains("paging:"));
        assert!(!is_first(&text(&document, false)), "it ran most of the time");
        (document.time.user_ns, document.time.system_ns) = (500_000_000, 400_000_000);
        let shown = text(&document, false);
        assert!(is_first(&shown) && shown.contains("--frames 16M"), "{shown}");
        let row = "            2,000 pages read     1 page written\n";
        assert!(shown.contains(row) && shown.contains("MiB paged, code and files"), "{shown}");
        document.pages.counters.insert(Counter::PagedRead.name(), 400);
        assert!(!is_first(&text(&document, false)), "it read little");
    }

    #[test]
    fn page_omits_zero_counters_and_raw_names() {
        let mut document = sample::report();
        document.pages.counters.insert(Counter::BytesCopied.name(), 0);
        document.pages.counters.insert(Counter::GcPauseNs.name(), 1_500_000);
        let page = report(&document, &Extent::PAGE).html();
        let list = &page[page.find("<h2>counted").expect("the list")..];
        let list = &list[..list.find("</table>").expect("its end")];
        assert!(!list.contains(Counter::BytesCopied.words()) && !list.contains('_'), "{list}");
        assert!(list.contains("1.50 ms</td><td>time of these pauses</td>"), "{list}");
        assert!(!list.contains(">0 "), "{list}");
    }

    #[test]
    fn run_without_samples_has_a_note_and_no_plots() {
        let mut document = sample::report();
        document.samples = Samples::default();
        let page = report(&document, &Extent::PAGE).html();
        assert!(page.contains("too short for plots over time"));
        assert_eq!(page.matches("<svg ").count(), 1, "the sizes need no time");
    }
}
