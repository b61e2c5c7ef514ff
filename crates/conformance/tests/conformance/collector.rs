//! Tests of the collector's C interface: its header in C99, C11 and C++17, and programs that use it.

use std::path::PathBuf;
use vellum_conformance::library::library;
use vellum_conformance::program::{header, sources};
use vellum_conformance::scenario::names;
use vellum_conformance::{plain, with_args, with_env};

/// The programs and their numbers of scenarios: for every heap, and for moving plans.
const COLLECTOR: (&str, usize) = ("collector", 14);
const MOVEMENT: (&str, usize) = ("movement", 6);

/// Runs all scenarios of a program compiled in this dialect.
fn scenarios((source, scenarios): (&str, usize), compiler: &str, dialect: &str) {
    let program = compiled(source, compiler, dialect);
    let names = names(&program);
    assert_eq!(names.len(), scenarios, "{names:?}");
    for name in names {
        plain(with_args(&program, &[&name])).succeeded();
    }
}

#[test]
fn scenarios_in_every_dialect() {
    for (compiler, dialect) in [("cc", "c99"), ("cc", "c11"), ("c++", "c++17")] {
        scenarios(COLLECTOR, compiler, dialect);
        scenarios(MOVEMENT, compiler, dialect);
    }
}

/// Compiles `c/SOURCE.c` in this dialect; a C++ compiler compiles it as C++.
fn compiled(source: &str, compiler: &str, dialect: &str) -> PathBuf {
    let directory = library().parent().expect("a library lies in a directory").display().to_string();
    let flags = [
        format!("-std={dialect}"),
        format!("-I{}", header().display()),
        format!("-L{directory}"),
        format!("-Wl,-rpath,{directory}"),
    ];
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-lvellum"]);
    let source = [sources().join(format!("{source}.c"))];
    vellum_skip::compiled(compiler, "program", &source, &flags).unwrap_or_else(|why| panic!("{why}"))
}

/// Scenarios that check more than the contents of objects: the size of a heap, the time of a collection, or
/// the death of an object at a certain moment.
const SETTINGS_OF_THEIR_OWN: [&str; 6] = ["settings", "returns", "limits", "weak", "eager", "frames"];

/// Collections at random points: `points` gives the mean number of allocations between them, and the seed.
fn at_random_collection_points((source, _): (&str, usize), points: &str) {
    let program = compiled(source, "cc", "c11");
    let names = names(&program);
    for name in names.iter().filter(|name| !SETTINGS_OF_THEIR_OWN.contains(&name.as_str())) {
        plain(with_env(with_args(&program, &[name]), &[("VELLUM_GC_EAGER", points)])).succeeded();
    }
}

#[test]
fn scenarios_at_random_collection_points() {
    at_random_collection_points(COLLECTOR, "1000,seed=4");
}

#[test]
fn scenarios_at_fewer_random_collection_points() {
    at_random_collection_points(COLLECTOR, "5000,seed=5");
}

/// Fewer collections, as more objects are alive.
#[test]
fn objects_move_at_random_collection_points() {
    at_random_collection_points(MOVEMENT, "20000,seed=6");
}
