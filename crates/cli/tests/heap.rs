//! `vellum heap` on programs of which it is known what they hold, and on one that is rough.

mod common;

use common::{VELLUM, report, said, text};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/heap");
/// Standard errors that an estimate may be off: of what is right, one in two million is further.
const DEVIATIONS: f64 = 5.0;
const MEBI: f64 = 1048576.0;

/// The library, built now as it is shipped, where there is a cargo: see the tests of `vellum cost`.
fn runtime() -> &'static Path {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let test = std::env::current_exe().expect("a test program has a path");
        let target = test.ancestors().nth(3).expect("TARGET/PROFILE/deps/test");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut build = Command::new(&cargo);
        build.args(["build", "--release", "--quiet", "-p", "vellum-runtime", "--target-dir"]).arg(target);
        assert!(build.status().expect("cargo starts").success(), "the runtime does not build");
        target.join("release/libvellum.so")
    })
}

/// Compiles a program; `None`, and a word, where there is no compiler.
fn compiled(source: &str, flags: &[&str], place: &Path) -> Option<PathBuf> {
    let program = place.join(source).with_extension("");
    let source = Path::new(SOURCES).join(source);
    let flags = ["-O1", "-g", "-fno-builtin", "-fomit-frame-pointer"].iter().chain(flags);
    match Command::new("gcc").arg(source).args(flags).arg("-o").arg(&program).output() {
        Ok(made) => assert!(made.status.success(), "{}", said(&made)),
        Err(error) => {
            vellum_skip::skip(format_args!("gcc cannot be started: {error}"));
            return None;
        }
    }
    Some(program)
}

fn heap(options: &[&str], program: &[&str], place: &Path) -> Output {
    let mut command = Command::new(VELLUM);
    command.arg("heap").args(options).arg("--").args(program).current_dir(place);
    command.env_remove("LD_PRELOAD").env("VELLUM_LIB", runtime());
    command.output().expect("vellum starts")
}

/// The line of `held.c` that bears a mark.
fn line(mark: &str) -> u64 {
    let source = std::fs::read_to_string(Path::new(SOURCES).join("held.c")).unwrap();
    let mark = format!("/* {mark} */");
    source.lines().position(|line| line.ends_with(&mark)).expect("marked") as u64 + 1
}

/// What the site with that mark holds: bytes, blocks and samples.
fn site(document: &Value, mark: &str, when: &str) -> Option<[f64; 3]> {
    let line = line(mark);
    let sites = document["sites"].as_array().unwrap();
    let site = sites.iter().find(|site| {
        let place = &site["place"];
        place["line"] == line && place["file"].as_str().is_some_and(|file| file.ends_with("held.c"))
    })?;
    Some(["bytes", "blocks", "samples"].map(|key| site["held"][when][key].as_f64().unwrap()))
}

/// A site's bytes and blocks are as known, within what its samples allow.
fn check(document: &Value, mark: &str, when: &str, bytes: f64, blocks: f64) {
    let Some([told, in_blocks, samples]) = site(document, mark, when) else {
        panic!("{mark}: not there");
    };
    let error = ((1.0 - samples / in_blocks).max(0.0) / samples).sqrt();
    // Rounded counts of few blocks, on top.
    let off = DEVIATIONS * error + 1.0 / blocks;
    assert!((told / bytes - 1.0).abs() <= off, "{mark}: {told} bytes for {bytes}, {samples} samples");
    assert!((in_blocks / blocks - 1.0).abs() <= off, "{mark}: {in_blocks} blocks for {blocks}");
}

#[test]
fn what_is_known_is_found_at_its_line() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("held.c", &[], place.path()) else { return };
    // Every 4 KiB: sites of 10 MiB are known to 2 %.
    let outputs = ["-o", "heap.json", "-o", "heap.folded", "-o", "heap.pb.gz", "-o", "heap.svg"];
    let output = heap(&[&["-i", "4K"], &outputs[..]].concat(), &[text(&program)], place.path());
    assert!(output.status.success(), "{}", said(&output));
    let document = report(&place.path().join("heap.json"));
    assert_eq!(document["schema"], "vellum.heap/1");
    let leaks = (20.0 * MEBI / 100.0).floor();
    for when in ["peak", "end"] {
        check(&document, "leaked", when, leaks * 100.0, leaks);
        check(&document, "aligned", when, 5000.0 * 4096.0, 5000.0);
        check(&document, "piece", when, 500.0 * 60000.0, 500.0);
        check(&document, "grown", when, 8.0 * MEBI, 1.0);
    }
    check(&document, "large", "peak", 257.0 * MEBI, 1.0);
    assert_eq!(site(&document, "large", "end"), Some([0.0; 3]));
    check(&document, "zeroed", "ever", 21e6, 10_000.0);
    assert_eq!(site(&document, "zeroed", "end"), Some([0.0; 3]));
    check(&document, "momentary", "ever", 120e6, 3e6);
    assert_eq!(site(&document, "momentary", "end"), Some([0.0; 3]));
    // The sites are all there is.
    for when in ["peak", "end", "ever"] {
        let sites = document["sites"].as_array().unwrap().iter();
        let sum: u64 = sites.map(|site| site["held"][when]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, document["sum"][when]["bytes"].as_u64().unwrap(), "{when}");
    }
    let shown = said(&output);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains(&format!("whole held.c:{}", line("large"))), "{shown}");
    assert!(shown.contains(&format!("leak held.c:{}", line("leaked"))), "{shown}");
    formats(place.path(), &document);
}

/// The other formats say the same.
fn formats(place: &Path, document: &Value) {
    let peak = document["sum"]["peak"]["bytes"].as_u64().unwrap();
    let folded = std::fs::read_to_string(place.join("heap.folded")).unwrap();
    let sum: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, peak);
    assert!(folded.lines().any(|line| line.contains("main;whole ")), "{folded}");
    let svg = std::fs::read_to_string(place.join("heap.svg")).unwrap();
    let drawing = roxmltree::Document::parse(&svg).expect("well-formed");
    let titles: Vec<_> = drawing
        .descendants()
        .filter(|node| node.has_tag_name("title"))
        .filter_map(|node| node.text())
        .collect();
    assert!(titles.iter().any(|title| title.starts_with("whole: 257 MiB")), "{titles:?}");
    let mut profile = Vec::new();
    let file = std::fs::File::open(place.join("heap.pb.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut profile).expect("gzip");
    let texts: Vec<&[u8]> = fields(&profile, 6).collect();
    let mut peaks = 0;
    for sample in fields(&profile, 2) {
        let values = numbers(fields(sample, 2).next().expect("values"));
        assert_eq!(values.len(), 6);
        peaks += values[5];
        assert!(fields(sample, 1).next().is_some(), "a sample has a stack");
    }
    assert_eq!(peaks, peak);
    for wanted in ["", "inuse_space", "peak_space", "whole", "leak"] {
        assert!(texts.contains(&wanted.as_bytes()), "{wanted}");
    }
}

/// A number of variable length, and what follows it.
fn number(bytes: &[u8]) -> (u64, &[u8]) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
    let value = bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    (value, &bytes[length..])
}

fn numbers(mut bytes: &[u8]) -> Vec<u64> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = number(bytes);
        all.push(value);
        bytes = rest;
    }
    all
}

/// The fields of that number that have a length, in a message of protocol buffers.
fn fields(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (key, after) = number(rest);
        let (value, after) = number(after);
        rest = after;
        if key & 7 == 2 {
            let (field, after) = after.split_at(value as usize);
            rest = after;
            if key >> 3 == wanted {
                found.push(field);
            }
        }
    }
    found.into_iter()
}

#[test]
fn rough_programs_come_through() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("rough.c", &["-pthread", "-ldl"], place.path()) else { return };
    let Some(library) = compiled("plugin.c", &["-shared", "-fPIC"], place.path()) else { return };
    for interval in ["256", "16K"] {
        let options = ["-i", interval, "-o", "heap.json"];
        let output = heap(&options, &[text(&program), text(&library)], place.path());
        assert!(output.status.success(), "every {interval}: {}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
        let document = report(&place.path().join("heap.json"));
        let processes = document["processes"].as_array().unwrap();
        assert!(processes.len() > 1, "children have profiles of their own");
        assert_eq!(processes[0]["is_forked"], false);
        assert!(processes[1..].iter().all(|process| process["is_forked"] == true));
    }
}

#[test]
fn a_program_that_is_killed_has_lost_nothing() {
    let place = tempfile::tempdir().unwrap();
    let script = "import os\nkept = [bytearray(1 << 20) for _ in range(64)]\nos.kill(os.getpid(), 9)";
    if Command::new("python3").arg("-c").arg("").status().is_err() {
        return vellum_skip::skip("python3 cannot be started");
    }
    let output = heap(&["-o", "heap.json"], &["python3", "-c", script], place.path());
    assert_eq!(output.status.code(), Some(128 + 9), "{}", said(&output));
    let document = report(&place.path().join("heap.json"));
    let held = document["sum"]["end"]["bytes"].as_f64().unwrap();
    // Blocks of a mebibyte are sampled by six in seven, each to stand for itself and a sixth.
    assert!((0.7..1.4).contains(&(held / (64.0 * MEBI))), "{held}");
}

#[test]
fn a_format_that_is_not_known_is_refused_before_the_program_runs() {
    let place = tempfile::tempdir().unwrap();
    let output = heap(&["-o", "heap"], &["touch", "ran"], place.path());
    assert_eq!(output.status.code(), Some(125));
    assert!(said(&output).contains("--format"), "{}", said(&output));
    assert!(!place.path().join("ran").exists());
}
