//! Tests with random bytes as input: the reader reaches the end, and each line is either used or reported.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use vellum_measure::line::{Entry, OnError, ReadError, Reader, write_series};
use vellum_measure::{Series, Unit};

use crate::{any, skipping};

/// The lines of `text` that are neither blank nor remarks, with their numbers.
fn speaking_lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let speaks = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.iter().find(|byte| !matches!(byte, b' ' | b'\t')).is_some_and(|first| *first != b'#')
    };
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines.map(|(index, line)| (index + 1, line)).filter(move |(_, line)| speaks(line))
}

/// The number of lines that an entry takes when written: one for each fact.
fn lines_of(entry: &Entry) -> usize {
    match entry {
        Entry::Summary(_) => 1,
        Entry::Series(series) => {
            let mut out = Vec::new();
            write_series(&mut out, series).expect("what was read can be written");
            out.iter().filter(|byte| **byte == b'\n').count()
        }
    }
}

/// Properties that hold for every text.
fn check(text: &[u8]) -> Result<(), TestCaseError> {
    let (entries, errors) = skipping(text);
    for error in &errors {
        let line = text.split(|byte| *byte == b'\n').nth(error.line as usize - 1).expect("the line exists");
        // An error about missing bytes at the end of a line points just behind the last byte.
        prop_assert!((1..=line.len() + 1).contains(&error.column), "{} in {}", error, line.escape_ascii());
        prop_assert!(error.to_string().len() < 600);
    }
    // A line that states a default (a batch of 1, no faults) is read, but not written again: hence at most.
    let written: usize = entries.iter().map(lines_of).sum();
    prop_assert!(written + errors.len() <= speaking_lines(text).count());
    // Each line of values or figures without an error is an entry.
    let has_error = |number: usize| errors.iter().any(|error| error.line == number as u64);
    let begins = |line: &[u8]| {
        matches!(line.split(|byte| *byte == b':').nth(1), Some(b"1l" | b"1d" | b"1h" | b"summary"))
    };
    let expected = speaking_lines(text).filter(|(number, line)| !has_error(*number) && begins(line)).count();
    prop_assert_eq!(entries.len(), expected);

    let mut refusing = Reader::new(text, OnError::Refuse);
    let before = refusing.by_ref().take_while(Result::is_ok).count();
    let refused = Reader::new(text, OnError::Refuse).find_map(Result::err);
    match (refused, errors.first()) {
        (None, None) => prop_assert_eq!(before, entries.len()),
        (Some(ReadError::Line(error)), Some(first)) => prop_assert_eq!(&error, first),
        (refused, first) => prop_assert!(false, "{refused:?} refused, {first:?} skipped"),
    }
    Ok(())
}

/// Pieces of lines, so that random texts get beyond the header.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "X:1l:Observation::Time:ns",
        "X:summary:Sample:n:Time:us",
        "X:with:Observation::Start:ns",
        "X:with:Observation::Cpu:ns",
        "X:with:Observation::MinorFaults:n",
        "X:with:Mark::Mark:ns",
        "X:with:Meta::Batch:n",
        "X:with:Meta::Clock:text",
        "X:with:Meta::Base:ns",
        "X:with:Meta::Machine:text",
        "X:1l:Observation:a,b:B",
        " clock=tsc n=1 mean=1 min=1 max=1 std=0 step=1",
        " kernel=6.1",
        " 1,2,minor",
        " 7 1 1 1 0",
        " 1",
        " -",
        " 1e9",
        " %41",
        "%",
        ":",
        " ",
        "\t",
        "\r",
        "\n",
        "\n",
        "\n",
        "#",
        "é",
    ];
    prop_oneof![
        8 => select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pieces_of_lines(pieces in vec(piece(), 0..40)) {
        check(&pieces.concat())?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// After some bytes of a valid file are changed, dropped or doubled, the series before and behind the
    /// damage remain.
    #[test]
    fn damage_does_not_affect_other_series(
        series in any::series(),
        damage in vec((any::<Index>(), any::<u8>(), 0u8..3), 1..4),
    ) {
        let guard = |name| Series::plain(name, "Time", Unit::Nanoseconds, [1.0, 2.0]);
        let mut middle = Vec::new();
        write_series(&mut middle, &series).unwrap();
        for (place, byte, kind) in damage {
            if middle.is_empty() {
                break;
            }
            let place = place.index(middle.len());
            match kind {
                0 => middle[place] = byte,
                1 => drop(middle.remove(place)),
                _ => middle.insert(place, byte),
            }
        }
        let mut text = Vec::new();
        write_series(&mut text, &guard("first guard")).unwrap();
        text.extend(&middle);
        // The end of the last line may be lost; the next line must not be lost with it.
        text.push(b'\n');
        write_series(&mut text, &guard("last guard")).unwrap();
        check(&text)?;
        let (entries, _) = skipping(&text);
        prop_assert_eq!(entries.first(), Some(&Entry::Series(guard("first guard"))));
        prop_assert_eq!(entries.last(), Some(&Entry::Series(guard("last guard"))));
    }
}
