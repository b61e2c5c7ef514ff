//! The tools of section `timing`: the kernels as a program, and the tools compared with Vellum's.
//!
//! All are files in one folder, built there or linked to their installed place. Tasks find them by name:
//!
//! ```text
//! timing-tools/
//!   program      c/program.c with the kernels          cc
//!   family       c/family.c                            cc
//!   google       c/google.cpp with google-benchmark    c++, libbenchmark-dev
//!   criterion    peers/criterion                       cargo
//!   hyperfine    ──▶ where the user's PATH has it
//!   valgrind     ──▶ likewise
//!   vellum       ──▶ beside the worker
//! ```
//!
//! Only the tools of the chosen tasks are made. A tool that cannot be made is reported with the way to
//! install it, and its column stays empty.

use super::kernel::ARCHIVE;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vellum_campaign::Missing;

/// The folder of this crate's C sources.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/timing/c");
/// The package of the peer criterion.
const CRITERION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/criterion/Cargo.toml");
/// The program that it builds.
const CRITERION_PROGRAM: &str = "vellum-bench-criterion";
/// The libraries that `vellum cost` needs beside `vellum`.
const COST_LIBRARIES: [&str; 2] = ["libvellum.so", "libvellum_cost.so"];
const SWITCHES: [&str; 2] = ["-O2", "-g"];

/// A tool that a task needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// A kernel as a whole process.
    Program,
    /// Threads and children that allocate.
    Family,
    /// hyperfine.
    Hyperfine,
    /// The kernels under google-benchmark.
    Google,
    /// The kernels under criterion.
    Criterion,
    /// valgrind, which counts instructions.
    Valgrind,
    /// `vellum cost`.
    Vellum,
}

impl Tool {
    /// Its file name in the folder.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Tool::Program => "program",
            Tool::Family => "family",
            Tool::Hyperfine => "hyperfine",
            Tool::Google => "google",
            Tool::Criterion => "criterion",
            Tool::Valgrind => "valgrind",
            Tool::Vellum => "vellum",
        }
    }

    const fn cure(self) -> &'static str {
        match self {
            Tool::Program | Tool::Family => "apt-get install gcc",
            Tool::Hyperfine => "apt-get install hyperfine",
            Tool::Google => "apt-get install g++ libbenchmark-dev",
            Tool::Criterion => "have cargo in the PATH, and its registry in reach",
            Tool::Valgrind => "apt-get install valgrind",
            Tool::Vellum => "./build, and run the vellum-bench it builds",
        }
    }

    /// Puts the tool into `folder`; `vellum` is the one beside `worker`.
    ///
    /// # Errors
    /// The reason why it is missing, for the user, with the remedy.
    pub fn prepare(self, worker: &Path, folder: &Path) -> Result<(), Missing> {
        self.make(worker, folder)
            .map_err(|why| Missing { name: self.file(), cure: format!("{}; {why}", self.cure()) })
    }

    fn make(self, worker: &Path, folder: &Path) -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|error| format!("making {}: {error}", folder.display()))?;
        let (out, source) = (folder.join(self.file()), Path::new(SOURCES));
        match self {
            Tool::Program => compile("cc", &out, &source.join("program.c"), &[]),
            Tool::Family => compile("cc", &out, &source.join("family.c"), &["-lpthread"]),
            Tool::Google => compile("c++", &out, &source.join("google.cpp"), &["-lbenchmark", "-lpthread"]),
            Tool::Criterion => criterion(folder, &out),
            Tool::Hyperfine => link(&in_path(self.file())?, &out),
            Tool::Valgrind => forward(&in_path(self.file())?, &out),
            Tool::Vellum => vellum(worker, &out),
        }
    }
}

fn compile(compiler: &str, out: &Path, source: &Path, libraries: &[&str]) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(SWITCHES).arg("-o").arg(out).arg(source).arg(ARCHIVE).args(libraries);
    quietly(&mut command)
}

fn criterion(folder: &Path, out: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = folder.join("criterion-target");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--locked", "--manifest-path", CRITERION, "--target-dir"]);
    quietly(command.arg(&target).env("VELLUM_BENCH_KERNELS", ARCHIVE))?;
    link(&target.join("release").join(CRITERION_PROGRAM), out)
}

fn vellum(worker: &Path, out: &Path) -> Result<(), String> {
    let vellum = worker.with_file_name("vellum");
    let needed = COST_LIBRARIES.iter().map(|name| worker.with_file_name(name)).chain([vellum.clone()]);
    match needed.into_iter().find(|file| !file.is_file()) {
        Some(file) => Err(format!("{} is not there", file.display())),
        None => link(&vellum, out),
    }
}

/// Runs a command that prints only if it fails; the last line of its output is then the reason.
fn quietly(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("starting {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let said =
        errors.lines().find(|line| line.contains("error")).or(errors.lines().last()).unwrap_or_default();
    Err(format!("{name}: {}: {said}", output.status))
}

fn in_path(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    candidates.find(|file| file.is_file()).ok_or_else(|| format!("{name} is not in the PATH"))
}

fn link(to: &Path, out: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("linking {}: {error}", out.display());
    let real = to.canonicalize().map_err(fail)?;
    match std::fs::remove_file(out) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(fail(error)),
        _ => std::os::unix::fs::symlink(real, out).map_err(fail),
    }
}

/// Writes a script that runs the program. A link would not do: some programs search their parts relative to
/// the name they are started with.
fn forward(to: &Path, out: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let fail = |error: std::io::Error| format!("writing {}: {error}", out.display());
    let quoted = to.display().to_string().replace('\'', r"'\''");
    std::fs::write(out, format!("#!/bin/sh\nexec '{quoted}' \"$@\"\n")).map_err(fail)?;
    std::fs::set_permissions(out, std::fs::Permissions::from_mode(0o755)).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_listed_with_their_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let missing = Tool::Program.prepare(&blocked, &blocked).unwrap_err();
        assert!(missing.name == "program" && missing.cure.contains("gcc"), "{missing:?}");
        assert!(
            quietly(Command::new("sh").args(["-c", "echo an error >&2; exit 3"]))
                .unwrap_err()
                .contains("an error")
        );
        assert!(in_path("no such program").is_err());
    }

    #[test]
    fn an_existing_link_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("sh");
        for _ in 0..2 {
            link(Path::new("/bin/sh"), &out).unwrap();
            assert!(out.canonicalize().unwrap().is_file());
        }
    }
}
