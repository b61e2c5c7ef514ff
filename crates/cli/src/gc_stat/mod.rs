//! `vellum gc-stat`: statistics of the collector in a running process, or in a program that it starts.
//!
//! ```text
//! PID      ─▶ counters in the process's memory (process::Counters) ┐
//! -- prog  ─▶ counters in a shared file (board) ───────────────────┴▶ Account ─▶ rows · summary · JSON
//! ```
//!
//! A running process is not stopped and need not cooperate: a sample reads two kilobytes of its memory. A
//! program that `gc-stat` starts gets the library preloaded, and publishes its counters in the shared file.
//! The program's input, output and exit status are unchanged, so the report goes to standard error.

use crate::failure::Failure;
use crate::gc_account::Account;
use crate::run::Run;
use crate::run::launch::Plan;
use crate::screen;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use vellum_governor::Stop;
use vellum_process::{BoardFile, Child, Command, Counters, DoorError, Signals};
use vellum_report::units::{bytes, count, time};
use vellum_report::{Look, Style, Table, amount, stderr, stdout};

const SCHEMA: &str = "vellum.gc-stat/1";
/// The accepted intervals between samples.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 3600);
/// The most rows in the JSON: about 40 MB of memory.
const ROWS_MAX: usize = 100_000;
/// The interval between samples of a started program without --interval.
const WAIT: Duration = Duration::from_millis(200);

/// Show the activity of a program's garbage collector over time: collections, slices, pauses, phases, live
/// and heap size.
///
/// With a process id: its counters since it started, or a row for each interval until it ends. With a
/// command: runs it and shows the summary at its end. For programs linked with libvellum (vellum_gc.h).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum gc-stat 4711\n  vellum gc-stat --interval 1s 4711\n  vellum gc-stat --json - -- ./prog | jq .total.longest_ns"
)]
pub(crate) struct GcStat {
    /// The process to observe.
    #[arg(value_name = "PID", required_unless_present = "command", conflicts_with = "command")]
    pid: Option<u32>,

    /// Show a row of changes for each interval, such as 500ms or 2s.
    #[arg(short, long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,

    /// End after this many rows.
    #[arg(short = 'n', long, value_name = "ROWS", requires = "interval")]
    rows: Option<u64>,

    /// Write JSON (schema vellum.gc-stat/1), with all rows; "-" is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<std::path::PathBuf>,

    /// The library to preload (default: the one VELLUM_LIB names, else libvellum.so beside this command).
    #[arg(long, value_name = "FILE", requires = "command")]
    lib: Option<std::path::PathBuf>,

    /// The program to run, and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn interval(text: &str) -> Result<Duration, String> {
    amount::time(text, &INTERVALS)
}

#[derive(Debug, Serialize)]
struct Seen {
    schema: &'static str,
    pid: u32,
    command: Vec<String>,
    /// The counters at the last sample.
    total: Account,
    /// The counters at each sample, up to [`ROWS_MAX`].
    rows: Vec<Row>,
    /// The number of samples after these.
    rows_left_out: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    /// The time since the first sample.
    at_ns: u64,
    #[serde(flatten)]
    account: Account,
}

/// Samples until the process ends or the user stops it.
pub(crate) fn gc_stat(args: &GcStat) -> Result<u8, Failure> {
    match args.pid {
        Some(pid) => of_process(args, pid),
        None => of_command(args),
    }
}

fn of_process(args: &GcStat, pid: u32) -> Result<u8, Failure> {
    let counters = Counters::of(pid)?;
    let mut rows = Rows::new(args);
    let stop = Stop::block()?;
    while let Some(slot) = counters.read() {
        rows.look(Account::of(std::iter::once(&*slot)), &mut std::io::stdout())?;
        // Each row covers the time between two samples.
        let is_enough = args.rows.is_some_and(|most| rows.looks > most);
        match args.interval {
            Some(interval) if !is_enough && !stop.wait_with(interval, []) => {}
            _ => break,
        }
    }
    if rows.last.is_none() {
        // The process has ended since it was found.
        return Err(DoorError::NoProcess(pid).into());
    }
    let seen = rows.seen(pid, Vec::new());
    match &args.json {
        Some(path) => write_json(path, &seen)?,
        None if args.interval.is_none() => {
            stdout::write_all(summary(&seen.total, Style::of_stdout()).as_bytes())?;
        }
        None => {}
    }
    Ok(0)
}

fn of_command(args: &GcStat) -> Result<u8, Failure> {
    let run = Run { command: args.command.clone(), lib: args.lib.clone(), ..Run::default() };
    let plan = Plan::new(&run)?;
    let signals = Signals::block()?;
    let board = BoardFile::create()?;
    let env = plan.environment(Some(&board))?;
    let command =
        Command { program: plan.program.clone(), argv: plan.argv.clone(), env, stdio: Default::default() };
    let child = Child::spawn(&command, &signals)?;
    let pid = child.pid().0 as u32;
    let mut rows = Rows::new(args);
    let ended = child.wait(Some(args.interval.unwrap_or(WAIT)), |_| {
        board.reserve_ahead();
        // An unwritten row is no loss, as the summary follows.
        let _ = rows.look(Account::of(board.claimed().iter()), &mut std::io::stderr());
    });
    drop(signals);
    let ended = ended.map_err(Failure::wait)?;
    rows.look(Account::of(board.claimed().iter()), &mut std::io::sink())?;
    let seen = rows.seen(pid, args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect());
    match &args.json {
        Some(path) => write_json(path, &seen)?,
        None => stderr::write(format_args!("{}", summary(&seen.total, Style::of_stderr()))),
    }
    Ok(ended.outcome.shell_status())
}

fn write_json(path: &std::path::Path, seen: &Seen) -> Result<(), Failure> {
    let output = vellum_report::Output::prepare(path)?;
    Ok(output.write(vellum_report::json(seen)?)?)
}

/// The samples so far.
struct Rows {
    begun: Instant,
    /// The samples that are stored for the JSON.
    rows: Vec<Row>,
    last: Option<Row>,
    looks: u64,
    keeps: bool,
    shows: bool,
}

const HEADS: [&str; 8] =
    ["s", "heap", "alive", "allocated", "collections", "slices", "paused", "longest so far"];

impl Rows {
    fn new(args: &GcStat) -> Rows {
        let keeps = args.json.is_some();
        let shows = !keeps && args.interval.is_some();
        Rows { begun: Instant::now(), rows: Vec::new(), last: None, looks: 0, keeps, shows }
    }

    /// Records a sample, and shows the changes since the last one.
    fn look(&mut self, account: Account, out: &mut impl Write) -> Result<(), Failure> {
        let at_ns = self.begun.elapsed().as_nanos() as u64;
        if self.shows
            && let Some(before) = &self.last
        {
            let lines = row(before, at_ns, &account);
            let lines =
                if self.looks == 1 { lines } else { lines.lines().skip(1).collect::<String>() + "\n" };
            out.write_all(lines.as_bytes()).map_err(|error| Failure::output("the table", error))?;
        }
        let row = Row { at_ns, account };
        self.looks += 1;
        if self.keeps && self.rows.len() < ROWS_MAX {
            self.rows.push(row.clone());
        }
        self.last = Some(row);
        Ok(())
    }

    fn seen(self, pid: u32, command: Vec<String>) -> Seen {
        let total = self.last.map(|row| row.account).unwrap_or_default();
        let rows_left_out = if self.keeps { self.looks - self.rows.len() as u64 } else { 0 };
        Seen { schema: SCHEMA, pid, command, total, rows: self.rows, rows_left_out }
    }
}

/// A row under its heads. Columns have their largest width, so that rows printed one by one are aligned.
fn row(before: &Row, at_ns: u64, now: &Account) -> String {
    let was = &before.account;
    let mut table = Table::plain(&HEADS, 0);
    let cells = [
        format!("{:.2}", at_ns as f64 / 1e9),
        bytes(now.heap_bytes),
        bytes(now.live_bytes),
        bytes(now.allocated_bytes - was.allocated_bytes.min(now.allocated_bytes)),
        count(now.collections - was.collections.min(now.collections)),
        count(now.slices - was.slices.min(now.slices)),
        time(Duration::from_nanos(now.pause_ns - was.pause_ns.min(now.pause_ns))),
        time(Duration::from_nanos(now.longest_ns)),
    ];
    table.row(cells.into_iter().map(|cell| format!("{cell:>11}")).collect());
    table.render("", screen::columns().max(120), Style::of_stdout())
}

fn summary(total: &Account, style: Style) -> String {
    total.report().text(Look::brief(style))
}
