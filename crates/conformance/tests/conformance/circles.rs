//! Finds which files of a crate use each other, and the longest *circle*: files that all use each other,
//! directly or through others.
//!
//! A file uses another one if a path in it leads to that file's module, in a `use` or in an expression. A
//! re-exported name counts as a use of the file that defines it. Test modules within a file do not count.

use regex::Regex;
use std::collections::BTreeMap;
use std::path::Path;

type Names = Vec<String>;

/// A file of a crate: its module's path below the crate, and its code without comments, strings and tests.
struct File {
    module: Names,
    code: String,
}

/// The paths that `tree`, what follows `use`, names below `prefix`, each with the name it gets here.
fn expand(prefix: &[String], tree: &str, into: &mut Vec<(Names, String)>) {
    let segments = |text: &str| -> Names {
        let words = text.split("::").map(str::trim);
        prefix.iter().cloned().chain(words.filter(|word| !word.is_empty()).map(str::to_owned)).collect()
    };
    if let (Some(open), Some(close)) = (tree.find('{'), tree.rfind('}')) {
        let base = segments(&tree[..open]);
        let (mut depth, mut start) = (0, open + 1);
        for (at, byte) in tree.bytes().enumerate().take(close + 1).skip(open + 1) {
            match byte {
                b'{' => depth += 1,
                b',' if depth == 0 => {
                    expand(&base, &tree[start..at], into);
                    start = at + 1;
                }
                b'}' if at == close => expand(&base, &tree[start..at], into),
                b'}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let mut halves = tree.split(" as ");
    let mut path = segments(halves.next().unwrap_or_default());
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        into.push((path, halves.next().map_or(last, |alias| alias.trim().to_owned())));
    }
}

/// Comments, characters and strings of Rust.
fn noise() -> Regex {
    Regex::new(r##"//[^\n]*|(?s:/\*.*?\*/)|b?'(?:\\.|[^\\'])'|r#"(?s:.*?)"#|"(?:\\(?s:.)|[^"\\])*""##)
        .expect("a pattern")
}

/// The beginning of a module of tests within a file.
fn tests() -> Regex {
    Regex::new(r"(?m)^#\[cfg\((?:all\()?test[^\n]*\n(?:#[^\n]*\n)*mod \w+ \{").expect("a pattern")
}

/// The strings of `code` that users may see, lines joined, arguments as `N`. Strings of tests, assertions and
/// lints are left out.
pub(crate) fn literals(code: &str) -> Vec<String> {
    let until = tests().find(code).map_or(code.len(), |found| found.start());
    let [joined, argument] = [r"\\\n\s*", r"\{[^}]*\}"].map(|text| Regex::new(text).expect("a pattern"));
    let is_seen = |at: usize| {
        let statement = code[..at].rsplit([';', '{', '}']).next().unwrap_or_default();
        !statement.contains("assert") && !statement.ends_with("reason = ") && !statement.ends_with("expect(")
    };
    noise()
        .find_iter(&code[..until])
        .filter(|found| is_seen(found.start()))
        .filter_map(|found| found.as_str().strip_prefix('"')?.strip_suffix('"'))
        .map(|text| argument.replace_all(&joined.replace_all(text, ""), "N").replace("\\n", "\n\n"))
        .collect()
}

fn files(folder: &Path, module: &[String], into: &mut Vec<File>) {
    let (noise, tests) = (noise(), tests());
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_str().expect("text").to_owned();
        let own: Names = module.iter().cloned().chain([stem.clone()]).collect();
        if path.is_dir() {
            if stem != "bin" {
                files(&path, &own, into);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            let mut code = noise.replace_all(&text, " ").into_owned();
            if let Some(found) = tests.find(&code) {
                code.truncate(found.start());
            }
            let is_parent = ["lib", "main", "mod"].contains(&stem.as_str());
            into.push(File { module: if is_parent { module.to_vec() } else { own }, code });
        }
    }
}

/// `path`, written in `module`, from the crate on; `None` for what is not of the crate, as far as the path
/// shows.
fn from_crate(path: &[String], module: &[String]) -> Option<Names> {
    let up = path.iter().take_while(|word| *word == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => Some([&module[..module.len().saturating_sub(up)], &path[up..]].concat()),
        _ => None,
    }
}

/// The files of the crate in `source`, by their modules, and for each the files that it uses.
fn arrows(source: &Path) -> (Vec<Names>, Vec<Vec<bool>>) {
    let mut all = Vec::new();
    files(source, &[], &mut all);
    let used = Regex::new(r"\buse ([^;]*);").expect("a pattern");
    let named = Regex::new(r"\b(?:crate|super)(?:::\w+)+").expect("a pattern");
    let home: BTreeMap<&[String], usize> =
        all.iter().enumerate().map(|(at, file)| (&file.module[..], at)).collect();
    // The file into whose module a path leads, and the part of the path that is within the file.
    let resolve = |path: &[String]| {
        let length = (0..=path.len()).rev().find(|&length| home.contains_key(&path[..length]))?;
        Some((home[&path[..length]], path[length..].to_vec()))
    };
    // By file: what it takes in, by the name that this has there.
    let mut taken = vec![BTreeMap::new(); all.len()];
    let mut paths = vec![Vec::new(); all.len()];
    for (at, file) in all.iter().enumerate() {
        let mut uses = Vec::new();
        used.captures_iter(&file.code).for_each(|found| expand(&[], &found[1], &mut uses));
        for (path, name) in uses {
            let child = [&file.module[..], &path[..]].concat();
            let is_child = resolve(&child).is_some_and(|(other, _)| other != at);
            let own = path.first().is_some_and(|first| first == "self");
            let full = from_crate(&path, &file.module);
            paths[at].extend(full.clone());
            let inner = own.then(|| [&file.module[..], &path[1..]].concat());
            if let Some(full) = full.or(inner).or(is_child.then_some(child)) {
                taken[at].insert(name, full);
            }
        }
        for found in named.find_iter(&used.replace_all(&file.code, " ")) {
            let path: Names = found.as_str().split("::").map(str::to_owned).collect();
            paths[at].extend(from_crate(&path, &file.module));
        }
    }
    let count = all.len();
    let mut reaches = vec![vec![false; count]; count];
    for at in 0..count {
        for path in &paths[at] {
            let Some((mut to, mut rest)) = resolve(path) else { continue };
            // A name may be passed on some times.
            for _ in 0..3 {
                let Some(full) = rest.first().and_then(|name| taken[to].get(name)) else { break };
                let Some(next) = resolve(&[&full[..], &rest[1..]].concat()) else { break };
                (to, rest) = next;
            }
            reaches[at][to] |= to != at;
        }
    }
    (all.into_iter().map(|file| file.module).collect(), reaches)
}

/// The files of the crate in `source` that name a file of a folder above their own, by `order`, lowest first.
/// Files that are in no folder of these may name all.
pub(crate) fn upward(source: &Path, order: &[String]) -> Vec<String> {
    let (modules, names) = arrows(source);
    let rank = |file: usize| order.iter().position(|folder| modules[file].first() == Some(folder));
    let mut found = Vec::new();
    for (from, named) in names.iter().enumerate() {
        let Some(own) = rank(from) else { continue };
        for to in (0..modules.len()).filter(|&to| named[to] && rank(to).is_none_or(|other| other > own)) {
            found.push(format!("{} names {}", modules[from].join("/"), modules[to].join("/")));
        }
    }
    found
}

/// The files of the longest circle of the crate in `source`; none without a circle.
pub(crate) fn longest(source: &Path) -> Vec<String> {
    let (modules, mut reaches) = arrows(source);
    let count = modules.len();
    for middle in 0..count {
        let onward = reaches[middle].clone();
        for from in reaches.iter_mut().filter(|from| from[middle]) {
            from.iter_mut().zip(&onward).for_each(|(there, &on)| *there |= on);
        }
    }
    let is_both = |a: usize, b: usize| reaches[a][b] && reaches[b][a];
    let of = |from: usize| {
        let circle = (0..count).filter(|&to| is_both(from, to));
        circle.map(|file| modules[file].join("::")).collect::<Vec<_>>()
    };
    (0..count).map(of).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn circles_are_found() {
    let place = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).expect("a file");
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Thing;\n");
    write("a.rs", "use crate::{Thing, c::{self, d as e}};\n");
    write("b.rs", "pub struct Thing; // crate::a\n");
    write("c.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    assert_eq!(longest(place.path()).len(), 0);
    write("b.rs", "pub struct Thing;\nfn f() { super::c::g(\"crate::a\") }\n");
    assert_eq!(longest(place.path()).len(), 0);
    write("c.rs", "use crate::a::{x};\n");
    assert_eq!(longest(place.path()).len(), 3);
    write("a.rs", "use crate::c::d;\n");
    assert_eq!(longest(place.path()).len(), 2);
    let order = ["c", "a", "b"].map(str::to_owned);
    assert_eq!(upward(place.path(), &order), ["c names a"]);
}
