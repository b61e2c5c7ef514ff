//! Tests of the formats: series are written and read back unchanged; also, lines from Bates 1999 are read.

use std::io::BufReader;

use proptest::collection::vec;
use proptest::prelude::*;
use vellum_measure::line::{Entry, write_entry, write_series};
use vellum_measure::{Series, Stat, Unit, json};

use crate::{any, entries};

fn text(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        write_entry(&mut out, entry).unwrap();
    }
    out
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![3 => any::series().prop_map(Entry::Series), 1 => any::summary().prop_map(Entry::Summary)]
}

proptest! {
    /// Several series may have one name, and the input may come in pieces of any size.
    #[test]
    fn lines_give_back_what_was_written(entries in vec(entry(), 0..5), piece in 1usize..40) {
        let text = text(&entries);
        let back = crate::entries(BufReader::with_capacity(piece, text.as_slice()));
        prop_assert_eq!(back, entries);
        prop_assert!(!text.contains(&b'\r'), "a line has one end, on every system");
    }

    #[test]
    fn the_same_series_twice_are_two(series in any::series()) {
        let entries = vec![Entry::Series(series.clone()), Entry::Series(series)];
        prop_assert_eq!(crate::entries(text(&entries).as_slice()), entries);
    }

    #[test]
    fn json_gives_back_what_was_written(series in vec(any::series(), 0..4)) {
        let mut out = Vec::new();
        json::write(&mut out, &series).unwrap();
        prop_assert_eq!(json::read(out.as_slice()).unwrap(), series);
    }

    /// Observations with only a value take one line, as in the source.
    #[test]
    fn plain_values_take_one_line(values in vec(any::number(), 0..9)) {
        let series = Series::plain("BASE", "Time", Unit::Microseconds, values);
        let mut out = Vec::new();
        write_series(&mut out, &series).unwrap();
        prop_assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}

#[test]
fn the_sources_lines() {
    let text = "BASE:1l:Observation::Time:us 486 402 431 \n\
                BASE:summary:Sample:n:Time:us 1000 486 402 9053 499\n\
                GCSCHED:1d:Observation:n:Time:us 12.25 9.50\n";
    let entries = entries(text.as_bytes());
    let [Entry::Series(base), Entry::Summary(summary), Entry::Series(collector)] = &entries[..] else {
        panic!("three lines are three entries: {entries:?}");
    };
    assert_eq!(*base, Series::plain("BASE", "Time", Unit::Microseconds, [486.0, 402.0, 431.0]));
    assert_eq!(summary.stat, Stat { n: 1000, mean: 486.0, min: 402.0, max: 9053.0, std: 499.0 });
    assert_eq!((summary.name.as_str(), &summary.unit), ("BASE", &Unit::Microseconds));
    assert_eq!((collector.walls(), collector.labels.concat()), (vec![12.25, 9.5], "n".to_owned()));
}

#[test]
fn five_fields_remarks_blank_lines_and_other_line_ends() {
    let text = "# from another program\r\n\r\n \t\r\nRSS:1l:Observation:arm=A,quick:B 4096\t8192\r\n#RSS 1\nX:1l:Observation::ns";
    let entries = entries(text.as_bytes());
    let [Entry::Series(size), Entry::Series(empty)] = &entries[..] else { panic!("two series: {entries:?}") };
    assert_eq!((size.quantity.as_str(), &size.unit, size.label("arm")), ("Size", &Unit::Bytes, Some("A")));
    assert_eq!(size.walls(), [4096.0, 8192.0]);
    assert_eq!(*empty, Series::plain("X", "Time", Unit::Nanoseconds, []));
}

#[test]
fn a_rich_series_reads_as_documented() {
    let text = include_str!("rich.obs");
    let entries = entries(text.as_bytes());
    let [Entry::Series(series)] = &entries[..] else { panic!("one series: {entries:?}") };
    assert_eq!((series.batch, series.clock.as_deref()), (64, Some("tsc")));
    assert_eq!(series.base.as_ref().map(|base| (base.min, base.step)), Some((10.0, 10.0)));
    assert_eq!(series.walls()[0], (2130.0 - 10.0) / 64.0);
    assert_eq!(series.cpus()[1], None);
    assert_eq!(series.machine.as_ref().unwrap().processor, "AMD EPYC 7B13: 2.4 GHz");
    assert_eq!((series.marks.len(), series.marks[1].cause.word()), (2, "write log"));
    let mut out = Vec::new();
    write_series(&mut out, series).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text);
}

/// The documentation's examples are valid, and are the same in both formats.
#[test]
fn the_documents_examples() {
    let document = include_str!("../../../../docs/observations.md");
    let mut blocks = document.split("```").skip(1).step_by(2);
    let mut block = |start: &str| blocks.find(|block| block.trim_start().starts_with(start)).unwrap();
    assert_eq!(entries(block("BASE:1l:").as_bytes()).len(), 1);
    assert_eq!(entries(block("BASE:summary:").as_bytes()).len(), 1);
    let lines = entries(block("sort:1l:").as_bytes());
    let json = json::read(block("json").trim_start_matches("json").as_bytes()).unwrap();
    assert_eq!(lines, json.into_iter().map(Entry::Series).collect::<Vec<_>>());
    let [Entry::Series(series)] = &lines[..] else { panic!("one series: {lines:?}") };
    assert_eq!(series.unit.scaled(series.walls()[0]), "33.1 ns");
}

/// The length of a line is not limited: ten megabytes and a million values in one line.
#[test]
fn a_line_may_be_long() {
    let values = || (0..1_000_000).map(|index| f64::from(index) + 0.25);
    let series = Series::plain("LONG", "Time", Unit::Nanoseconds, values());
    let mut text = Vec::new();
    write_series(&mut text, &series).unwrap();
    assert!(text.len() > 9_000_000);
    assert_eq!(entries(text.as_slice()), [Entry::Series(series)]);
}
