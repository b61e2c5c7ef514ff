//! The form of the sources: lengths of files and crates, circles of files, widths of comments, idioms.

mod budgets;
mod links;

use crate::circles;
use crate::house::{self, files, read, root};
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Lines in a file.
const LINES_MAX: usize = 600;
/// Columns of a comment.
const COLUMNS_MAX: usize = 110;
/// Files of a crate that each name the next, and the last the first.
const CIRCLE_MAX: usize = 8;

/// Turns of speech for which the field has nouns and terms.
const IDIOMS: &str = r"(?i)\b(?:so many|whoever|goes? by|look(?:s|ed) through|(?:is|are|was|were|be|been) told|there is none of)\b|(?:^|[.;:!?] |\| )what (?:is|was|are|were|has been|can be|cannot be|may be|must be) ";

/// The crates' sources, by crate.
fn sources(endings: &[&str]) -> BTreeMap<String, Vec<PathBuf>> {
    let of = |folder: PathBuf| {
        let mut found = Vec::new();
        files(&folder, endings, &mut found);
        found
    };
    house::crates().into_iter().map(|(name, folder)| (name, of(folder))).collect()
}

/// The idioms in `text`: lines of one paragraph or comment are one text.
fn idioms(text: &str, idioms: &Regex) -> Vec<String> {
    let line_end = Regex::new(r"[ \t]*\n[ \t]*(?://[/!]?|\*)?[ \t]*").expect("a pattern");
    let paragraphs = Regex::new(r"\n[ \t]*(?://[/!]?|\*)?[ \t]*\n").expect("a pattern");
    let of = |part| -> Vec<String> {
        let joined = line_end.replace_all(part, " ");
        idioms.find_iter(&joined).map(|found| found.as_str().to_owned()).collect()
    };
    paragraphs.split(text).flat_map(of).collect()
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
fn circles_are_short() {
    for (name, folder) in house::crates() {
        let files = circles::longest(&folder.join("src"));
        assert!(files <= CIRCLE_MAX, "{name}: {files} files on a circle, at most {CIRCLE_MAX}");
    }
}

#[test]
fn comments_fit_and_speak_plainly() {
    let pattern = Regex::new(IDIOMS).expect("a pattern");
    let code = sources(&["rs", "c", "h", "cc"]).into_values().flatten();
    let mut pages = Vec::new();
    for folder in ["docs", "include"] {
        files(&root().join(folder), &["md", "h"], &mut pages);
    }
    let of_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    pages.extend(of_root.map(|name| root().join(name)));

    let mut faults = String::new();
    // This file has the idioms that it finds.
    for path in code.chain(pages).filter(|path| !path.ends_with("conformance/tidy.rs")) {
        let text = read(&path);
        for (line, _) in text.lines().enumerate().filter(|(_, line)| is_wide_comment(line)) {
            let _ = writeln!(faults, "{}:{}: over {COLUMNS_MAX} columns", path.display(), line + 1);
        }
        for found in idioms(&text, &pattern) {
            let _ = writeln!(faults, "{}: {found:?}: say it with a noun", path.display());
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn idioms_and_widths_are_found() {
    let pattern = Regex::new(IDIOMS).expect("a pattern");
    assert_eq!(idioms("/// A reader is\n    /// told. What is freed\n// goes back.\n", &pattern).len(), 2);
    assert!(idioms("Of what is kept, some is\n\ntold apart.", &pattern).is_empty());
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
