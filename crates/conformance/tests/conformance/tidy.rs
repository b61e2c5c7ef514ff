//! Tests of the sources' form: lengths of files, circles of files that use each other, types of addresses.

mod budgets;
mod links;
mod words;

use crate::circles;
use crate::house::{self, files, read, root};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Lines in a file.
const LINES_MAX: usize = 600;
/// Files of a crate that each name the next, and the last the first.
const CIRCLE_MAX: usize = 5;

/// Parameters and fields of type `usize` outside `sys` that have an address's name, by crate: only fewer from
/// now on. `vellum_sys::{Addr, Span}` are the types of addresses; the names are also those of some indices.
const ADDRESSES_MAX: [(&str, usize); 7] = [
    ("crates/cost", 1),
    ("crates/gc", 1),
    ("crates/libgc", 1),
    ("crates/malloc", 3),
    ("crates/measure", 3),
    ("crates/process", 2),
    ("crates/runtime", 3),
];

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
    let all = house::crates().into_iter().map(|(name, folder)| (name, circles::longest(&folder.join("src"))));
    let long: Vec<(String, Vec<String>)> = all.filter(|(_, files)| files.len() > CIRCLE_MAX).collect();
    assert!(long.is_empty(), "circles of more than {CIRCLE_MAX} files: {long:?}");
}

/// A file of the collector names files of its own folder and of lower ones, by the table in ARCHITECTURE.md.
/// Only `process/` and `instance.rs` have statics.
#[test]
fn folders_of_the_collector_name_lower_ones() {
    let source = root().join("crates/gc/src");
    let text = read(&root().join("ARCHITECTURE.md"));
    let section = text.split("\n## ").find(|part| part.starts_with("The collector's folders"));
    let row = Regex::new(r"(?m)^\| `(\w+)(?:/|\.rs)` \|").expect("a pattern");
    let order: Vec<String> =
        row.captures_iter(section.expect("the section")).map(|found| found[1].to_owned()).collect();
    assert!(order.len() > 10, "{order:?}");
    let upward = circles::upward(&source, &order);
    assert!(upward.is_empty(), "{upward:#?}");

    let is_static = Regex::new(r"(?m)^ *(?:pub(?:\([a-z:]+\))? )?static ").expect("a pattern");
    let mut all = Vec::new();
    files(&source, &["rs"], &mut all);
    let of_process =
        |path: &PathBuf| path.starts_with(source.join("process")) || path.ends_with("instance.rs");
    for path in all.iter().filter(|path| !of_process(path)) {
        assert!(!is_static.is_match(&read(path)), "{} has a static", path.display());
    }
}

#[test]
fn addresses_are_typed() {
    let number = Regex::new(r"\b(?:addr|address|start|end|base)\s*:\s*(?:Option<)?usize").expect("a pattern");
    for (name, paths) in sources(&["rs"]).into_iter().filter(|(name, _)| name != "crates/sys") {
        let code = paths.iter().filter(|path| path.components().any(|part| part.as_os_str() == "src"));
        let found: usize = code.map(|path| number.find_iter(&read(path)).count()).sum();
        let most = ADDRESSES_MAX.iter().find(|(known, _)| *known == name).map_or(0, |&(_, most)| most);
        assert!(found <= most, "{name}: {found} addresses are `usize`, at most {most}: use `Addr` or `Span`");
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
