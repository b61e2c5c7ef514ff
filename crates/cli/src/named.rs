//! Formats the cause of memory use (function, source line, called function) for the first column of a table.

use std::collections::HashMap;
use vellum_cost::{Cause, Place};
use vellum_report::table::shortened;
use vellum_report::units::many;

/// The fewest columns for a function's name.
const FUNCTION_MIN: usize = 7;
/// The most parts of a path that are shown to distinguish two files.
const PARTS_MAX: usize = 6;

/// A cause in words: the function, its line, and the function it called. Without room for all, the called
/// function is dropped and names are cut, as the line is the most important part.
pub(crate) fn name(cause: &Cause, room: usize) -> String {
    let whole = whole(cause, 1);
    let Place::Line { file, line, function } = &cause.place else { return whole };
    if whole.chars().count() <= room {
        return whole;
    }
    let place = format!(" {}:{line}", tail(file, 1));
    let left = room.saturating_sub(place.chars().count()).max(FUNCTION_MIN);
    format!("{}{place}", shortened(function, left))
}

/// Names of several causes. Equal names get more detail: the called function, or more of the path.
pub(crate) fn names(causes: &[&Cause], room: usize) -> Vec<String> {
    let mut names: Vec<String> = causes.iter().map(|cause| name(cause, room)).collect();
    for parts in 1..=PARTS_MAX {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        names.iter().for_each(|name| *seen.entry(name).or_default() += 1);
        let equal: Vec<bool> = names.iter().map(|name| seen[&**name] > 1).collect();
        for ((name, cause), _) in names.iter_mut().zip(causes).zip(&equal).filter(|(_, equal)| **equal) {
            *name = whole(cause, parts);
        }
    }
    names
}

pub(crate) fn signed(value: f64, shown: impl Fn(f64) -> String) -> String {
    format!("{}{}", if value < 0.0 { "-" } else { "+" }, shown(value.abs()))
}

/// The words for lines that are not shown, to precede the sum of all.
pub(crate) fn with_more(hidden: usize) -> String {
    if hidden > 0 { format!("with {}, ", many(hidden as u64, "more line")) } else { String::new() }
}

/// A cause in full, with the last `parts` of its file's path.
fn whole(cause: &Cause, parts: usize) -> String {
    let via = cause.via.as_deref().filter(|via| *via != "the allocator");
    let via = via.map(|via| format!(" by {via}")).unwrap_or_default();
    match &cause.place {
        Place::Line { file, line, function } => format!("{function} {}:{line}{via}", tail(file, parts)),
        Place::Function { module, function } => format!("{function} ({}){via}", tail(module, parts)),
        Place::Offset { module, offset } => format!("{}+{offset:#x}{via}", tail(module, parts)),
        Place::Unknown => format!("{}{via}", cause.place),
    }
}

fn tail(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_lines_when_cut() {
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
    #[test]
    fn equal_names_get_more_detail() {
        let at = |module: &str, via: Option<&str>| Cause {
            place: Place::Function { module: module.into(), function: "init".into() },
            via: via.map(Into::into),
        };
        let causes =
            [at("/a/x/l.so", None), at("/b/x/l.so", None), at("/c.so", None), at("/c.so", Some("f"))];
        let wanted = ["init (a/x/l.so)", "init (b/x/l.so)", "init (c.so)", "init (c.so) by f"];
        assert_eq!(names(&causes.each_ref(), 20), wanted);
    }
}
