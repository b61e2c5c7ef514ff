//! Programs: found, timed by turns.

use super::args::{Bench, Metric};
use super::baseline::Before;
use super::report::{How, Program, Report, Start};
use super::{BenchFailure, single, versus};
use crate::run::Failure;
use crate::text::shown_command;
use crate::units::many;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};
use vellum_measure::median;
use vellum_probe::process_duel::{ProcessDuel, ProcessOptions, process_duel};
use vellum_probe::{ArmOrder, Command, locate};

/// The fewest rounds, however long they take, unless asked for fewer.
pub(super) const ROUNDS_MIN: usize = 10;
/// Programs that are off the processor for more than this share of their quickest run wait for something, and CPU time does
/// not tell for how long.
const OFF_SHARE: f64 = 0.5;
/// Between redraws of the line on the terminal: seldom, as they cost the processor that the programs need.
const REDRAW: Duration = Duration::from_millis(500);

/// Times one program, or two against each other.
pub(super) fn run(args: &Bench, before: Option<&Before>) -> Result<Report, Failure> {
    let (a, b) = split(&args.command, &args.separator)?;
    let a = found(a)?;
    match b {
        None => single::run(args, &a, before),
        Some(b) => versus::run(args, &a, &found(b)?),
    }
}

/// The words of the first program, and of the second if there is one.
fn split<'a>(
    words: &'a [OsString],
    separator: &OsStr,
) -> Result<(&'a [OsString], Option<&'a [OsString]>), BenchFailure> {
    let mut parts = words.split(|word| word == separator);
    let count = words.iter().filter(|word| *word == separator).count();
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let separator = || separator.to_owned();
    if count > 1 {
        return Err(BenchFailure::Many { separator: separator(), count });
    }
    if first.is_empty() {
        return Err(BenchFailure::NoProgram { side: "before", separator: separator() });
    }
    if second.is_some_and(<[OsString]>::is_empty) {
        return Err(BenchFailure::NoProgram { side: "behind", separator: separator() });
    }
    Ok((first, second))
}

/// The program that these words mean.
fn found(words: &[OsString]) -> Result<Command, Failure> {
    let program = locate(&words[0], std::env::var_os("PATH").as_deref())?;
    Ok(Command {
        program,
        argv: words.to_vec(),
        env: std::env::vars_os().collect(),
        stdio: [None, None, None],
    })
}

/// A command in one line, the program without its folder: what a series and a verdict call it.
pub(super) fn name(command: &Command) -> String {
    let file = Path::new(&command.argv[0]).file_name().unwrap_or(&command.argv[0]);
    let words = std::iter::once(file).chain(command.argv.iter().skip(1).map(OsString::as_os_str));
    shown_command(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

/// How many rounds and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) time: Duration,
    /// Exactly so many rounds, whatever the time.
    pub(super) rounds: Option<usize>,
}

/// Runs a duel, with a line on the terminal meanwhile.
pub(super) fn duel(
    args: &Bench,
    [a, b]: [&Command; 2],
    extent: Extent,
    order: ArmOrder,
    seed: u64,
    what: &str,
) -> Result<(ProcessDuel, Duration), BenchFailure> {
    let defaults = ProcessOptions::default();
    let options = ProcessOptions {
        clock: args.clock,
        time: extent.time,
        rounds_min: extent.rounds.unwrap_or(ROUNDS_MIN),
        rounds_max: extent.rounds.unwrap_or(defaults.rounds_max),
        warm_up: args.warm_up.map_or(defaults.warm_up, |rounds| rounds as usize),
        order,
        seed,
        output: args.output.into(),
        input: args.input.clone(),
        ignore_failure: args.ignore_failure,
        subtract_nothing: args.subtract_start,
    };
    let line = line(what, extent);
    let began = Instant::now();
    let duel = process_duel(a, b, &options);
    line.finish_and_clear();
    Ok((duel?, began.elapsed()))
}

/// A line on standard error if that is a terminal, and nothing elsewhere.
fn line(what: &str, extent: Extent) -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let long = match extent.rounds {
        Some(rounds) => format!("{rounds} rounds"),
        None => format!("{} s", extent.time.as_secs_f64().ceil()),
    };
    let style = ProgressStyle::with_template("{elapsed} of about {prefix}  {wide_msg}");
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line.set_prefix(long);
    line.set_message(what.to_owned());
    line.enable_steady_tick(REDRAW);
    line
}

/// What is known of how a duel was held.
pub(super) fn how(args: &Bench, duel: &ProcessDuel, seed: u64, took: Duration) -> How {
    How {
        clock: duel.series("", 0).clock.unwrap_or_default(),
        step_ns: duel.nothing.wall.step,
        seed: Some(seed),
        rounds: Some(duel.rounds.len()),
        took_ns: took.as_nanos() as u64,
        low_share: args.low,
        metric: Some(args.metric.name()),
        ..How::default()
    }
}

/// What starting costs.
pub(super) fn start(args: &Bench, duel: &ProcessDuel) -> Start {
    let nothing = duel.nothing.clone();
    Start { what: nothing.what, wall: nothing.wall, cpu: nothing.cpu, subtracted: args.subtract_start }
}

/// A program as the report has it; `arms` are its places in a round.
pub(super) fn program(
    arm: &'static str,
    name: &str,
    command: &Command,
    duel: &ProcessDuel,
    arms: &[usize],
) -> Program {
    let usages = || duel.rounds.iter().flat_map(|round| arms.iter().map(|arm| round.runs[*arm].usage));
    let middle = |of: &dyn Fn(vellum_probe::Usage) -> u64| {
        median(&usages().map(|usage| of(usage) as f64).collect::<Vec<_>>()).unwrap_or_default()
    };
    let peak_bytes = middle(&|usage| usage.largest_process.0);
    Program {
        arm,
        name: name.to_owned(),
        path: command.program.display().to_string(),
        command: command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        peak_bytes,
        peak_is_bound: peak_bytes <= own_peak_bytes(),
        faults: middle(&|usage| usage.minor_faults + usage.major_faults),
        failures: arms.iter().map(|arm| duel.failures[*arm]).sum(),
        runs: duel.rounds.len() * arms.len(),
    }
}

/// What a reader must know of the runs themselves.
pub(super) fn warnings(programs: &[Program], args: &Bench, duel: &ProcessDuel) -> Vec<String> {
    let failed = programs.iter().filter(|program| program.failures > 0).map(|program| {
        let runs = many(program.runs as u64, "run");
        format!("{} failed in {} of {runs}, which count like others", program.name, program.failures)
    });
    let runs = duel.rounds.iter().flat_map(|round| round.runs);
    // What others do to the machine makes runs longer; the quickest one shows the program's own waiting.
    let quickest = runs.min_by(|a, b| a.wall_ns.total_cmp(&b.wall_ns));
    let off = quickest.map_or(0.0, |run| 1.0 - run.cpu_ns() / run.wall_ns);
    let waits = (args.metric == Metric::Cpu && off > OFF_SHARE).then(|| {
        let percent = off * 100.0;
        format!(
            "even in the quickest run the program was off the processor for {percent:.0} % of the time, which CPU time \
             does not tell; --metric wall judges by the whole"
        )
    });
    failed.chain(waits).collect()
}

/// The largest resident memory this process has had.
fn own_peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(0.0, |kilobytes| kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn one_word_stands_between_two_programs() {
        let vs = OsStr::new("--vs");
        let line = words("./old a --vs ./new b");
        let (first, second) = split(&line, vs).unwrap();
        assert_eq!((first, second), (&words("./old a")[..], Some(&words("./new b")[..])));
        assert_eq!(split(&words("./old a"), vs).unwrap().1, None);
        let line = words("./old --vs x ++ ./new");
        assert_eq!(split(&line, OsStr::new("++")).unwrap().0, words("./old --vs x"));
    }

    #[test]
    fn what_is_missing_is_said() {
        for (line, message) in [
            ("--vs ./new", "no program before \"--vs\""),
            ("./old --vs", "no program behind \"--vs\""),
            ("a --vs b --vs c", "2 times"),
        ] {
            let error = split(&words(line), OsStr::new("--vs")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn names_leave_folders_out() {
        let argv = words("/opt/old/prog in/file -x");
        let command =
            Command { program: "/opt/old/prog".into(), argv, env: Vec::new(), stdio: [None, None, None] };
        assert_eq!(name(&command), "prog in/file -x");
    }
}
