//! Rows of `vellum doctor`: libraries and companion programs of this command, and support for i386 programs.

use super::row::{Row, Section, State};
use std::path::PathBuf;
use vellum_process::library::{self, LibraryError};

pub(super) fn rows() -> Vec<Row> {
    let runtime = library::find(None);
    let i386 = i386(runtime.as_ref().ok());
    let recorder = library::find_recorder(None);
    let fleet = library::find_program("vellum-fleet", "fleet/build makes it");
    let papers = library::find_program("vellum-papers", "lab/build papers makes it");
    vec![
        found("library", "no program runs on Vellum", runtime),
        i386,
        found("recorder", "cost does not work", recorder),
        found("libgc", "run --libgc does not work", library::find_libgc()),
        found("fleet", "agent, recommend and plan do not work", fleet),
        found("papers", "papers does not work", papers),
    ]
}

fn found(name: &'static str, instead: &str, found: Result<PathBuf, LibraryError>) -> Row {
    let row = |what| Row::works(Section::Libraries, name, what);
    match found {
        Ok(path) => row(path.display().to_string()),
        Err(error) => row(String::new()).absent(State::Missing, instead, &error.to_string()),
    }
}

/// Programs of i386 beside those of x86-64.
fn i386(library: Option<&PathBuf>) -> Row {
    let row = |what: &str| Row::works(Section::Libraries, "i386", what);
    let Some(library) = library.filter(|_| library::runs_i386()) else {
        return row("no programs of i386 run here: nothing is needed for them");
    };
    if library::for_every_machine(library) != *library {
        return row("programs of i386 get an empty library of theirs, and run without Vellum");
    }
    row("programs of i386 get an empty library of theirs").falls_back(
        "their dynamic linker prints in each that it ignores a library of another class",
        format!("{} is not there or leads elsewhere", library.with_file_name("platform").display()),
        "copy the folder platform from where ./build made it, with its links (cp -a)",
    )
}
