//! Tests a C program that uses the whole interface. The program is compiled against the header, linked with
//! the shared and with the static library, and run.
//!
//! The test reads the program's output files with the readers that the rest of Vellum uses.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_measure::{Series, json, line};

/// Libraries that the static library needs.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// The folder of cargo's output for this test, in which the test itself lies.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    own.parent().expect("TARGET/PROFILE/deps").to_path_buf()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

fn compiler(name: &str) -> Option<Command> {
    let found = Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    if !found {
        vellum_skip::skip(format_args!("there is no {name}"));
        return None;
    }
    let mut compiler = Command::new(name);
    compiler.args(["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]);
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include"));
    Some(compiler)
}

fn succeeded(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}{errors}", output.status);
    said.into_owned()
}

/// Compiles the program, links it with these arguments and runs it; the folder that the program wrote into.
/// The shared library is there under the name that the loader searches for.
fn run(link: &[std::ffi::OsString]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    symlink(libraries().join("libvelmeasure.so"), folder.path().join("libvelmeasure.so.0")).expect("a link");
    let program = folder.path().join("program");
    let mut compiler = compiler("cc")?;
    compiler.args(["-std=c11", "-D_GNU_SOURCE"]).arg(source("all.c")).arg("-o").arg(&program).args(link);
    succeeded(&mut compiler);
    let said = succeeded(Command::new(&program).arg(folder.path()));
    assert!(said.ends_with("all passed\n"), "{said}");
    Some(folder)
}

fn with(flag: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(flag);
    text.push(path);
    text
}

#[test]
fn program_links_with_the_shared_library() {
    let libraries = libraries();
    let link = [with("-L", &libraries), "-Wl,-rpath,$ORIGIN".into(), "-lvelmeasure".into(), "-lm".into()];
    let Some(folder) = run(&link) else { return };
    let file = |name: &str| BufReader::new(File::open(folder.path().join(name)).expect("it was written"));
    let from_json: Vec<Series> = json::read(file("json")).expect("valid JSON");
    assert_eq!(from_json.len(), 1);
    assert_eq!((from_json[0].name.as_str(), from_json[0].observations.len()), ("from C", 20));
    assert_eq!(from_json[0].labels, ["lost=2"]);
    assert!(from_json[0].marks.iter().any(|mark| mark.cause.word() == "checkpoint"));
    // The program writes the file twice; the second write appends.
    let reader = line::Reader::new(file("lines"), line::OnError::Refuse);
    let entries: Result<Vec<line::Entry>, _> = reader.collect();
    let series: Vec<Series> = entries
        .expect("valid lines")
        .into_iter()
        .filter_map(|entry| match entry {
            line::Entry::Series(series) => Some(series),
            line::Entry::Summary(_) => None,
        })
        .collect();
    assert!(!series.is_empty() && series.iter().all(|one| one.name == "from C"));
    assert_eq!(series[0].observations[..20], from_json[0].observations[..]);
}

#[test]
fn program_links_with_the_static_library() {
    let archive = libraries().join("libvelmeasure.a");
    let link: Vec<_> =
        [archive.into_os_string()].into_iter().chain(SYSTEM_LIBRARIES.map(Into::into)).collect();
    run(&link);
}

/// Under strict standards `<time.h>` hides the kernel's clocks; the header still reads them.
#[test]
fn header_compiles_in_every_c_standard() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, libraries) = (folder.path().join("clocks.c"), libraries());
    symlink(libraries.join("libvelmeasure.so"), folder.path().join("libvelmeasure.so.0")).expect("a link");
    let text = "#include \"vellum_measure.h\"
        int main(void) {
            vel_clock clock;
            int kind;
            for (kind = VEL_BEST; kind <= VEL_THREAD_CPU; kind++) {
                uint64_t first, then;
                if (vel_clock_open(&clock, kind)) continue; /* a counter that is not trusted here */
                first = vel_stamp(&clock);
                do then = vel_stamp(&clock); while (then == first);
                if (!first || then < first) return kind + 2;
            }
            return 0;
        }\n";
    std::fs::write(&source, text).expect("written");
    for standard in ["c99", "c11", "c17", "gnu99", "gnu17"] {
        let Some(mut compiler) = compiler("cc") else { return };
        let program = folder.path().join(standard);
        compiler.arg(format!("-std={standard}")).arg(&source).arg("-o").arg(&program);
        compiler.args([with("-L", &libraries), "-Wl,-rpath,$ORIGIN".into(), "-lvelmeasure".into()]);
        succeeded(&mut compiler);
        succeeded(&mut Command::new(&program));
    }
}

#[test]
fn header_compiles_as_cpp() {
    let Some(mut compiler) = compiler("c++") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("only.cc");
    let text = "#include \"vellum_measure.h\"\nint main() { vel_clock clock; return vel_clock_open(&clock, VEL_BEST); }\n";
    std::fs::write(&source, text).expect("written");
    succeeded(compiler.args(["-std=c++17", "-fsyntax-only"]).arg(source));
}

/// The header declares exactly the functions that the library exports.
#[test]
fn library_exports_every_function_of_the_header() {
    let header = include_str!("../../../../include/vellum_measure.h");
    let declared: Vec<&str> = header
        .lines()
        .filter(|line| {
            !line.starts_with([' ', '/', '#', '}'])
                && !line.contains("static inline")
                && !line.contains("typedef")
        })
        .filter_map(|line| {
            line.split('(').next()?.rsplit([' ', '*']).next().filter(|name| name.starts_with("vel_"))
        })
        .filter(|name| !name.ends_with(['{', ';']))
        .collect();
    assert!(declared.len() > 40, "{declared:?}");
    let file = std::fs::read(libraries().join("libvelmeasure.so")).expect("the shared library");
    for name in declared {
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        assert!(file.windows(wanted.len()).any(|part| part == wanted), "{name} is not exported");
    }
}
