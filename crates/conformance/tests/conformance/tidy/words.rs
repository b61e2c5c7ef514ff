//! Tests of texts: widths of lines, lengths of sentences, idioms, personification, subjects of commits.

use super::sources;
use crate::circles;
use crate::house::{files, read, root};
use regex::Regex;
use std::path::PathBuf;
use std::process::Command;

/// Columns of a comment.
const COMMENT_MAX: usize = 110;
/// Columns of a line of a page.
const PAGE_MAX: usize = 100;
/// Columns of a commit's subject.
const SUBJECT_MAX: usize = 72;
/// Commits whose subjects are read.
const SUBJECTS: &str = "-20";
/// Words of a sentence in a page, and in a message.
const SENTENCE_MAX: usize = 40;
const MESSAGE_MAX: usize = 30;

/// Turns of speech for which the field has nouns and terms.
const IDIOMS: &str = r"(?i)\b(?:so many|whoever|goes? by|look(?:s|ed) through|(?:is|are|was|were|be|been) told|there is none of)\b|(?:^|[.;:!?] |\| )what (?:is|was|are|were|has been|can be|cannot be|may be|must be) ";
/// Verbs of persons, which no message has of a program.
const PERSONS: &str = r"(?i)\b(?:tells?|told|asks?|says?|said|wants?|wanted|knows?|hears?|remembers?|forgets?|forgotten|believes?|promises?|vouch(?:es)?)\b";

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// The pages: every Markdown file of the repository.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["docs", "lab", "examples"] {
        files(&root().join(folder), &["md"], &mut found);
    }
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)),
    );
    found
}

/// The idioms in `text`: lines of one paragraph or comment are one text.
fn idioms(text: &str, idioms: &Regex) -> Vec<String> {
    let line_end = pattern(r"[ \t]*\n[ \t]*(?://[/!]?|\*)?[ \t]*");
    let paragraphs = pattern(r"\n[ \t]*(?://[/!]?|\*)?[ \t]*\n");
    let of = |part| -> Vec<String> {
        let joined = line_end.replace_all(part, " ");
        idioms.find_iter(&joined).map(|found| found.as_str().to_owned()).collect()
    };
    paragraphs.split(text).flat_map(of).collect()
}

fn is_wide_comment(line: &str) -> bool {
    // Rows of tables cannot be broken.
    let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    line.trim_start().starts_with("//") && !text.starts_with('|') && line.chars().count() > COMMENT_MAX
}

/// The paragraphs of a page: runs of lines that are no code, table, heading or link's definition.
fn paragraphs(page: &str) -> Vec<String> {
    let other = pattern(r"^\s*(?:#|\||<|\[[^\]]*\]: )|^    ");
    let item = pattern(r"^\s*(?:[-*+]|\d+\.|>) ");
    let mut all = vec![String::new()];
    let mut fenced = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let is_other =
            is_fence || fenced || line.trim().is_empty() || (other.is_match(line) && !item.is_match(line));
        if is_other || item.is_match(line) {
            all.push(String::new());
        }
        if !is_other {
            let last = all.last_mut().expect("a paragraph");
            last.push_str(item.replace(line, "").trim());
            last.push('\n');
        }
    }
    all.retain(|paragraph| !paragraph.is_empty());
    all
}

/// The sentences of `text` that have more than `most` words.
fn long_sentences(text: &str, most: usize) -> Vec<String> {
    let ends = pattern(r#"[.!?:;]\s+|\n\n"#);
    let words = |sentence: &str| {
        sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
    };
    let joined = pattern(r"`[^`]*`").replace_all(text, "code").into_owned();
    ends.split(&joined)
        .filter(|sentence| words(sentence) > most)
        .map(|sentence| sentence.trim().to_owned())
        .collect()
}

#[test]
fn comments_fit_and_have_no_idioms() {
    let pattern = pattern(IDIOMS);
    let code = sources(&["rs", "c", "h", "cc"]).into_values().flatten();
    let mut all = pages();
    files(&root().join("include"), &["h"], &mut all);
    let mut faults = Vec::new();
    // This file has the idioms that it finds.
    for path in code.chain(all).filter(|path| !path.ends_with("tidy/words.rs")) {
        let text = read(&path);
        let wide = text.lines().enumerate().filter(|(_, line)| is_wide_comment(line));
        faults
            .extend(wide.map(|(at, _)| format!("{}:{}: over {COMMENT_MAX} columns", path.display(), at + 1)));
        let found = idioms(&text, &pattern);
        faults.extend(found.iter().map(|found| format!("{}: {found:?}: use a noun", path.display())));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn pages_fit_and_have_short_sentences() {
    let mut faults = Vec::new();
    for path in pages() {
        for paragraph in paragraphs(&read(&path)) {
            let wide = paragraph.lines().filter(|line| line.chars().count() > PAGE_MAX && line.contains(' '));
            faults.extend(wide.map(|line| format!("{}: over {PAGE_MAX} columns: {line}", path.display())));
            let long = long_sentences(&paragraph, SENTENCE_MAX);
            faults.extend(
                long.iter().map(|found| format!("{}: over {SENTENCE_MAX} words: {found}", path.display())),
            );
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Messages are the literals of three words or more in what a user installs.
#[test]
fn messages_are_short_and_speak_of_things() {
    let persons = pattern(PERSONS);
    let code = pattern(r"::|=>|[;{]\s*$");
    let mut faults = Vec::new();
    let mut all = 0;
    for (name, paths) in sources(&["rs"]) {
        let is_installed = name == "fleet" || name.starts_with("crates/");
        let is_shipped = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "src");
        if !is_installed || ["crates/conformance", "crates/skip"].contains(&name.as_str()) {
            continue;
        }
        for path in paths.iter().filter(is_shipped) {
            for text in circles::literals(&read(path)) {
                if text.split_whitespace().count() < 3 || code.is_match(&text) {
                    continue;
                }
                all += 1;
                let found = persons.find(&text).map(|found| format!("{:?} in {text:?}", found.as_str()));
                let long =
                    long_sentences(&text, MESSAGE_MAX).pop().map(|found| format!("too long: {found:?}"));
                faults.extend(
                    found.into_iter().chain(long).map(|fault| format!("{}: {fault}", path.display())),
                );
            }
        }
    }
    assert!(all > 1000, "only {all} messages were found");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn subjects_of_commits_are_short() {
    let log = Command::new("git")
        .args(["log", SUBJECTS, "--no-merges", "--format=%s"])
        .current_dir(root())
        .output();
    let Some(log) = log.ok().filter(|log| log.status.success()) else {
        return vellum_skip::skip("git, or the repository's history, is not here");
    };
    for subject in String::from_utf8_lossy(&log.stdout).lines() {
        assert!(subject.chars().count() <= SUBJECT_MAX, "over {SUBJECT_MAX} columns: {subject}");
    }
}

#[test]
fn faults_of_words_are_found() {
    let pattern = pattern(IDIOMS);
    assert_eq!(idioms("/// A reader is\n    /// told. What is freed\n// goes back.\n", &pattern).len(), 2);
    assert!(idioms("Of what is kept, some is\n\ntold apart.", &pattern).is_empty());
    assert!(is_wide_comment(&format!("    // {}", "x".repeat(COMMENT_MAX))));
    assert!(!is_wide_comment(&format!("// {}", "é".repeat(COMMENT_MAX - 3))));
    assert_eq!(paragraphs("# A\n\nb\nc\n- d\n\n    e\n| f |\n```\ng\n```\n"), ["b\nc\n", "d\n"]);
    assert_eq!(
        long_sentences("one two three. four `a b c d`\nfive", 2),
        ["one two three", "four code\nfive"]
    );
}
