//! The form of the sources: lengths of files, circles of files, widths of comments, idioms.
//!
//! Each crate has bounds, which may only fall: a change that improves a crate lowers its row. A crate without
//! a row has the goals.

mod links;

use crate::circles;
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Lines in a file.
const LINES_MAX: usize = 600;
/// Columns of a comment.
const COLUMNS_MAX: usize = 110;
/// The goal for circles, and the bound of crates without a row.
const CIRCLE_MAX: usize = 8;

/// What [`BOUNDS`] bounds, and what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Files on the longest circle.
    circle: usize,
    /// Lines of comments that are too wide.
    wide: usize,
    /// Uses of [`IDIOMS`].
    idioms: usize,
}

const fn at_most(circle: usize, wide: usize, idioms: usize) -> Counts {
    Counts { circle, wide, idioms }
}

/// By crate, and `docs` for the pages for users and contributors. A failure prints the table as it stands.
const BOUNDS: &[(&str, Counts)] = &[("malloc", at_most(14, 0, 0))];

/// Turns of speech for which the field has nouns and terms.
const IDIOMS: &str = r"(?i)\b(?:so many|whoever|goes? by|look(?:s|ed) through|(?:is|are|was|were|be|been) told|there is none of)\b|(?:^|[.;:!?] |\| )what (?:is|was|are|were|has been|can be|cannot be|may be|must be) ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace's folder")
}

/// The files below `folder` with one of `endings`.
fn files(folder: &Path, endings: &[&str], into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, endings, into);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            into.push(path);
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates' sources, by crate.
fn sources(endings: &[&str]) -> BTreeMap<String, Vec<PathBuf>> {
    let folders = std::fs::read_dir(root().join("crates")).expect("the crates");
    let of = |folder: PathBuf| {
        let mut found = Vec::new();
        files(&folder, endings, &mut found);
        (folder.file_name().expect("a name").to_str().expect("text").to_owned(), found)
    };
    let apart = ["studies", "examples/scheme"].map(|folder| root().join(folder));
    let folders = folders.map(|entry| entry.expect("an entry").path()).chain(apart);
    folders.map(of).collect()
}

/// How often `text` uses the idioms: lines of one paragraph or comment are one text.
fn idioms(text: &str, idioms: &Regex) -> usize {
    let line_end = Regex::new(r"[ \t]*\n[ \t]*(?://[/!]?|\*)?[ \t]*").expect("a pattern");
    let paragraphs = Regex::new(r"\n[ \t]*(?://[/!]?|\*)?[ \t]*\n").expect("a pattern");
    paragraphs.split(text).map(|part| idioms.find_iter(&line_end.replace_all(part, " ")).count()).sum()
}

fn is_wide_comment(line: &str) -> bool {
    // Rows of tables cannot be broken.
    let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    line.trim_start().starts_with("//") && !text.starts_with('|') && line.chars().count() > COLUMNS_MAX
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
fn circles_widths_and_idioms_only_fall() {
    let pattern = Regex::new(IDIOMS).expect("a pattern");
    let mut found: BTreeMap<String, Counts> = BTreeMap::new();
    for (name, paths) in sources(&["rs", "c", "h", "cc"]) {
        let counts = found.entry(name.clone()).or_default();
        let parent = match &*name {
            "studies" => root(),
            "scheme" => root().join("examples"),
            _ => root().join("crates"),
        };
        let source = parent.join(name).join("src");
        counts.circle = circles::longest(&source);
        // This file has the idioms it looks for.
        for path in paths.iter().filter(|path| !path.ends_with("conformance/tidy.rs")) {
            let text = read(path);
            counts.wide += text.lines().filter(|line| is_wide_comment(line)).count();
            counts.idioms += idioms(&text, &pattern);
        }
    }
    let mut pages = Vec::new();
    for folder in ["docs", "include"] {
        files(&root().join(folder), &["md", "h"], &mut pages);
    }
    let of_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"];
    pages.extend(of_root.map(|name| root().join(name)));
    let in_pages = pages.iter().map(|path| idioms(&read(path), &pattern)).sum();
    found.insert("docs".to_owned(), at_most(0, 0, in_pages));

    let (mut table, mut over) = (String::new(), Vec::new());
    for (name, counts) in &found {
        let Counts { circle, wide, idioms } = *counts;
        let _ = writeln!(table, "    (\"{name}\", at_most({circle}, {wide}, {idioms})),");
        let row = BOUNDS.iter().find(|(known, _)| known == name);
        let bound = row.map_or(at_most(CIRCLE_MAX, 0, 0), |(_, bound)| *bound);
        if circle > bound.circle.max(1) || wide > bound.wide || idioms > bound.idioms {
            over.push(format!("{name}: {counts:?}, at most {bound:?}"));
        }
    }
    for (name, _) in BOUNDS {
        assert!(found.contains_key(*name), "{name} is no crate: its row goes");
    }
    assert!(over.is_empty(), "{}\nThe table as it stands:\n{table}", over.join("\n"));
}

#[test]
fn idioms_and_widths_are_found() {
    let pattern = Regex::new(IDIOMS).expect("a pattern");
    assert_eq!(idioms("/// A reader is\n    /// told. What is freed\n// goes back.\n", &pattern), 2);
    assert_eq!(idioms("Of what is kept, some is\n\ntold apart.", &pattern), 0);
    assert!(is_wide_comment(&format!("    // {}", "x".repeat(COLUMNS_MAX))));
    assert!(!is_wide_comment(&format!("// {}", "é".repeat(COLUMNS_MAX - 3))));
}

/// A test that cannot test reports so by `vellum_skip`, which keeps the list.
#[test]
fn skips_reach_the_list() {
    let unlisted = Regex::new(r#"println!\(\s*"skipped"#).expect("a pattern");
    for path in sources(&["rs"]).values().flatten().filter(|path| !path.ends_with("crates/skip/src/lib.rs")) {
        assert!(!unlisted.is_match(&read(path)), "{} reports a skip past the list", path.display());
    }
}
