//! Causes of operations in words, for the first column of a table.

use vellum_cost::{Cause, Place};
use vellum_report::table::shortened;

/// Columns that a function's name has at the least.
const FUNCTION_MIN: usize = 7;

/// A cause in words: the function, its line, and what it called. Where there is no room for all, of what was
/// called nothing is said, and functions' names are cut: the line is what one looks for.
pub(crate) fn name(cause: &Cause, room: usize) -> String {
    let via = cause.via.as_deref().filter(|via| *via != "the allocator");
    let via = via.map(|via| format!(" by {via}")).unwrap_or_default();
    let Place::Line { file, line, function } = &cause.place else {
        return format!("{}{via}", cause.place);
    };
    let place = format!(" {}:{line}", file.rsplit('/').next().unwrap_or(file));
    let whole = format!("{function}{place}{via}");
    if whole.chars().count() <= room {
        return whole;
    }
    let left = room.saturating_sub(place.chars().count()).max(FUNCTION_MIN);
    format!("{}{place}", shortened(function, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_not_cut_off_names() {
        let place = Place::Line { file: "/src/held.c".into(), line: 41, function: "a_long_function".into() };
        let cause = Cause { place, via: Some("strdup".into()) };
        let names = [40, 30, 20, 5].map(|room| name(&cause, room));
        let wanted = [
            "a_long_function held.c:41 by strdup",
            "a_long_function held.c:41",
            "a_long_fu… held.c:41",
            "a_long… held.c:41",
        ];
        assert_eq!(names, wanted);
    }
}
