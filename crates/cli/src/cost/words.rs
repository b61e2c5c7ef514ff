//! Formats operations' names (`malloc(≤64 B)`), bytes and times, for the annotated source and the tables.

use vellum_measure::{Stat, Unit};
use vellum_report::units::{self, size};
use vellum_wire::operation::{Kind, Operation};

/// Mean, smallest, largest and deviation in columns.
pub(crate) fn times_columns(times: &Stat, is_sampled: bool) -> [String; 4] {
    let mark = if is_sampled { "~" } else { "" };
    let ns = |value| Unit::Nanoseconds.scaled(value);
    let mean = format!("{mark}{}", ns(times.mean));
    [mean, ns(times.min), ns(times.max), ns(times.std)]
}

/// The requested bytes of operations; empty without any.
pub(crate) fn bytes_column(bytes: Option<u64>) -> String {
    bytes.map(units::bytes).unwrap_or_default()
}

/// An operation's name with its class of sizes: `malloc(≤64 B)`.
pub(crate) fn label(operation: Operation) -> String {
    labelled(operation.kind(), operation.class_max())
}

/// [`label`] from its parts: `None` for a kind without sizes, `Some(None)` for sizes beyond all classes.
pub(crate) fn labelled(kind: Kind, class_max: Option<Option<usize>>) -> String {
    let words = kind.words();
    match class_max {
        None => words.to_owned(),
        Some(Some(max)) => format!("{words}(≤{})", size(max)),
        Some(None) => format!("{words}(>{})", size(Operation::beyond_classes())),
    }
}
