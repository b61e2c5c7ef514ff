//! Fuzz targets for series of timings (as lines and as JSON), page traces, recordings of `vellum watch`.

use std::io::Cursor;
use vellum_measure::line::{Entry, OnError, Reader, write_entry};
use vellum_measure::{Series, json as document};
use vellum_reference::Frame;
use vellum_workset::trace::{PageSize, PageTraceWriter, Reference, Trace};
use vellum_workset::{Intervals, Ticks};

pub(crate) const LINE_WORDS: &[&str] = &[
    ":1l:Observation::Time:us ",
    ":1d:Observation:",
    ":1h:Observation:",
    ":summary:Sample:",
    ":with:Meta:",
    ":with:Mark:",
    ":with:Observation:",
    "Batch:n ",
    "Clock:text ",
    "Base:ns clock=tsc n=1 mean=1 min=1 max=1 std=0 step=1",
    "Machine:text ",
    "Start:ns ",
    "%20",
    "%",
    "-",
    "1e308",
    "-1e308",
    "1e-320",
    "NaN",
    "18446744073709551615",
];
pub(crate) const JSON_WORDS: &[&str] = &[
    "\"schema\":\"vellum.observations/1\"",
    "\"series\":[",
    "\"observations\":{\"value\":[",
    "\"start_ns\":",
    "\"marks\":[",
    "\"batch\":",
    "\"base\":",
    "\"machine\":",
    "null",
    "1e308",
    "1e999",
    "18446744073709551615",
    "[[[[[[[[",
    "{\"a\":",
    "\\ud800",
];
pub(crate) const TRACE_WORDS: &[&str] =
    &["VELPAGES", "I  ", " L ", " S ", " M ", ",8\n", "ffffffffffffffff", "==1== "];
pub(crate) const WATCH_WORDS: &[&str] =
    &["\"curve\":[", "\"verdict\":", "null", "1e999", "18446744073709551615"];

/// Pages that are counted exactly in a trace's intervals; more are sampled.
const PAGES_MAX: usize = 256;
/// Longer series get no statistics here: by design, these take more than linear time.
const LOOKED_AT_MAX: usize = 64;

/// The line format, with both ways of handling errors; the values read are written and read again.
pub fn observations(data: &[u8]) {
    let _ = Reader::new(data, OnError::Refuse).count();
    let entries: Vec<Entry> =
        Reader::new(data, OnError::Skip).map(|entry| entry.expect("lines are skipped")).collect();
    let mut written = Vec::new();
    for entry in &entries {
        write_entry(&mut written, entry).expect("what was read can be written");
    }
    let again: Result<Vec<Entry>, _> = Reader::new(&written[..], OnError::Refuse).collect();
    assert_eq!(again.expect("what was written can be read"), entries, "read again");
    let series = entries.iter().filter_map(|entry| match entry {
        Entry::Series(series) => Some(series),
        Entry::Summary(_) => None,
    });
    series.for_each(look_at);
}

/// A document of series; the values read are written and read again.
pub fn json(data: &[u8]) {
    let Ok(series) = document::read(data) else { return };
    let mut written = Vec::new();
    document::write(&mut written, &series).expect("what was read can be written");
    assert_eq!(document::read(&written[..]).expect("what was written can be read"), series, "read again");
    series.iter().for_each(look_at);
}

/// Statistics of every series that was read.
fn look_at(series: &Series) {
    if series.observations.len() <= LOOKED_AT_MAX {
        let _ = (series.stat(), series.cpus(), series.starts(), series.clone().into_nanoseconds());
        let layers = vellum_measure::Layers::peel(&series.walls(), 1);
        let _ = layers.outliers().count();
        let _ = vellum_measure::Attribution::of(&series.observations, &series.marks, &layers, &[]);
    }
}

/// A trace in either form, to its curve; the trace read is written as a page trace and read again.
pub fn trace(data: &[u8]) {
    let Ok(mut trace) = Trace::open(data, PageSize::BASE) else { return };
    let mut intervals = Intervals::new(PAGES_MAX, Ticks(0));
    let mut read: Vec<Reference> = Vec::new();
    for reference in &mut trace {
        let Ok(reference) = reference else { continue };
        intervals.reference(reference.page, reference.now);
        read.push(reference);
    }
    let end = trace.now();
    if let Some(curve) = intervals.curve(end) {
        let _ = (curve.first(), curve.last(), curve.at(1.0), curve.at_pages(1.0));
    }
    let _ = intervals.history(end);
    let mut writer =
        PageTraceWriter::new(Cursor::new(Vec::new()), trace.page_size(), trace.time_unit()).expect("memory");
    read.iter().for_each(|reference| writer.write(*reference).expect("memory"));
    let written = writer.into_inner().into_inner();
    let again = Trace::open(&written[..], PageSize::BASE).expect("what was written can be read");
    let again: Vec<Reference> = again.map(|one| one.expect("a record")).collect();
    assert_eq!(again, read, "read again");
}

/// A recorded watch's frames, one a line; the frames read are written and read again.
pub fn watch(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(frame) = serde_json::from_slice::<Frame>(line) else { continue };
        let written = serde_json::to_vec(&frame).expect("plain data");
        // Values read are finite; infinite values cannot be written.
        let again: Frame = serde_json::from_slice(&written).expect("what was written can be read");
        assert_eq!(again, frame, "read again");
    }
}
