//! Tests that `libvellum.so`, unchanged, also works in programs that use musl instead of glibc.

use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_conformance::library::{command, library};
use vellum_conformance::program::header;
use vellum_conformance::scenario::{check_one, names};
use vellum_conformance::{Place, check_all, compiled_by, plain, served, skip, with_args};

/// Programs linked with the library, and their numbers of scenarios.
const LINKED: [(&str, usize); 2] = [("collector", 14), ("movement", 6)];

/// Flags for musl's compiler, whose own folder has no headers of the kernel.
const FLAGS: [&str; 5] =
    ["-D_GNU_SOURCE", "-pthread", "-idirafter", "/usr/include", "-idirafter/usr/include/x86_64-linux-gnu"];

/// The program by musl's compiler; `None`, with a skip, if that is not installed.
fn compiled(name: &str, more: &[&str]) -> Option<PathBuf> {
    const COMPILER: &str = "musl-gcc";
    if compiled_by(COMPILER, "plain.c", &["-pthread"]).is_err() {
        skip("no musl-gcc on this machine");
        return None;
    }
    let include = format!("-I{}", header().display());
    let flags = [&FLAGS[..], &[&include], more].concat();
    Some(compiled_by(COMPILER, &format!("{name}.c"), &flags).unwrap_or_else(|said| panic!("{name}: {said}")))
}

/// The scenarios of a program are the same with and without Vellum.
fn scenarios(name: &str, environment: &[(&str, &str)]) {
    if let Some(program) = compiled(name, &[]) {
        check_all(&program, environment);
    }
}

#[test]
fn forks() {
    scenarios("forks", &[]);
}

#[test]
fn rights() {
    scenarios("rights", &[("RACES", "3")]);
}

#[test]
fn threads() {
    scenarios("threads", &[]);
}

#[test]
fn vel() {
    scenarios("vel", &[]);
}

/// A test for each scenario of a program that pages.
macro_rules! in_few_frames {
    ($module:ident: $source:literal, $frames:literal; $($name:ident)+) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $name() {
                    let Some(program) = compiled($source, &[]) else { return };
                    check_one(&program, stringify!($name), &[("VELLUM_FRAMES", $frames)]);
                }
            )+
        }
    };
}

in_few_frames! { small_blocks_in_few_frames: "frames", "1M";
    small threads mappings calls signals forks
}

in_few_frames! { big_blocks_in_few_frames: "paging", "2M";
    walk dropped files streams messages threads signals forks vellum_behind_our_back
}

#[test]
fn random_mappings() {
    let Some(program) = compiled("mapfuzz", &[]) else { return };
    served(with_args(program, &["1", "200"])).succeeded();
}

/// `vellum run`, `cost` and `heap` work on musl programs too.
#[test]
fn commands() {
    let place = Place::new();
    let Some(program) = compiled("musl", &[]) else { return };
    let Some(vellum) = command() else { return skip("no command vellum beside the library") };
    let with = |arguments: &[&str]| {
        let mut command = Command::new(&vellum);
        command.args(arguments).arg("--").arg(&program);
        plain(command).succeeded()
    };
    let report = place.file("report.json");
    let ran = with(&["run", "-q", "--json", report.to_str().expect("a plain path")]);
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("done\n", ""), "{ran}");
    let report = std::fs::read_to_string(report).expect("a report");
    assert!(
        report.contains("\"program\": \"serving\"") || report.contains("\"program\":\"serving\""),
        "{report}"
    );
    assert!(with(&["cost"]).stderr.contains("operations "), "it is recorded");
    assert!(with(&["heap"]).stderr.contains("allocated "), "it is sampled");
}

/// The collector finds roots with musl's data about stacks, static and thread-local data.
#[test]
fn the_collector() {
    let folder = library().parent().unwrap_or(Path::new("/")).display().to_string();
    let (search, find) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    for (name, scenarios) in LINKED {
        let Some(program) = compiled(name, &[&search, &find, "-lvellum"]) else { return };
        let names = names(&program);
        assert_eq!(names.len(), scenarios, "{names:?}");
        for scenario in names {
            plain(with_args(&program, &[&scenario])).succeeded();
        }
    }
}
