//! The columns that the annotated source and the sums have in common.

use vellum_measure::{Stat, Unit};
use vellum_report::units::size;
use vellum_wire::operation::Operation;

/// Mean, smallest, largest and deviation in columns.
pub(crate) fn times_columns(times: &Stat, is_sampled: bool) -> [String; 4] {
    let mark = if is_sampled { "~" } else { "" };
    let ns = |value| Unit::Nanoseconds.scaled(value);
    let mean = format!("{mark}{}", ns(times.mean));
    [mean, ns(times.min), ns(times.max), ns(times.std)]
}

/// An operation's name with its class of sizes: `malloc(≤64 B)`.
pub(crate) fn label(operation: Operation) -> String {
    let words = operation.kind().words();
    match operation.class_max() {
        None => words.to_owned(),
        Some(Some(max)) => format!("{words}(≤{})", size(max)),
        Some(None) => format!("{words}(>{})", size(Operation::beyond_classes())),
    }
}
