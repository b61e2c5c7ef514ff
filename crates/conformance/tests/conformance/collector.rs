//! The collector as C programs see it: the header in every dialect, and scenarios linked with the library.

use std::process::Command;
use vellum_conformance::library::library;
use vellum_conformance::program::{Place, header, sources};
use vellum_conformance::run::plain;

const DIALECTS: &[(&str, &str, &str)] = &[("cc", "c99", "c"), ("cc", "c11", "c"), ("c++", "c++17", "c++")];

/// What every heap does, and what moves; with how many scenarios.
const PROGRAMS: [(&str, usize); 2] = [("collector", 12), ("movement", 6)];

#[test]
fn scenarios_in_every_dialect() {
    let place = Place::new();
    let directory = library().parent().expect("a library lies in a directory").display().to_string();
    let programs =
        PROGRAMS.into_iter().flat_map(|source| DIALECTS.iter().map(move |dialect| (source, *dialect)));
    for ((source, scenarios), (compiler, dialect, language)) in programs {
        let program = place.file(&format!("{source}-{dialect}"));
        let mut command = Command::new(compiler);
        command.args([&format!("-std={dialect}"), "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]);
        command.arg(format!("-I{}", header().display())).args(["-x", language]);
        command.arg(sources().join(format!("{source}.c"))).args(["-x", "none", "-o"]).arg(&program);
        command.args([&format!("-L{directory}"), "-lvellum", &format!("-Wl,-rpath,{directory}")]);
        plain(command).succeeded();
        let names = plain(Command::new(&program)).succeeded().text();
        assert_eq!(names.lines().count(), scenarios, "{names}");
        for name in names.lines() {
            let mut command = Command::new(&program);
            command.arg(name);
            plain(command).succeeded();
        }
    }
}
