//! Tests of the report of `vellum heap`: allocating source lines, filters, and notes on missing data.

use crate::common::held::{compiled, heap, profiled};
use crate::common::{VELLUM, exits, has, report, said, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Wrapper functions are skipped, so their callers are named; filters limit the report.
#[test]
fn wrappers_are_folded_and_callers_shown() {
    let place = tempfile::tempdir().unwrap();
    let [Some(program), Some(bare)] = [&[][..], &["-g0"]].map(|flags| compiled("wrapped.c", flags)) else {
        return;
    };
    let exact = |program: &Path, options: &[&str]| {
        let (output, document) = profiled(&[&["-i", "1"], options].concat(), &[text(program)], place.path());
        // Words and figures only, independent of the terminal's width.
        let shown = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        (shown, document)
    };
    for (program, options, wanted) in [
        (&program, &[][..], &["parse wrapped.c:20 30.0 MiB", "pool_get wrapped.c:16 12.0 MiB"][..]),
        (&program, &[], &["← load wrapped.c:28 ← … 20.0 MiB", "← render wrapped.c:25 ← main"]),
        (&program, &["--hide", "^pool_"], &["render wrapped.c:25 12.0 MiB"]),
        (&program, &["--callees"], &["→ load → parse wrapped.c:20 20.0 MiB"]),
        (&program, &["--function", "load$"], &["peak 30.0 MiB in 30 blocks", "--function 'load$'"]),
        (&program, &["--function", "^load", "--module", "wrapped"], &["peak 20.0 MiB in 20 blocks"]),
        (&program, &["--pid", "1"], &["peak 0 B", "no sample matches: --pid 1"]),
        (&bare, &[], &["parse (wrapped) 30.0 MiB", "← reload ← main 10.0 MiB"]),
    ] {
        let (shown, document) = exact(program, options);
        has(&shown, wanted);
        assert!(!shown.contains("xmalloc"), "{options:?}: {shown}");
        // The document has the data for the tree.
        let stacks = document["stacks"].as_array().unwrap();
        for (number, site) in document["sites"].as_array().unwrap().iter().enumerate() {
            let of = stacks.iter().filter(|stack| stack["site"] == number);
            let sum: u64 = of.map(|stack| stack["held"]["peak"]["bytes"].as_u64().unwrap()).sum();
            assert_eq!(site["held"]["peak"]["bytes"], sum);
        }
    }
    // The growth, in every format.
    exact(&program, &["--function", "load$", "-o", "old.json"]);
    exact(&program, &["-o", "new.json"]);
    let files = ["d.txt", "d.html", "d.svg", "d.folded", "d.json", "d.pb.gz"];
    let mut command = Command::new(VELLUM);
    command.args(["heap", "--diff", "old.json", "new.json"]).args(files.iter().flat_map(|file| ["-o", file]));
    exits(0, command.current_dir(place.path()).output().expect("vellum starts"));
    for file in &files[..5] {
        let written = std::fs::read_to_string(place.path().join(file)).unwrap();
        assert!(written.contains("pool_get"), "{file}: {written}");
        assert!(!written.contains("load"), "{file}: {written}");
    }
    assert_eq!(report(&place.path().join("d.json"))["sum"]["peak"]["bytes"], 12 << 20);
    assert!(place.path().join("d.pb.gz").exists());
}

#[test]
fn mappings_count_until_unmapped() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("mapped.c", &[]) else { return };
    for (word, notes) in [
        (None, &[][..]),
        (Some("gone"), &["1 process left by _exit, a signal, or for a program that is not profiled: mapped"]),
        (Some("large"), &["the program maps its memory itself"]),
    ] {
        let words: Vec<&str> = [text(&program)].into_iter().chain(word).collect();
        let output = heap(&["-o", "heap.json"], &words, place.path());
        let document = report(&place.path().join("heap.json"));
        let told: Vec<&str> =
            document["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(told.len(), notes.len(), "{}", said(&output));
        assert!(told.iter().zip(notes).all(|(told, wanted)| told.starts_with(wanted)), "{told:?}");
        let mapped = if word == Some("large") { 0 } else { (24 + 12 + 2 + 32 * 8 + 24 + 16) << 20 };
        let sum = &document["sum"];
        let [end, ever, freed] = [&sum["end"]["bytes"], &sum["ever"]["bytes"], &document["freed_bytes"]]
            .map(|bytes| bytes.as_u64().unwrap());
        assert!(end.abs_diff(mapped) <= 100 && ever - freed == end, "{}", said(&output));
    }
}
