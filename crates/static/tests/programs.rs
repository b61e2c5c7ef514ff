//! Tests of static C and C++ programs that are linked with the library, for each installed C library.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Compilers that link statically, with the options for it.
const COMPILERS: [&[&str]; 3] = [
    &["gcc", "-static"],
    &["gcc", "-static-pie"],
    &["musl-gcc", "-static", "-idirafter", "/usr/include", "-idirafter/usr/include/x86_64-linux-gnu"],
];

/// The library as installed, in `place`; `None`, with a skip, if `./build` has not made it.
fn archive(place: &Path) -> Option<PathBuf> {
    let built = Path::new(REPOSITORY).join("target/release");
    if !built.join("libvellum_static.a").is_file() || !built.join("libvellum.so").is_file() {
        vellum_skip::skip(format_args!("there is no {}/libvellum_static.a: run ./build", built.display()));
        return None;
    }
    let archive = place.join("libvellum.a");
    let script = Path::new(REPOSITORY).join("packaging/archive");
    let made = Command::new(script).arg(built).arg("vellum").arg(&archive).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(archive)
}

/// This source compiled by this compiler; `None`, with a skip, without that compiler.
fn compiled(compiler: &[&str], source: &str, archive: &Path) -> Option<PathBuf> {
    let program = archive.with_file_name("program");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-O1", "-pthread", "-I"]).arg(Path::new(REPOSITORY).join("include"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source));
    match command.arg(archive).arg("-o").arg(&program).output() {
        Err(_) => {
            vellum_skip::skip(format_args!("there is no {}", compiler[0]));
            None
        }
        Ok(made) => {
            assert!(made.status.success(), "{command:?}: {}", String::from_utf8_lossy(&made.stderr));
            Some(program)
        }
    }
}

fn said(output: &Output) -> String {
    format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))
}

#[test]
fn threads_and_forks_and_misuse_in_each_c_library() {
    let place = tempfile::tempdir().unwrap();
    let Some(archive) = archive(place.path()) else { return };
    for compiler in COMPILERS {
        let Some(program) = compiled(compiler, "work.c", &archive) else { continue };
        for harden in ["0", "1"] {
            let run = |word: &str| {
                let words = (!word.is_empty()).then_some(word);
                Command::new(&program).args(words).env("VELLUM_HARDEN", harden).output().unwrap()
            };
            let whole = run("");
            let said = said(&whole);
            assert!(whole.status.success() && whole.stderr.is_empty(), "{compiler:?} {harden}: {said}");
            assert_eq!(String::from_utf8_lossy(&whole.stdout), "whole\n");
            let caught: &[&str] = if harden == "1" { &["twice", "beyond"] } else { &["twice"] };
            for misuse in caught {
                let ended = run(misuse);
                let line = String::from_utf8_lossy(&ended.stderr).into_owned();
                assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{compiler:?} {misuse}: {line}");
                assert!(line.starts_with("vellum: "), "{compiler:?} {misuse}: {line}");
            }
        }
    }
}

#[test]
fn cxx_and_vellum_interfaces_work() {
    let place = tempfile::tempdir().unwrap();
    let Some(archive) = archive(place.path()) else { return };
    let Some(program) = compiled(&["g++", "-static"], "batch.cc", &archive) else { return };
    let output = Command::new(&program).env("VELLUM_DISABLE", "1").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "100 of 1000\n");
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(line.contains("VELLUM_DISABLE=1 is ignored"), "{line}");
}

#[test]
fn program_survives_a_filter_with_the_usual_allocator_calls() {
    let place = tempfile::tempdir().unwrap();
    let Some(archive) = archive(place.path()) else { return };
    for compiler in COMPILERS {
        let Some(program) = compiled(compiler, "filter.c", &archive) else { continue };
        for words in [&[][..], &["seccomp"]] {
            let output = Command::new(&program).args(words).output().unwrap();
            assert!(output.status.success(), "{compiler:?} {words:?}: {}", said(&output));
            assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
        }
    }
}

/// A name defined only in glibc's object would link that object in, with a second `malloc`.
#[test]
fn library_defines_all_symbols_of_the_c_librarys_malloc() {
    let place = tempfile::tempdir().unwrap();
    let Some(archive) = archive(place.path()) else { return };
    let output = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(place.path()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let symbols = |file: &str| {
        let listed = output("nm", &["-g", "--defined-only", file]).expect("binutils made the archive");
        listed.lines().filter_map(|line| line.split(' ').nth(2).map(str::to_owned)).collect::<Vec<_>>()
    };
    let ours = symbols(archive.to_str().unwrap());
    let library = output("gcc", &["-print-file-name=libc.a"]).map(|path| path.trim().to_owned());
    match library.filter(|library| output("ar", &["x", library, "malloc.o"]).is_some()) {
        None => vellum_skip::skip("there is no static C library with a malloc.o"),
        Some(library) => {
            let theirs = symbols("malloc.o");
            let missing: Vec<_> =
                theirs.iter().filter(|name| !name.starts_with('_') && !ours.contains(name)).collect();
            assert!(theirs.len() > 10 && missing.is_empty(), "{library} has {missing:?} beside malloc");
        }
    }
}
