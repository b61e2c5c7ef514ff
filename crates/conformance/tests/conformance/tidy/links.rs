//! Tests that each link in a document leads to a file, and to a heading in it if the link names one. Also
//! tests that the book's table of contents has every page.

use crate::house::{files, read, root};
use regex::Regex;
use std::path::{Path, PathBuf};

fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut all: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| root.join(name))
        .into();
    files(&root.join("docs"), &["md"], &mut all);
    all
}

/// The text without blocks of code: those in fences, and indented ones.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence && !line.starts_with("    ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The name by which a heading is linked to, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn headings(text: &str) -> Vec<String> {
    prose(text)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| slug(line.trim_start_matches('#')))
        .collect()
}

/// The target of each link in a text.
fn targets(text: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^()\s]+)\)").expect("an expression");
    let code = Regex::new(r"`[^`\n]*`").expect("an expression");
    let text = prose(text);
    let text = code.replace_all(&text, "");
    link.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}

/// Why a link from `document` leads nowhere.
fn broken(document: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let file = match path {
        "" => document.to_owned(),
        path => document.parent().expect("a file lies in a folder").join(path),
    };
    if !file.exists() {
        return Some(format!("{}: there is no {target}", document.display()));
    }
    let heading = heading.filter(|_| file.extension().is_some_and(|ending| ending == "md"))?;
    let is_there = headings(&read(&file)).iter().any(|known| known == heading);
    (!is_there).then(|| format!("{}: no heading for {target}", document.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut all = 0;
    let mut dead = Vec::new();
    for document in documents() {
        for target in targets(&read(&document)) {
            all += 1;
            dead.extend(broken(&document, &target));
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(all > 50, "only {all} links were found");
}

#[test]
fn the_book_has_every_page() {
    let folder = root().join("docs");
    let contents = targets(&read(&folder.join("SUMMARY.md")));
    let mut pages = Vec::new();
    files(&folder, &["md"], &mut pages);
    let names = pages.iter().map(|page| page.strip_prefix(&folder).expect("a page").display().to_string());
    let missing: Vec<String> =
        names.filter(|name| name != "SUMMARY.md" && !contents.contains(name)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md has no line for {missing:?}");
}

#[test]
fn broken_links_are_found() {
    let page = root().join("docs/malloc.md");
    assert!(broken(&page, "nowhere.md").is_some());
    assert!(broken(&page, "malloc.md#no-such-heading").is_some());
    assert_eq!(broken(&page, "malloc.md#mappings"), None);
    assert_eq!(targets("see [a](b.md) and `[c](d.md)`\n\n    [e](f.md)\n"), ["b.md"]);
}
