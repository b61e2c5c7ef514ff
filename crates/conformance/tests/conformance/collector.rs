//! The collector as C programs see it: the header in every dialect, and scenarios linked with the library.

use std::path::PathBuf;
use std::process::Command;
use vellum_conformance::library::library;
use vellum_conformance::program::{Place, header, sources};
use vellum_conformance::run::plain;

const DIALECTS: &[(&str, &str, &str)] = &[("cc", "c99", "c"), ("cc", "c11", "c"), ("c++", "c++17", "c++")];

/// What every heap does, and what moves; with how many scenarios.
const PROGRAMS: [(&str, usize); 2] = [("collector", 14), ("movement", 6)];

#[test]
fn scenarios_in_every_dialect() {
    let place = Place::new();
    let programs =
        PROGRAMS.into_iter().flat_map(|source| DIALECTS.iter().map(move |dialect| (source, *dialect)));
    for ((source, scenarios), (compiler, dialect, language)) in programs {
        let program = compiled(&place, source, compiler, dialect, language);
        let names = plain(Command::new(&program)).succeeded().text();
        assert_eq!(names.lines().count(), scenarios, "{names}");
        for name in names.lines() {
            let mut command = Command::new(&program);
            command.arg(name);
            plain(command).succeeded();
        }
    }
}

fn compiled(place: &Place, source: &str, compiler: &str, dialect: &str, language: &str) -> PathBuf {
    let directory = library().parent().expect("a library lies in a directory").display().to_string();
    let program = place.file(&format!("{source}-{dialect}"));
    let mut command = Command::new(compiler);
    command.args([&format!("-std={dialect}"), "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]);
    command.arg(format!("-I{}", header().display())).args(["-x", language]);
    command.arg(sources().join(format!("{source}.c"))).args(["-x", "none", "-o"]).arg(&program);
    command.args([&format!("-L{directory}"), "-lvellum", &format!("-Wl,-rpath,{directory}")]);
    plain(command).succeeded();
    program
}

/// Those of which something else is promised than that objects are what they were: how much a heap takes,
/// when it collects, what dies at a certain moment.
const SETTINGS_OF_THEIR_OWN: [&str; 6] = ["settings", "returns", "limits", "weak", "eager", "frames"];

/// One allocation in this many, and which; fewer where more is alive.
const POINTS: [(&str, &[&str]); 2] =
    [("collector", &["1000,seed=4", "5000,seed=5"]), ("movement", &["20000,seed=6"])];

#[test]
fn scenarios_at_random_collection_points() {
    let place = Place::new();
    for (source, all) in POINTS {
        let program = compiled(&place, source, "cc", "c11", "c");
        let names = plain(Command::new(&program)).succeeded().text();
        for name in names.lines().filter(|name| !SETTINGS_OF_THEIR_OWN.contains(name)) {
            for points in all {
                let mut command = Command::new(&program);
                command.arg(name).env("VELLUM_GC_EAGER", points);
                plain(command).succeeded();
            }
        }
    }
}
