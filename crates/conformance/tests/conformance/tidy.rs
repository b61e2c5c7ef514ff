//! The form of the sources: lengths of files and crates, circles of files; words and widths in `words`.

mod budgets;
mod links;
mod words;

use crate::circles;
use crate::house::{self, files, read};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Lines in a file.
const LINES_MAX: usize = 600;
/// Files of a crate that each name the next, and the last the first.
const CIRCLE_MAX: usize = 8;

/// The crates' sources, by crate.
fn sources(endings: &[&str]) -> BTreeMap<String, Vec<PathBuf>> {
    let of = |folder: PathBuf| {
        let mut found = Vec::new();
        files(&folder, endings, &mut found);
        found
    };
    house::crates().into_iter().map(|(name, folder)| (name, of(folder))).collect()
}

#[test]
fn no_file_is_too_long() {
    let all = sources(&["rs"]);
    assert!(all.values().flatten().count() > 500, "{} crates", all.len());
    for path in all.values().flatten() {
        let lines = read(path).lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: it holds two concepts", path.display());
    }
}

#[test]
fn circles_are_short() {
    for (name, folder) in house::crates() {
        let files = circles::longest(&folder.join("src"));
        assert!(files <= CIRCLE_MAX, "{name}: {files} files on a circle, at most {CIRCLE_MAX}");
    }
}

/// A test that cannot test reports so by `vellum_skip`, which keeps the list.
#[test]
fn skips_reach_the_list() {
    let unlisted = Regex::new(r#"println!\(\s*"skipped"#).expect("a pattern");
    for path in sources(&["rs"]).values().flatten().filter(|path| !path.ends_with("crates/skip/src/lib.rs")) {
        assert!(!unlisted.is_match(&read(path)), "{} reports a skip past the list", path.display());
    }
}
