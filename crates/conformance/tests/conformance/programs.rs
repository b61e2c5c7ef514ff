//! Tests of programs in daily use: interpreters, compilers, a database, version control. In each mode of
//! Vellum their output, errors and status must be the same as without it.
//!
//! `paging` and `bounds` run some of them with few page frames. The matrix (`lab/matrix`) runs some 170 more.

use std::path::Path;
use std::process::Command;
use vellum_conformance::{Place, plain, same, served, skip, tool, with_args};
use vellum_wire::Attach;

/// Tests of one program, each with different environment variables.
macro_rules! modes {
    ($program:ident: $($mode:ident $environment:expr),+) => {
        mod $program {
            $(
                #[test]
                fn $mode() {
                    super::$program(&$environment);
                }
            )+
        }
    };
}

modes! { python: usual [], hardened [("VELLUM_HARDEN", "1")], without_its_own_pools [("PYTHONMALLOC", "malloc")] }
modes! { perl: usual [], hardened [("VELLUM_HARDEN", "1")] }
modes! { sqlite: usual [], hardened [("VELLUM_HARDEN", "1")] }

const PYTHON: &str = include_str!("../../c/programs/script.py");

fn python(environment: &[(&str, &str)]) {
    let Some(python) = tool("python3") else { return };
    let place = Place::new();
    let script = place.file("script.py");
    std::fs::write(&script, PYTHON).expect("a script");
    let run = || {
        let mut command = Command::new(&python);
        command.arg(&script).env("PYTHONHASHSEED", "0").env("PYTHONDONTWRITEBYTECODE", "1");
        command.envs(environment.iter().copied());
        command
    };
    // The program exits with status 3, and `same` requires success, so the runs are compared here.
    let (without, with) = (plain(run()), served(run()));
    assert_eq!(without.status.code(), Some(3), "{without}");
    assert_eq!((with.status, &with.stdout, &with.stderr), (without.status, &without.stdout, &without.stderr));
    assert_eq!(with.attach(), Attach::Serving);
}

const C_SOURCE: &str = include_str!("../../c/programs/tree.c");

const CPP_SOURCE: &str = include_str!("../../c/programs/things.cc");

/// Compiles with and without Vellum; the objects must be identical, and so must their programs' output.
fn compiles(compiler: &str, name: &str, source: &str, flags: &[&str]) {
    let Some(compiler) = tool(compiler) else { return };
    let place = Place::new();
    let file = place.file(name);
    std::fs::write(&file, source).expect("a source file");
    let command = |to: &Path| {
        let mut command = Command::new(&compiler);
        command.args(flags).arg(&file).arg("-o").arg(to);
        command
    };
    let (one, other) = (place.file("one"), place.file("other"));
    let (without, with) = (plain(command(&one)).succeeded(), served(command(&other)).succeeded());
    assert_eq!((without.stderr.as_str(), with.stderr.as_str()), ("", ""), "{without}\n{with}");
    assert!(with.seats.len() >= 3, "driver, compiler and linker: {:?}", with.seats);
    assert!(with.seats.iter().all(|seat| seat.attach == Attach::Serving), "{:?}", with.seats);
    let (built, expected) =
        (std::fs::read(&other).expect("a program"), std::fs::read(&one).expect("a program"));
    assert!(built == expected, "{name} compiles to something else under Vellum");
    let (with, without) = (served(Command::new(&other)), plain(Command::new(&one)));
    assert_eq!((with.status, with.stdout), (without.status, without.stdout));
    // A failing compiler must print the same message.
    std::fs::write(&file, format!("{source}\nint wrong = undeclared;\n")).expect("a source file");
    let none = place.file("none");
    let (with, without) = (served(command(&none)), plain(command(&none)));
    assert!(!without.status.success());
    assert_eq!((with.status, with.stderr), (without.status, without.stderr));
}

#[test]
fn gcc_compiles_c() {
    compiles("gcc", "tree.c", C_SOURCE, &["-O2", "-g"]);
}

#[test]
fn gcc_compiles_cpp() {
    compiles("g++", "things.cc", CPP_SOURCE, &["-O2", "-std=c++17"]);
}

#[test]
fn git() {
    let Some(git) = tool("git") else { return };
    let place = Place::new();
    let session = |name: &str| {
        let directory = place.file(name);
        std::fs::create_dir(&directory).expect("a directory");
        let git = git.display();
        let script = format!(
            r#"set -e
            cd "$1"
            g() {{ {git} -c core.fsync=none -c gc.auto=0 -c pack.threads=2 "$@"; }}
            g init -q -b main .
            for i in $(seq 1 12); do
                for f in $(seq 1 30); do seq $((i * f)) $((i * f + 400)) > file$f; done
                g add -A
                g commit -q -m "change $i"
            done
            g log --format='%H %s'
            g diff HEAD~5 --stat
            g blame file7 | head -20
            g gc -q --aggressive --prune=now
            g fsck --full
            g checkout -q -b other HEAD~4
            echo other > file1; g commit -qam other
            g merge -q main -m merge 2>&1 || {{ g checkout -q --theirs file1; g add file1; g commit -q -m merged; }}
            g log --graph --oneline
            g clone -q --no-local . copy 2>&1
            {git} -C copy rev-parse HEAD
            g grep -c 17 | tail -3
            "#
        );
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg("sh").arg(&directory);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "A Person")
                .env(format!("GIT_{who}_EMAIL"), "a@example.org");
            command.env(format!("GIT_{who}_DATE"), "2001-02-03T04:05:06Z");
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("HOME", place.path());
        command
    };
    let without = plain(session("one")).succeeded();
    let with = served(session("two"));
    assert_eq!(with.text(), without.text(), "{with}");
    assert_eq!((with.status, with.stderr), (without.status, without.stderr));
    assert!(with.seats.len() > 30 && with.seats.iter().all(|seat| seat.attach == Attach::Serving));
}

const SQL: &str = include_str!("../../c/programs/script.sql");

fn sqlite(environment: &[(&str, &str)]) {
    // sqlite3 has no `--version` like other tools, so `tool` does not find it.
    let Some(sqlite) =
        ["/usr/bin/sqlite3", "/bin/sqlite3"].map(Path::new).into_iter().find(|path| path.exists())
    else {
        return skip("no sqlite3 on this machine");
    };
    let place = Place::new();
    let (file, script) = (place.file("base.db"), place.file("script.sql"));
    std::fs::write(&script, SQL).expect("a script");
    let outcome = same(|| {
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(sqlite);
        command.arg(&file).arg(format!(".read {}", script.display())).envs(environment.iter().copied());
        command
    });
    assert!(outcome.text().contains("\nok\n"), "{outcome}");
}

const PERL: &str = include_str!("../../c/programs/script.pl");

fn perl(environment: &[(&str, &str)]) {
    let Some(perl) = tool("perl") else { return };
    same(|| {
        let mut command = Command::new(&perl);
        command.args(["-e", PERL]).env("PERL_HASH_SEED", "0").envs(environment.iter().copied());
        command
    });
}

const SHELL: &str = include_str!("../../c/programs/pipeline.sh");

#[test]
fn a_pipeline_of_small_programs_and_a_signal() {
    let run = || with_args("/bin/sh", &["-c", SHELL]);
    let (without, with) = (plain(run()), served(run()));
    assert_eq!((with.status, with.text(), &with.stderr), (without.status, without.text(), &without.stderr));
    assert!(!without.status.success(), "it ends itself by a signal: {without}");
    assert!(with.seats.len() > 10, "{:?}", with.seats);
}
