//! Tests that run every fuzz target on its corpus and on changed copies of it, with stable Rust, in seconds.
//!
//! `VELLUM_FUZZ_ITERATIONS` sets the number of inputs for each target (by default, as many as fit a short
//! time), and `VELLUM_TEST_SEED` repeats a run. An input that breaks an invariant is shortened and written
//! to a file.

mod change;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vellum_fuzz::{TARGETS, Target};
use vellum_measure::Rng;
use watch::{Counted, Watch};

#[global_allocator]
static COUNTED: Counted = Counted;

/// Default number of inputs for each target.
const ITERATIONS: u64 = 3000;
/// Their longest time together.
const TIME: Duration = Duration::from_secs(3);
/// Tries to shorten a failing input.
const TRIES: usize = 2000;
/// The largest file of a corpus, so that people can read it.
const FILE_BYTES_MAX: u64 = 32 << 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The files of a target's corpus, in the order of their names.
fn kept(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let place = folder().join("corpus").join(target.name);
    let entries = std::fs::read_dir(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(&path).expect("a file of the corpus")))
        .collect()
}

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.name == name).expect("a target of this name")
}

/// Passes the corpus and changed copies of it to the target.
fn run(name: &str) {
    let target = target(name);
    let watch = Watch::new(target);
    let kept = kept(&target);
    assert!(!kept.is_empty(), "{name} has no corpus");
    for (path, input) in &kept {
        if let Err(broken) = watch.run(input) {
            panic!("{name}: {}: {broken:?}", path.display());
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    let seed = number("VELLUM_TEST_SEED").unwrap_or(now);
    let asked = number("VELLUM_FUZZ_ITERATIONS");
    let mut rng = Rng::new(seed);
    let mut inputs: Vec<Vec<u8>> = kept.into_iter().map(|(_, input)| input).collect();
    inputs.push(Vec::new());
    let (began, mut done) = (Instant::now(), 0);
    while done < asked.unwrap_or(ITERATIONS) && (asked.is_some() || began.elapsed() < TIME) {
        let input = change::changed(&inputs, target.words, &mut rng);
        if let Err(broken) = watch.run(&input) {
            let short = change::shortened(input, TRIES, |input| watch.run(input).is_err());
            let path = watch::save(&target, &short);
            panic!(
                "{name}: VELLUM_TEST_SEED={seed}, input {done}: {broken:?}; the input, shortened, is in {}",
                path.display()
            );
        }
        done += 1;
    }
    eprintln!("{name}: VELLUM_TEST_SEED={seed}, {} kept inputs and {done} made of them", inputs.len() - 1);
}

macro_rules! each {
    ($($(#[$when:meta])? $name:ident)*) => {
        $($(#[$when])?
        #[test]
        fn $name() {
            run(stringify!($name));
        })*

        /// The targets tested here.
        const TESTED: &[&str] = &[$($(#[$when])? stringify!($name)),*];
    };
}

each! {
    advice board btf cgroups demangle elf_image elf_symbols held http_request jobs json ledger node observations perf_ring
    procfs recommend sizes state trace unwind watch
}

/// Every target has a test, a corpus of readable files, a program for cargo-fuzz and a row in the list of
/// readers.
#[test]
fn every_target_has_all_its_parts() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let list = std::fs::read_to_string(folder().join("README.md")).expect("the list of readers");
    let manifest = std::fs::read_to_string(folder().join("targets/Cargo.toml")).expect("the manifest");
    for name in &names {
        assert!(list.contains(&format!("`{name}`")), "{name} is not in README.md");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in targets/Cargo.toml");
        let program = folder().join("targets").join(format!("{name}.rs"));
        let program = std::fs::read_to_string(&program).expect("a program for cargo-fuzz");
        assert!(program.contains(&format!("vellum_fuzz::{name}(data)")), "{program}");
        for (path, _) in kept(&target(name)) {
            let bytes = path.metadata().expect("a file").len();
            assert!(bytes <= FILE_BYTES_MAX, "{}: {bytes} bytes", path.display());
        }
    }
    let corpora = std::fs::read_dir(folder().join("corpus")).expect("corpora");
    for folder in corpora {
        let folder = folder.expect("an entry").file_name();
        assert!(names.iter().any(|name| folder == *name), "the corpus {folder:?} has no target");
    }
}

/// The harness finds both kinds of failures: a panic, and unbounded memory.
#[test]
fn broken_invariants_are_found() {
    let panics = Target { name: "panics", run: |data| assert!(!data.contains(&7), "a seven"), words: &[] };
    let watch = Watch::new(panics);
    assert!(watch.run(&[1, 2]).is_ok());
    assert!(matches!(watch.run(&[1, 7]), Err(watch::Broken::Panic(why)) if why == "a seven"));
    let short = change::shortened(vec![1, 2, 3, 7, 5, 6], TRIES, |input| watch.run(input).is_err());
    assert_eq!(short, [7]);
    let takes =
        Target { name: "takes", run: |_| drop(std::hint::black_box(vec![1u8; 256 << 20])), words: &[] };
    assert!(matches!(Watch::new(takes).run(&[]), Err(watch::Broken::Memory(_))));
}
