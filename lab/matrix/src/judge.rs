//! Runs one row (a program with its script) in all modes, and compares each mode with the run without Vellum.
//!
//! Before the other modes, the whole matrix runs each program *plain* (without Vellum) twice. The fast
//! part runs it plain once, and again only if a mode differs. If the two plain outputs differ after the
//! row's filters, the row is reported as nondeterministic: its filters are at fault, not Vellum.

use super::exec::{Said, Stage};
use super::list::{Mode, Row};
use super::{Error, Installed, Options};
use regex::bytes::Regex;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Additional runs of a mode that differed, to count how often it does.
const AGAIN: u32 = 2;
/// Limit of the runs that a row requests, in the fast matrix.
const FAST_RUNS_MAX: u32 = 10;

/// The result of one mode.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All runs were the same as plain.
    Same {
        /// Number of runs compared.
        runs: u32,
    },
    /// Some runs differed from plain.
    Differs {
        /// Runs that differed.
        times: u32,
        /// All runs.
        runs: u32,
        /// The differences of the first such run: output, errors, status.
        what: Vec<&'static str>,
    },
    /// The mode was not run, for this reason.
    Skipped(String),
    /// The row does not request the mode.
    NotAsked,
}

/// The result of a row.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The row.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Why the row was skipped.
    pub skipped: Option<String>,
    /// The fault of the row itself: plain runs that differ, or fail.
    pub fault: Option<String>,
    /// The modes, in the order of [`Mode::COMPARED`].
    pub modes: Vec<(Mode, Verdict)>,
    /// The number of processes that ran on Vellum under `vellum run`, and of all that loaded it.
    pub served: Option<(u64, u64)>,
}

impl Judged {
    /// Whether a mode differed from plain.
    pub fn differs(&self) -> bool {
        self.modes.iter().any(|(_, verdict)| matches!(verdict, Verdict::Differs { .. }))
    }
}

/// Runs `row` in every mode; its files are below `folder`.
///
/// # Errors
/// If the matrix's own files fail.
pub fn judge(row: &Row, installed: &Installed, folder: &Path, options: &Options) -> Result<Judged, Error> {
    let mut judged = Judged {
        name: row.name.clone(),
        version: String::new(),
        skipped: missing(row),
        fault: None,
        modes: Vec::new(),
        served: None,
    };
    if judged.skipped.is_some() {
        return Ok(judged);
    }
    judged.version = version(row);
    let stage = match Stage::prepared(row, folder)? {
        Ok(stage) => stage,
        Err(why) => {
            judged.skipped = Some(why);
            return Ok(judged);
        }
    };
    let filters = Filters::of(row)?;
    let plain = || -> Result<Said, Error> { Ok(filters.applied(stage.run(Mode::Plain, installed)?.0)) };
    let first = plain()?;
    let record = Record { folder: options.out.join(&row.name) };
    if first.status != format!("exit status {}", row.status) {
        judged.fault = Some(format!("plain: {}", first.status));
        record.write(Mode::Plain, &first)?;
        return Ok(judged);
    }
    let unsteady = |judged: &mut Judged| -> Result<(), Error> {
        let second = plain()?;
        let what = differences(&first, &second);
        if !what.is_empty() {
            judged.fault = Some(format!("two plain runs differ in {}", what.join(", ")));
            record.write(Mode::Plain, &first)?;
            fs::write(
                record.folder.join("plain.again"),
                [&second.stdout[..], b"\n---\n", &second.stderr[..]].concat(),
            )
            .map_err(Error::file("writing", &record.folder))?;
        }
        Ok(())
    };
    if !options.fast {
        unsteady(&mut judged)?;
    }
    let runs = options.runs.or(row.runs).unwrap_or(1);
    let runs = if options.fast { runs.min(FAST_RUNS_MAX) } else { runs };
    for mode in Mode::COMPARED {
        let verdict = match (row.wants(mode), unavailable(mode, installed)) {
            (Ok(false), _) => Verdict::NotAsked,
            (Err(why), _) => Verdict::Skipped(why.to_string()),
            (Ok(true), Some(why)) => Verdict::Skipped(why.to_string()),
            (Ok(true), None) => {
                let (mut times, mut done, mut wanted, mut what) = (0, 0, runs, Vec::new());
                while done < wanted {
                    let (said, served) = stage.run(mode, installed)?;
                    let said = filters.applied(said);
                    if mode == Mode::Run {
                        judged.served = served;
                    }
                    let differs = differences(&first, &said);
                    if !differs.is_empty() {
                        if times == 0 {
                            record.write(Mode::Plain, &first)?;
                            record.write(mode, &said)?;
                            what = differs;
                            wanted = runs.max(done + 1 + AGAIN);
                        }
                        times += 1;
                    }
                    done += 1;
                    // A mode that does not end is not run again, since each run takes the whole deadline.
                    if said.is_late() {
                        break;
                    }
                }
                if times == 0 { Verdict::Same { runs } } else { Verdict::Differs { times, runs: done, what } }
            }
        };
        judged.modes.push((mode, verdict));
    }
    if options.fast && judged.differs() {
        unsteady(&mut judged)?;
    }
    Ok(judged)
}

fn unavailable(mode: Mode, installed: &Installed) -> Option<&'static str> {
    match mode {
        Mode::Plain | Mode::Preloaded => None,
        _ if installed.command.is_none() => Some("the command vellum is not built"),
        Mode::Libgc if !installed.libgc => Some("libgc.so.1 is not built"),
        _ => None,
    }
}

fn shell(script: &str) -> Option<(bool, String)> {
    let asked = Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::null()).output().ok()?;
    let said = if asked.stdout.is_empty() { asked.stderr } else { asked.stdout };
    let line = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_string();
    Some((asked.status.success(), line))
}

/// Why `row` cannot be run on this machine.
fn missing(row: &Row) -> Option<String> {
    if row.root && !rustix::process::geteuid().is_root() {
        return Some("only root can".to_string());
    }
    let path = format!("{}:{}/.cargo/bin", super::exec::path(), std::env::var("HOME").unwrap_or_default());
    let there = |name: &str| path.split(':').any(|folder| Path::new(folder).join(name).is_file());
    if let Some(name) = row.needs.iter().find(|name| !there(name)) {
        return Some(format!("no {name}"));
    }
    match row.check.as_deref().map(shell) {
        Some(Some((false, why))) => Some(if why.is_empty() { "its check fails".to_string() } else { why }),
        _ => None,
    }
}

fn version(row: &Row) -> String {
    let asked = match (&row.version, row.packages.first()) {
        (Some(asked), _) => shell(asked),
        (None, Some(package)) => shell(&format!("dpkg-query -W -f '${{Version}}' {package}")),
        (None, None) => None,
    };
    asked.filter(|(fine, _)| *fine).map(|(_, line)| line).unwrap_or_default()
}

fn differences(one: &Said, other: &Said) -> Vec<&'static str> {
    let parts = [
        ("status", one.status == other.status),
        ("output", one.stdout == other.stdout),
        ("errors", one.stderr == other.stderr),
    ];
    parts.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

struct Filters {
    all: Vec<(Regex, String)>,
    sorted: bool,
}

impl Filters {
    fn of(row: &Row) -> Result<Filters, Error> {
        let compiled = row.filters.iter().map(|(filter, with)| Ok((Regex::new(filter)?, with.clone())));
        let all = compiled.collect::<Result<_, _>>();
        let all = all.map_err(|cause| Error::Filter { row: row.name.clone(), cause })?;
        Ok(Filters { all, sorted: row.sorted })
    }

    fn applied(&self, said: Said) -> Said {
        Said { stdout: self.text(said.stdout), stderr: self.text(said.stderr), ..said }
    }

    fn text(&self, mut text: Vec<u8>) -> Vec<u8> {
        for (filter, with) in &self.all {
            text = filter.replace_all(&text, with.as_bytes()).into_owned();
        }
        if self.sorted {
            let mut lines: Vec<_> = text.split(|&byte| byte == b'\n').collect();
            lines.sort_unstable();
            text = lines.join(&b'\n');
        }
        text
    }
}

/// The folder in which differing runs of a row are kept.
struct Record {
    folder: PathBuf,
}

impl Record {
    fn write(&self, mode: Mode, said: &Said) -> Result<(), Error> {
        fs::create_dir_all(&self.folder).map_err(Error::file("making", &self.folder))?;
        let status = format!("{}\n", said.status).into_bytes();
        for (what, text) in [("status", &status), ("stdout", &said.stdout), ("stderr", &said.stderr)] {
            let path = self.folder.join(format!("{}.{what}", mode.name()));
            fs::write(&path, text).map_err(Error::file("writing", &path))?;
        }
        Ok(())
    }
}
