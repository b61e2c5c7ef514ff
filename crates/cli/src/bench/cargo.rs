//! `cargo bench` as the command of a criterion suite: built once, and replaced by the executable.
//!
//! Cargo itself would look at all sources before every run. It says in JSON what it built, and with that the
//! package's folder, in which it runs benchmarks.

use super::failure::BenchFailure;
use super::programs::Chosen;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command as System, Stdio};
use vellum_experiment::suite_duel::{Framework, Suite};
use vellum_process::Command;

/// What stands between cargo's words and the benchmark's.
const SEPARATOR: &str = "--";

/// The suites of these programs, each in its folder.
pub(super) fn resolved(
    framework: Framework,
    programs: &[Chosen],
    folders: Vec<Option<PathBuf>>,
) -> Result<Vec<Suite>, BenchFailure> {
    let suite = |(chosen, folder): (&Chosen, Option<PathBuf>)| {
        let is_cargo = chosen.command.program.file_name() == Some(OsStr::new("cargo"));
        if is_cargo && framework == Framework::Criterion {
            built(&chosen.command, folder.as_deref())
        } else {
            Ok(Suite { command: copy(&chosen.command), folder })
        }
    };
    let suites: Vec<Suite> = programs.iter().zip(folders).map(suite).collect::<Result<_, _>>()?;
    match &suites[..] {
        [a, b] if a.command.argv == b.command.argv && programs[0].command.argv[0] != a.command.argv[0] => {
            let program = a.command.program.display();
            Err(BenchFailure::Cargo(format!(
                "both commands build {program}, the second over the first; give each a target folder of its own \
                 (--target-dir, and no CARGO_TARGET_DIR)"
            )))
        }
        _ => Ok(suites),
    }
}

fn copy(command: &Command) -> Command {
    Command {
        program: command.program.clone(),
        argv: command.argv.clone(),
        env: command.env.clone(),
        stdio: [None, None, None],
    }
}

/// Has cargo build, and takes what it built.
fn built(command: &Command, folder: Option<&Path>) -> Result<Suite, BenchFailure> {
    let words = &command.argv[1..];
    let at = words.iter().position(|word| word == SEPARATOR).unwrap_or(words.len());
    let mut cargo = System::new(&command.program);
    cargo.args(&words[..at]).args(["--no-run", "--message-format=json-render-diagnostics"]);
    if let Some(folder) = folder {
        cargo.current_dir(folder);
    }
    let ran = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let ran = ran.map_err(|error| BenchFailure::Cargo(format!("cargo could not be run: {error}")))?;
    if !ran.status.success() {
        let line: Vec<_> = words[..at].iter().map(|word| word.to_string_lossy()).collect();
        return Err(BenchFailure::Cargo(format!("cargo {} --no-run: {}", line.join(" "), ran.status)));
    }
    match &executables(&String::from_utf8_lossy(&ran.stdout))[..] {
        [one] => {
            let rest = words.get(at + 1..).unwrap_or_default().iter().cloned();
            let argv = std::iter::once(OsString::from(&one.path)).chain(rest).collect();
            let command = Command { program: one.path.clone(), argv, ..copy(command) };
            Ok(Suite { command, folder: Some(one.folder.clone()) })
        }
        [] => Err(BenchFailure::Cargo("cargo built no bench target; has Cargo.toml a [[bench]]?".to_owned())),
        several => {
            let names: Vec<&str> = several.iter().map(|one| one.name.as_str()).collect();
            let names = names.join(", ");
            Err(BenchFailure::Cargo(format!(
                "cargo built several bench targets ({names}); choose one by --bench NAME"
            )))
        }
    }
}

/// A bench target that cargo built.
#[derive(Debug, PartialEq)]
struct Executable {
    name: String,
    path: PathBuf,
    /// Its package's folder.
    folder: PathBuf,
}

/// The bench targets among cargo's messages, a JSON object a line.
fn executables(messages: &str) -> Vec<Executable> {
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let target = &message["target"];
        let is_bench = target["kind"].as_array()?.iter().any(|kind| kind == "bench");
        let path = message["executable"].as_str().filter(|_| is_bench)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Executable {
            name: target["name"].as_str()?.to_owned(),
            path: path.into(),
            folder: folder.into(),
        })
    };
    messages.lines().filter_map(executable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_targets_are_found_among_messages() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","target":{"kind":["lib"],"name":"p"},"executable":null}
not json
{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","target":{"kind":["bench"],"name":"speed"},"executable":"/p/target/release/deps/speed-1"}
{"reason":"build-finished","success":true}"#;
        let found = executables(messages);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), &found[0].folder), ("speed", &PathBuf::from("/p")));
        assert!(found[0].path.ends_with("speed-1"));
    }
}
