//! One call of a suite: started in its folder, its output kept in files of ours, waited for.

use super::SuiteError;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command as System, ExitStatus, Stdio};
use vellum_process::{Command, Interrupt, Outcome, SpawnError, Told};

/// The files that take standard output and standard error.
pub(super) const OUT: &str = "stdout";
const ERR: &str = "stderr";
/// Lines that say no more than that something was said before.
const NOT_LAST: [&str; 2] = ["note: ", "="];
/// How lines begin that name what failed, before pytest counts failures.
const NAMED: [&str; 2] = ["FAILED ", "ERROR "];
/// Within messages of option parsers.
const REFUSED: &str = ": error: ";
/// Before the message of a Rust program that panicked; a backtrace may follow.
const PANICKED: &str = " panicked at ";

/// A suite of benchmarks: the command that runs it, and where it does.
#[derive(Debug)]
pub struct Suite {
    /// The program, its arguments and environment. Its `stdio` is not used.
    pub command: Command,
    /// The folder it runs in; the current one, if none.
    pub folder: Option<PathBuf>,
}

impl Suite {
    /// The words of its command, as text.
    pub(super) fn words(&self) -> Vec<String> {
        self.command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// What a call adds to the command of a suite.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) words: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    /// Files that are to be in the folder, and what is in them.
    files: Vec<(String, &'static str)>,
}

impl Call {
    pub(super) fn of(words: impl IntoIterator<Item = String>) -> Call {
        let words = words.into_iter().map(OsString::from).collect();
        Call { words, env: Vec::new(), files: Vec::new() }
    }

    pub(super) fn with_env(mut self, name: &str, value: impl AsRef<OsStr>) -> Call {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn with_file(mut self, name: String, text: &'static str) -> Call {
        self.files.push((name, text));
        self
    }

    /// Empties the folder, and runs the suite once.
    pub(super) fn run(&self, suite: &Suite, folder: &Path) -> Result<Outcome, SuiteError> {
        let failed = |source| SuiteError::Folder { folder: folder.to_path_buf(), source };
        let [out, err] = self.empty(folder).map_err(failed)?;
        let command = &suite.command;
        let mut system = System::new(&command.program);
        system.args(command.argv.iter().skip(1)).args(&self.words);
        system.env_clear().envs(command.env.iter().map(|(name, value)| (name, value)));
        system.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &suite.folder {
            system.current_dir(folder);
        }
        let spawned = system.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let mut child = spawned.map_err(|source| not_started(&command.program, source))?;
        let told = Told::of(child.id() as libc::pid_t);
        let ended = child.wait().map_err(|source| SpawnError::System { call: "wait4", source })?;
        drop(told);
        match Interrupt::arrived() {
            // What a signal ended says nothing of the benchmark.
            Some(signal) => Err(SuiteError::Interrupted { signal }),
            None => Ok(outcome(ended)),
        }
    }

    /// The folder with nothing in it but our files, and files for both outputs.
    fn empty(&self, folder: &Path) -> io::Result<[File; 2]> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir(folder)?,
        }
        for (name, text) in &self.files {
            fs::write(folder.join(name), text)?;
        }
        Ok([File::create(folder.join(OUT))?, File::create(folder.join(ERR))?])
    }
}

fn not_started(program: &Path, source: io::Error) -> SpawnError {
    let path = program.to_path_buf();
    match source.kind() {
        io::ErrorKind::NotFound => SpawnError::NotFound(path),
        _ => SpawnError::NotExecutable { path, source },
    }
}

fn outcome(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(code as u8),
        (None, signal) => Outcome::Killed { signal: signal.unwrap_or(0), core: status.core_dumped() },
    }
}

/// The line that tells most of a failure: one that names it, or else the last, of standard error before
/// standard output.
pub(super) fn last_words(folder: &Path) -> String {
    let text =
        |file: &str| String::from_utf8_lossy(&fs::read(folder.join(file)).unwrap_or_default()).into_owned();
    let texts = [ERR, OUT].map(text);
    let lines = texts
        .each_ref()
        .map(|text| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>());
    let panicked = |lines: &[&str]| {
        let at = lines.iter().rposition(|line| line.contains(PANICKED))?;
        lines.get(at + 1).map(|line| (*line).to_owned())
    };
    let last = |lines: &[&str], tells: fn(&str) -> bool| {
        lines.iter().rfind(|line| tells(line)).map(|line| (*line).to_owned())
    };
    let names = |line: &str| NAMED.iter().any(|word| line.starts_with(word)) || line.contains(REFUSED);
    let tells = |line: &str| !NOT_LAST.iter().any(|word| line.starts_with(word));
    let first = |look: &dyn Fn(&[&str]) -> Option<String>| lines.iter().find_map(|lines| look(lines));
    let found = first(&panicked).or_else(|| first(&|lines| last(lines, names)));
    found.or_else(|| first(&|lines| last(lines, tells))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_tell_what_failed() {
        let folder = tempfile::tempdir().unwrap();
        let said = |out: &str, err: &str| {
            fs::write(folder.path().join(OUT), out).unwrap();
            fs::write(folder.path().join(ERR), err).unwrap();
            last_words(folder.path())
        };
        let panicked = "thread 'main' panicked at b.rs:3:5:\nno such file\nstack backtrace:\n   0: main\n";
        assert_eq!(said("sum\n", panicked), "no such file");
        let refused = "ERROR: usage: pytest\npytest: error: unrecognized arguments: --b\n  rootdir: /x\n";
        assert_eq!(said("", refused), "pytest: error: unrecognized arguments: --b");
        let pytest = "E  assert 0\n=== short test summary info ===\nFAILED t.py::test_b - assert 0\n=== 1 failed ===\n";
        assert_eq!(said(pytest, "warner(text)\n"), "FAILED t.py::test_b - assert 0");
        assert_eq!((said("", "cannot open x\n"), said("", "")), ("cannot open x".into(), String::new()));
    }
}
