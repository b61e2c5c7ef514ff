//! The collector as C programs see it: the header in every dialect, and scenarios linked with the library.

use std::process::Command;
use vellum_conformance::library::library;
use vellum_conformance::program::{Place, header, sources};
use vellum_conformance::run::plain;

const DIALECTS: &[(&str, &str, &str)] = &[("cc", "c99", "c"), ("cc", "c11", "c"), ("c++", "c++17", "c++")];

#[test]
fn scenarios_in_every_dialect() {
    let place = Place::new();
    let directory = library().parent().expect("a library lies in a directory").display().to_string();
    for &(compiler, dialect, language) in DIALECTS {
        let program = place.file(&format!("collector-{dialect}"));
        let mut command = Command::new(compiler);
        command.args([&format!("-std={dialect}"), "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]);
        command.arg(format!("-I{}", header().display())).args(["-x", language]);
        command.arg(sources().join("collector.c")).args(["-x", "none", "-o"]).arg(&program);
        command.args([&format!("-L{directory}"), "-lvellum", &format!("-Wl,-rpath,{directory}")]);
        plain(command).succeeded();
        let names = plain(Command::new(&program)).succeeded().text();
        assert!(names.lines().count() > 5, "{names}");
        for name in names.lines() {
            let mut command = Command::new(&program);
            command.arg(name);
            plain(command).succeeded();
        }
    }
}
