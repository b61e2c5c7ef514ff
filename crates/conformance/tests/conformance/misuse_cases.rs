//! Counts how many of 116 ways to misuse memory are detected: by the C library, by Vellum, and by Vellum's
//! hardened mode.
//!
//! ```text
//! cargo test -p vellum-conformance --test conformance -- misuse_cases --nocapture
//! ```
//!
//! This command prints the table. `VELLUM_TEST_ALLOCATORS=/path/to/libmimalloc-secure.so:...` adds columns
//! for other allocators.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use vellum_conformance::{Outcome, compiled, plain, served, with_args, with_env};

const CASES: usize = 116;
/// The least number of cases that Vellum detects: as many as glibc 2.36.
const CAUGHT_MIN: usize = 79;
/// The least number of cases that the hardened mode detects.
const CAUGHT_HARDENED_MIN: usize = 113;
/// The exit status of a case that found no harm done.
const HARMLESS: i32 = 10;
/// The exit status of a case that could not be tried.
const BROKEN: i32 = 1;

struct Column {
    name: String,
    outcomes: Vec<Outcome>,
}

impl Column {
    fn new(name: &str, cases: &[&str], run: impl Fn(&str) -> Outcome) -> Column {
        let outcomes: Vec<Outcome> = cases.iter().map(|case| run(case)).collect();
        let broken = outcomes.iter().find(|outcome| outcome.status.code() == Some(BROKEN));
        assert!(broken.is_none(), "{}", broken.map(ToString::to_string).unwrap_or_default());
        Column { name: name.into(), outcomes }
    }

    fn caught(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.status.code() != Some(0)).count()
    }
}

fn described(outcome: &Outcome) -> String {
    match (outcome.status.code(), outcome.status.signal()) {
        (Some(0), _) => "-".into(),
        (Some(HARMLESS), _) => "no harm".into(),
        (Some(code), _) => format!("exit {code}"),
        (_, Some(6)) => "abort".into(),
        (_, Some(11)) => "fault".into(),
        (_, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

fn print(cases: &[&str], columns: &[Column]) {
    let row = |first: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>16}")).collect();
        println!("{first:32}{cells}");
    };
    row("case/bytes", columns.iter().map(|column| column.name.clone()).collect());
    for (index, case) in cases.iter().enumerate() {
        row(case, columns.iter().map(|column| described(&column.outcomes[index])).collect());
    }
    row("caught", columns.iter().map(|column| format!("{} of {CASES}", column.caught())).collect());
}

#[test]
fn misuse_is_detected_as_often_as_documented() {
    let program = compiled("misuse_cases.c", &["-pthread", "-lstdc++"]);
    let names = plain(Command::new(&program)).succeeded().text();
    let cases: Vec<&str> = names.lines().collect();
    assert_eq!(cases.len(), CASES, "{names}");
    let command = |case: &str| with_args(&program, &[case]);
    let mut columns = vec![
        Column::new("glibc", &cases, |case| plain(command(case))),
        Column::new("vellum", &cases, |case| served(command(case))),
        Column::new("vellum hardened", &cases, |case| {
            served(with_env(command(case), &[("VELLUM_HARDEN", "1")]))
        }),
    ];
    let others = std::env::var("VELLUM_TEST_ALLOCATORS").unwrap_or_default();
    for library in others.split(':').filter(|library| !library.is_empty()) {
        let name = Path::new(library).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let run = |case: &str| plain(with_env(command(case), &[("LD_PRELOAD", library)]));
        columns.push(Column::new(&name, &cases, run));
    }
    print(&cases, &columns);
    assert!(columns[1].caught() >= CAUGHT_MIN, "{} are caught, not {CAUGHT_MIN}", columns[1].caught());
    assert!(
        columns[2].caught() >= CAUGHT_HARDENED_MIN,
        "{} are caught hardened, not {CAUGHT_HARDENED_MIN}",
        columns[2].caught()
    );
}
