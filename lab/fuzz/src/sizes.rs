//! A fuzz target for sizes, times, ranges and policies, as users write them in options and in variables.

use std::time::Duration;
use vellum_gc::{Sizing, Strict};
use vellum_measure::filter::Ranges;
use vellum_measure::{MarkCause, Unit};
use vellum_pager::FileStore;
use vellum_pages::Discard;
use vellum_report::amount;
use vellum_sys::{Caps, text};
use vellum_timing::clock::ClockKind;

pub(crate) const WORDS: &[&str] = &[
    "original",
    "modified",
    "square_root",
    "knee",
    ",mem_limit=",
    ",ratio=",
    ",c=",
    ",seed=",
    "16777216G",
    "1.5 GiB",
    "18446744073709551615",
    "1-",
    "-1",
    "1-18446744073709551615,",
    "2min",
    "1e308h",
    "0.1ns",
    "µs",
    "%",
    "lazy_free",
];

/// Parses the text by each grammar in turn; values with a written form are read again.
pub fn sizes(data: &[u8]) {
    let _ = (Sizing::parse(data), Caps::by_name(data), Discard::by_name(data), FileStore::at(data).is_some());
    if let Some(strict) = Strict::parse(data) {
        assert!(strict.mean > 0, "one in none is no chance");
    }
    let _ = text::number(data);
    let _ = text::line_after(data, b"a ").and_then(text::number);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let day = Duration::ZERO..=Duration::from_secs(24 * 3600);
    if let Ok(time) = amount::time(text, &day) {
        assert!(day.contains(&time), "{time:?} is beyond the limits");
    }
    let _ = (amount::size(text), amount::percentage(text));
    if let Ok(ranges) = text.parse::<Ranges>() {
        let _ = (ranges.contains(1), ranges.contains(usize::MAX));
    }
    if let Ok(kind) = text.parse::<ClockKind>() {
        assert_eq!(kind.to_string().parse(), Ok(kind), "read again");
    }
    let unit = Unit::parse(text);
    assert_eq!(Unit::parse(unit.symbol()), unit, "read again");
    let cause = MarkCause::parse(text);
    assert_eq!(MarkCause::parse(cause.word()), cause, "read again");
}
