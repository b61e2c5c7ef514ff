//! The tools of section `timing`: the program that runs the kernels, `vellum`, and tools to compare with it.
//!
//! All are files in one folder, built there or linked to their installed place. Tasks find them by name:
//!
//! ```text
//! timing-tools/
//!   program      c/program.c with the kernels          cc
//!   google       c/google.cpp with google-benchmark    c++, libbenchmark-dev
//!   hyperfine    ──▶ where the user's PATH has it
//!   vellum       ──▶ beside the worker
//! ```
//!
//! Only the tools of the chosen measurements are made. A tool that cannot be made is reported with the way
//! to install it, and its column stays empty.

use super::kernel::ARCHIVE;
use std::path::{Path, PathBuf};
use std::process::Command;
use vellum_campaign::{Missing, quietly};

/// The folder of this crate's C sources.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/timing/c");
/// The libraries that `vellum cost` needs beside `vellum`.
const COST_LIBRARIES: [&str; 2] = ["libvellum.so", "libvellum_cost.so"];
const SWITCHES: [&str; 2] = ["-O2", "-g"];

/// A tool that a task needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// A kernel as a whole process.
    Program,
    /// hyperfine.
    Hyperfine,
    /// The kernels under google-benchmark.
    Google,
    /// `vellum cost`.
    Vellum,
}

impl Tool {
    /// Its file name in the folder.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Tool::Program => "program",
            Tool::Hyperfine => "hyperfine",
            Tool::Google => "google",
            Tool::Vellum => "vellum",
        }
    }

    const fn cure(self) -> &'static str {
        match self {
            Tool::Program => "apt-get install gcc",
            Tool::Hyperfine => "apt-get install hyperfine",
            Tool::Google => "apt-get install g++ libbenchmark-dev",
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
            Tool::Google => compile("c++", &out, &source.join("google.cpp"), &["-lbenchmark", "-lpthread"]),
            Tool::Hyperfine => link(&in_path(self.file())?, &out),
            Tool::Vellum => vellum(worker, &out),
        }
    }
}

fn compile(compiler: &str, out: &Path, source: &Path, libraries: &[&str]) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(SWITCHES).arg("-o").arg(out).arg(source).arg(ARCHIVE).args(libraries);
    quietly(&mut command)
}

fn vellum(worker: &Path, out: &Path) -> Result<(), String> {
    let vellum = worker.with_file_name("vellum");
    let needed = COST_LIBRARIES.iter().map(|name| worker.with_file_name(name)).chain([vellum.clone()]);
    match needed.into_iter().find(|file| !file.is_file()) {
        Some(file) => Err(format!("{} is not there", file.display())),
        None => link(&vellum, out),
    }
}

fn in_path(name: &str) -> Result<PathBuf, String> {
    let found = vellum_process::locate(name.as_ref(), std::env::var_os("PATH").as_deref());
    found.map_err(|_| format!("{name} is not in the PATH"))
}

fn link(to: &Path, out: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("linking {}: {error}", out.display());
    let real = to.canonicalize().map_err(fail)?;
    match std::fs::remove_file(out) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(fail(error)),
        _ => std::os::unix::fs::symlink(real, out).map_err(fail),
    }
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
