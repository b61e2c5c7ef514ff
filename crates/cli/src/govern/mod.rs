//! `vellum govern`: runs several programs (jobs) under one memory budget, by turns if they do not all fit.
//!
//! ```text
//! jobs.toml ─▶ Config ─▶ Governor ─▶ step, step, … ─▶ events and state, as lines or as JSON
//! ```
//!
//! With `--check`, the command only reads and checks the table of jobs. With `--recover`, it only undoes the
//! changes of a governor that was killed together with its guardians (processes that resume suspended jobs).
//! Otherwise it ends when all jobs have ended, or at a stop signal, after which the jobs continue to run.

use crate::failure::Failure;
use crate::{jobs_table, screen};
use clap::ValueHint;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vellum_governor::config::Origin;
use vellum_governor::{Config, Event, Governor, Recovered, SCHEMA, Setting, Snapshot, Stop};
use vellum_process::library;
use vellum_reference::Delay;
use vellum_report::stdout::say;
use vellum_report::{Style, json};

/// The default time between two tables of the state, in seconds.
const EVERY_SECONDS: u64 = 10;
/// The smallest plausible S from a measurement of the device: no page is read faster.
const DELAY_MIN: Duration = Duration::from_micros(1);

/// Keep several jobs within one budget of memory, each at its knee.
///
/// Starts or adopts the jobs of a table (TOML; docs/govern.md) and measures the memory that each needs while
/// it runs. When memory is short it reclaims the excess, and suspends whole jobs in turns if the rest does
/// not fit. Nothing is reclaimed while all jobs fit, and no hard limit is ever set. Its actions are written
/// to standard output; `vellum top` shows the state.
///
/// Exit status: 0 when all jobs have ended, or after a stop signal (the jobs continue ungoverned); 125 if the
/// table or the directory cannot be used: then no job was touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  vellum govern jobs.toml\n  vellum govern --check jobs.toml\n  \
    vellum govern --json jobs.toml | jq 'select(.event != \"state\")'\n  vellum govern --recover")]
pub(crate) struct Govern {
    /// Only check the table: list its jobs, or report what is wrong and where.
    #[arg(long)]
    check: bool,

    /// Write events and the state of each period as lines of JSON (schema vellum.govern/1).
    #[arg(long)]
    json: bool,

    /// Seconds between two tables of the state; 0 for none.
    #[arg(long, value_name = "SECONDS", default_value_t = EVERY_SECONDS)]
    every: u64,

    /// The library for jobs with runtime = true (default: the one VELLUM_LIB names, else libvellum.so beside
    /// this command).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    lib: Option<PathBuf>,

    /// Only undo the effects of a governor that was killed together with its guardians: resume its jobs,
    /// restore the limits it has set, remove its empty control groups. The next `vellum govern` with the same
    /// sockets does this automatically.
    #[arg(long, conflicts_with_all = ["check", "json", "lib", "table"])]
    recover: bool,

    /// With --recover: the directory of that governor's sockets, if its table named one.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "recover")]
    sockets: Option<PathBuf>,

    /// The table of jobs.
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath, required_unless_present = "recover")]
    table: Option<PathBuf>,
}

/// Governs until all jobs have ended or a signal requests the end.
pub(crate) fn govern(args: &Govern) -> Result<u8, Failure> {
    let Some(table) = &args.table else { return recover(args.sockets.as_deref()) };
    let config = Config::read(table)?;
    if args.check {
        return say(&describe(&config)).map(|_| 0);
    }
    let wants_library = |origin: &Origin| matches!(origin, Origin::Command(command) if command.runtime);
    let library = match config.jobs.iter().any(|job| wants_library(&job.origin)) {
        true => Some(library::find(args.lib.as_deref())?),
        false => None,
    };
    let stop = Stop::block()?;
    let device_delay =
        Delay::measure().ok().map(|delay| Duration::from_nanos(delay.mean_ns as u64).max(DELAY_MIN));
    let mut governor = Governor::new(config, Setting { library, device_delay })?;
    let mut teller = Teller::new(args);
    let mut heard = teller.greet(&governor, device_delay)?;
    while heard {
        let step = governor.step();
        heard = teller.events(&step.events, governor.elapsed())? && teller.state(governor.snapshot())?;
        let Some(wait) = step.wait else { break };
        if heard && stop.wait(wait) {
            break;
        }
    }
    let at = governor.elapsed();
    let events = governor.stop();
    if heard {
        teller.events(&events, at)?;
    }
    Ok(0)
}

/// Undoes the effects of a killed governor.
fn recover(sockets: Option<&Path>) -> Result<u8, Failure> {
    let words = match vellum_governor::recover(sockets)? {
        None => "nothing to undo: no governor has left a record there\n".to_owned(),
        Some(Recovered { processes, files, groups, groups_left }) => {
            let left = match groups_left {
                0 => String::new(),
                left => format!("; groups that stay while their jobs run: {left}"),
            };
            format!(
                "processes resumed: {processes}; files put back: {files}; groups removed: {groups}{left}\n"
            )
        }
    };
    say(&words).map(|_| 0)
}

/// The jobs of a table, for --check.
fn describe(config: &Config) -> String {
    let mut text = format!("the table is valid; jobs: {}\n", config.jobs.len());
    for job in &config.jobs {
        let what = match &job.origin {
            Origin::Command(command) => command.argv.join(" "),
            Origin::Pid(pid) => format!("process {pid}"),
            Origin::Group(path) => format!("control group {}", path.display()),
        };
        text += &format!("  {}  priority {}  {what}\n", job.name, job.priority)
            .replace(|c: char| c.is_control() && c != '\n', "?");
    }
    text
}

/// Writes the governor's events and states.
struct Teller {
    json: bool,
    every: Option<Duration>,
    style: Style,
    table_at: Instant,
    state_at: f64,
}

#[derive(Serialize)]
struct Line<'a, T> {
    schema: &'static str,
    at_seconds: f64,
    #[serde(flatten)]
    what: &'a T,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "state")]
struct StateLine<'a> {
    state: &'a Snapshot,
}

impl Teller {
    fn new(args: &Govern) -> Teller {
        let every = (args.every > 0 && !args.json).then(|| Duration::from_secs(args.every));
        Teller { json: args.json, every, style: Style::of_stdout(), table_at: Instant::now(), state_at: -1.0 }
    }

    /// Writes the first message: the paths in use, and S.
    fn greet(&self, governor: &Governor, delay: Option<Duration>) -> Result<bool, Failure> {
        if self.json {
            return Ok(true);
        }
        let mut text = format!("sockets in {} (vellum top)", governor.place().display());
        if let Some(address) = governor.metrics() {
            text += &format!("; metrics at http://{address}/metrics");
        }
        text += &match delay {
            Some(delay) => format!("\nS, the delay of a page fault: {}\n", vellum_report::units::time(delay)),
            None => format!(
                "\nS, the delay of a page fault, cannot be measured; {} is assumed until a job shows it\n",
                vellum_report::units::time(vellum_governor::DEVICE_DELAY)
            ),
        };
        say(&text)
    }

    /// Writes events. False if the reader has closed the output.
    fn events(&self, events: &[Event], at: Duration) -> Result<bool, Failure> {
        let mut text = String::new();
        for event in events {
            text += &match self.json {
                true => json(&Line { schema: SCHEMA, at_seconds: at.as_secs_f64(), what: event })?,
                false => {
                    format!(
                        "{:9.1} s  {}\n",
                        at.as_secs_f64(),
                        event.to_string().replace(char::is_control, "?")
                    )
                }
            };
        }
        say(&text)
    }

    fn state(&mut self, state: &Snapshot) -> Result<bool, Failure> {
        if state.at_seconds == self.state_at || state.schema.is_empty() {
            return Ok(true);
        }
        self.state_at = state.at_seconds;
        if self.json {
            return say(&json(&Line {
                schema: SCHEMA,
                at_seconds: state.at_seconds,
                what: &StateLine { state },
            })?);
        }
        if self.every.is_none_or(|every| self.table_at.elapsed() < every) {
            return Ok(true);
        }
        self.table_at = Instant::now();
        let table = jobs_table::jobs(state, screen::columns(), self.style);
        say(&format!("{}\n{table}", jobs_table::summary(state, self.style)))
    }
}
