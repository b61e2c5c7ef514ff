//! Tests of malformed lines: each error is reported with its line, its column and a remedy; the line is
//! skipped or refused, as the caller chose.

use std::io::{self, Read};

use crate::{entries, skipping};
use vellum_measure::line::{
    Entry, OnError, ReadError, Reader, SKIPPED_KEPT_MAX, WriteError, write_series, write_summary,
};
use vellum_measure::{Series, SeriesError, Stat, Summary, Unit};

const GOOD: &str = "X:1l:Observation:a:Time:ns 1 2 3\n";

/// The error in `line`, which follows a valid line: its column and message.
fn error_in(line: &str) -> (usize, String) {
    let text = format!("{GOOD}{line}\nY:1l:Observation::Time:ns 4\n");
    let mut reader = Reader::new(text.as_bytes(), OnError::Skip);
    let entries: Vec<Entry> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(entries.len(), 2, "the good lines stay: {entries:?}");
    let [error] = &reader.skipped().errors[..] else { panic!("{line}: {:?}", reader.skipped()) };
    assert_eq!((error.line, reader.skipped().count, reader.lines()), (2, 1, 3));

    let refused: Vec<_> = Reader::new(text.as_bytes(), OnError::Refuse).filter_map(Result::err).collect();
    let [ReadError::Line(same)] = &refused[..] else { panic!("{line}: {refused:?}") };
    assert_eq!(same, error, "refusing and skipping see the same");
    assert_eq!(error.to_string(), format!("line 2, column {}: {}", error.column, error.problem));
    (error.column, error.problem.to_string())
}

#[test]
fn every_error_has_its_column_and_cure() {
    for (line, column, message) in [
        // Values.
        ("Z:1l:Observation::Time:us 486 4x2 431", 31, "\"4x2\" is not a finite number; write one such as"),
        ("Z:1l:Observation::Time:us 486 NaN", 31, "\"NaN\" is not a finite number"),
        ("Z:1l:Observation::Time:us 1e999", 27, "\"1e999\" is not a finite number"),
        ("Z:1l:Observation::Time:us -", 27, "\"-\" is not a finite number"),
        // Headers.
        ("  hello world", 3, "\"hello\" has 1 fields; write NAME:shape:"),
        ("Z:3d:Observation::Time:us 1", 3, "\"3d:Observation\" is unknown; write 1l:Observation"),
        ("Z:1l:Observation::Ti%me:us 1", 21, "\"%me\" is no escape"),
        // Summaries.
        ("Z:summary:Sample:n:Time:us 1000 486 402 9053", 1, "5 figures (n mean min max std), not 4"),
        ("Z:summary:Sample:n:Time:us 1000 486 402 9053 x", 46, "\"x\" is not a finite number"),
        ("Z:summary:Sample:n:Time:us 2.5 1 1 1 1", 28, "not a whole number from 0 to 18446744073709551615"),
        ("Z:summary:Sample:n:Time:us 10 1 402 9053 499", 28, "no values have these figures"),
        // Columns.
        ("X:with:Observation:a:Cpu:ns 1 2", 1, "Cpu has 2 words for 3 observations; write - where"),
        ("X:with:Observation:a:Start:ns 1 -2 3", 33, "\"-2\" is not a whole number"),
        ("X:with:Observation:a:Start:ns 1 +2 3", 33, "\"+2\" is not a whole number"),
        ("X:with:Observation:a:Minor:n 1 2 3", 1, "\"Minor\" is no quantity of observations; write one"),
        ("X:with:Observation:a:MajorFaults:n 1 2 4294967296", 40, "not a whole number from 0 to 4294967295"),
        ("X:with:Observation:a:Cpu:us 1 2 3", 1, "Cpu is in ns, not \"us\"; convert the values"),
        ("X:with:Observation:b:Cpu:ns 1 2 3", 1, "Cpu belongs to observations of \"X\" with the same labels"),
        ("Q:with:Meta:a:Batch:n 2", 1, "Batch belongs to observations of \"Q\""),
        // Marks.
        ("X:with:Mark:a:Mark:ns 1,2,idle 5,4,idle", 32, "\"5,4,idle\" is not a mark; write start,end,cause"),
        ("X:with:Mark:a:Mark:ns 1,2", 23, "\"1,2\" is not a mark"),
        ("X:with:Mark:a:Mark:ns 1,2,a%2", 28, "\"%2\" is no escape"),
        ("X:with:Mark:a:Slice:ns 1,2,idle", 1, "\"Slice\" is no quantity of observations; write one of Mark"),
        // Other facts.
        ("X:with:Meta:a:Batch:n 0", 23, "a batch of 0 operations"),
        ("X:with:Meta:a:Batch:n 2 3", 1, "Batch is one word, not 2"),
        ("X:with:Meta:a:Clock:text a b", 1, "Clock is one word, not 2"),
        ("X:with:Meta:a:Colour:text red", 1, "write one of Batch, Clock, Base, CpuBase, Machine"),
        ("X:with:Meta:a:Base:ns clock=tsc n=1 mean=1 min=1 max=1 std=0", 1, "a base has step, as"),
        ("X:with:Meta:a:Base:ns clock=tsc n=1 mean=1 min=-1 max=1 std=0 step=1", 1, "a base has min, as"),
        ("X:with:Meta:a:Base:ns clock=tsc n=1 mean=1 mean=1", 44, "\"mean=1\" does not belong here"),
        ("X:with:Meta:a:Base:ns clock=tsc n=1 mean=one", 42, "\"one\" is not a finite number"),
        ("X:with:Meta:a:Machine:text kernel=6.1 host=here", 39, "\"host=here\" does not belong here"),
        ("X:with:Meta:a:Machine:text hz=often", 28, "\"hz=often\" does not belong here"),
        ("X:with:Meta:a:Machine:text hz=250 hz=250", 35, "\"hz=250\" does not belong here"),
        ("X:with:Meta:a:Machine:text kernel", 28, "\"kernel\" does not belong here; write key=value"),
    ] {
        let (at, said) = error_in(line);
        assert!(said.contains(message), "{line}\n  says: {said}");
        assert_eq!(at, column, "{line}\n  says: {said}");
    }
}

#[test]
fn invalid_utf8_has_a_place() {
    let bytes = b"X:1l:Observation::Time:ns 1\nBASE:1l:\xff\xfe\n";
    let (entries, errors) = skipping(bytes);
    assert_eq!((entries.len(), errors[0].line, errors[0].column), (1, 2, 9));
}

#[test]
fn repeated_columns_are_refused() {
    for of in [
        "Observation:a:Cpu:ns 1 2 3",
        "Meta:a:Batch:n 2",
        "Mark:a:Mark:ns 1,2,idle",
        "Meta:a:Machine:text hz=1",
    ] {
        let text = format!("{GOOD}X:with:{of}\nX:with:{of}\n");
        let (entries, errors) = skipping(text.as_bytes());
        let error = errors[0].to_string();
        assert_eq!(entries.len(), 1);
        assert!(error.starts_with("line 3, column 1: ") && error.contains("is given twice"), "{error}");
    }
}

/// A column is added whole or not at all, and the lines after it are read.
#[test]
fn a_wrong_column_leaves_the_others() {
    let text = format!(
        "{GOOD}X:with:Observation:a:Start:ns 5 6\nX:with:Observation:a:Cpu:ns 7 8 nine\nX:with:Observation:a:Cpu:ns 7 8 9\n"
    );
    let (entries, errors) = skipping(text.as_bytes());
    let [Entry::Series(series)] = &entries[..] else { panic!("one series: {entries:?}") };
    assert_eq!(series.cpus(), [Some(7.0), Some(8.0), Some(9.0)]);
    assert_eq!((series.starts(), errors.len()), (None, 2));
}

/// The columns of a skipped series must not be added to the series before, which has the same name.
#[test]
fn columns_of_a_skipped_series_are_dropped() {
    for wrong in [
        "X:1l:Observation:a:Time:ns 1 2 oops",
        "X%:1l:Observation:a:Time:ns 1 2 3",
        "garbage",
        "X:summary:Sample:a:Time:ns 1",
    ] {
        let text = format!("{GOOD}{wrong}\nX:with:Observation:a:Cpu:ns 7 8 9\n");
        let (entries, errors) = skipping(text.as_bytes());
        let [Entry::Series(series)] = &entries[..] else { panic!("one series: {entries:?}") };
        assert_eq!(series.cpus(), [None; 3], "{wrong}");
        let lines: Vec<u64> = errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [2, 3], "{wrong}");
    }
}

#[test]
fn remarks_do_not_part_a_series() {
    let text = format!("{GOOD}# by hand\n\nX:with:Observation:a:Cpu:ns 7 8 9\n");
    let entries = entries(text.as_bytes());
    let [Entry::Series(series)] = &entries[..] else { panic!("one series: {entries:?}") };
    assert_eq!(series.cpus()[2], Some(9.0));
}

#[test]
fn a_refused_line_ends_reading() {
    let text = format!("{GOOD}oops\n{GOOD}");
    let mut reader = Reader::new(text.as_bytes(), OnError::Refuse);
    assert!(matches!(reader.next(), Some(Err(ReadError::Line(error))) if error.line == 2));
    assert!(reader.next().is_none() && reader.next().is_none());
}

#[test]
fn more_errors_than_are_kept_are_counted() {
    let text = "oops\n".repeat(SKIPPED_KEPT_MAX + 5);
    let mut reader = Reader::new(text.as_bytes(), OnError::Skip);
    assert!(reader.next().is_none());
    assert_eq!(reader.skipped().count, (SKIPPED_KEPT_MAX + 5) as u64);
    assert_eq!(reader.skipped().errors.len(), SKIPPED_KEPT_MAX);
}

#[test]
fn a_failing_input_is_an_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let input = io::BufReader::new(GOOD.as_bytes().chain(Failing));
    let mut reader = Reader::new(input, OnError::Skip);
    let Some(Err(error)) = reader.next() else { panic!("not an end") };
    assert_eq!(error.to_string(), "cannot read the line after line 1: gone");
    assert!(reader.next().is_none());
}

#[test]
fn invalid_series_are_not_written() {
    let mut out = Vec::new();
    let series = Series::plain("X", "Time", Unit::Nanoseconds, [1.0, f64::NAN]);
    let error = write_series(&mut out, &series).unwrap_err();
    assert!(matches!(error, WriteError::Series(SeriesError::NotFinite { observation: 2, .. })), "{error}");
    let stat = Stat { n: 0, mean: 0.0, min: 0.0, max: 0.0, std: 0.0 };
    let summary =
        Summary { name: "X".into(), labels: vec![], quantity: "Time".into(), unit: Unit::Count, stat };
    assert!(matches!(write_summary(&mut out, &summary), Err(WriteError::Figures { .. })));
    assert!(out.is_empty());
    assert!(matches!(write_series(&mut [0u8; 3].as_mut_slice(), &Series::default()), Err(WriteError::Io(_))));
}
