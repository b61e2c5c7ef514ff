//! `vellum run --compare`: a fair comparison of the command with and without Vellum.
//!
//! ```text
//! warm-up   without · with                       only the output of the first run is shown
//! round 1   with · without · control             the order within a round is random
//! round 2   control · with · without
//! ...
//! ```
//!
//! A control is one more run without Vellum. The runs of a round are close in time, so a change of the
//! machine's speed affects all of them. Each round gives two ratios: with/without and control/without. The
//! result is the median of each ratio over the rounds. The median of control/without shows the noise of this
//! machine. A difference is reported only in two cases: the confidence interval of with/without lies above 1
//! and above the interval of control/without, or it lies below 1 and below that interval.
//!
//! Every run must do the same work. Standard input is the same file at the same offset each time, or empty. A
//! failing run ends the comparison. A stop signal (Ctrl-C) ends it too, with a report of the complete rounds.

use crate::compare_report::{Arm, Comparison, Extent, Once};
use crate::failure::{Failure, SIGNALLED};
use crate::run::args::{PAIRS_MIN, Run};
use crate::run::gather;
use crate::run::launch::{Observed, Occasion, Plan};
use crate::{compare_report, outcome, text};
use rustix::fs::{FileType, MemfdFlags, fstat, memfd_create, tell};
use rustix::termios::isatty;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};
use vellum_process::{Interrupt, Outcome};
use vellum_report::{Look, Output, Style, stderr};

/// The time for all rounds if their number is not given.
const BUDGET: Duration = Duration::from_secs(20);
/// The most rounds if their number is not given.
const PAIRS_CHOSEN_MAX: u32 = 60;
/// The bytes of a failed run's standard error that are shown.
const SAID_MAX: u64 = 4096;

pub(crate) fn compare(args: &Run) -> Result<u8, Failure> {
    let plan = Plan::new(args)?;
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let bench = Bench { plan: &plan, stdin: Stdin::find(), style: Style::of_stderr() };
    // Checked between two runs. During a run, the wait for the program also reports signals.
    let caught = Interrupt::catch();

    let first = bench.once(Arm::Without, "in its warm-up without Vellum", true)?;
    let second = bench.once(Arm::With, "in its warm-up on Vellum", false)?;
    let attachment = gather::report(&plan, &second)?.attachment;
    let pairs = match args.compare {
        Some(pairs) if pairs > 0 => pairs,
        _ => pairs_for(first.ended.wall * 2 + second.ended.wall),
    };

    let mut runs = Vec::new();
    let total = Arm::ALL.len() * pairs as usize;
    let mut executor = |turn: Turn| -> Result<(), Broken> {
        let (arm, number) = (Arm::ALL[turn.arm], runs.len() + 1);
        bench.progress(&format!("run {number} of {total} ({})", arm.words()));
        let occasion = format!("{} in run {number} of {total}", arm.words());
        let observed = bench.once(arm, &occasion, false)?;
        runs.push(Once::new(arm, turn.round, &observed));
        Ok(())
    };
    let ended = Experiment::new(ArmOrder::Random, Arm::ALL.len(), seed)
        .run(&Stop::rounds(pairs as usize), &mut executor);
    bench.progress("");
    let stopped = match ended {
        Ok(stopped) => stopped,
        Err(Broken::Asked(signal)) => Some(signal),
        Err(Broken::Failed(failure)) => return Err(failure),
    };
    drop(caught);
    let complete = runs.len() / Arm::ALL.len();
    runs.truncate(complete * Arm::ALL.len());
    if let (Some(signal), 0) = (stopped, complete) {
        return Err(Failure::stopped(signal));
    }

    let extent = Extent { pairs: complete as u32, asked: pairs, stopped };
    let comparison = Comparison::new(&plan, seed, extent, runs, attachment, bench.stdin.words());
    let report = compare_report::report(&comparison);
    if !args.quiet {
        let look = Look::brief(bench.style);
        stderr::write(format_args!("{}", report.text(look)));
    }
    json.map_or(Ok(()), |json| json.write(report.json()?))?;
    Ok(stopped.map_or(0, |signal| SIGNALLED + signal as u8))
}

/// The reason why a run is not part of the comparison.
enum Broken {
    Failed(Failure),
    /// This signal requested the end.
    Asked(i32),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken::Failed(failure)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Failure {
        match broken {
            Broken::Failed(failure) => failure,
            Broken::Asked(signal) => Failure::stopped(signal),
        }
    }
}

/// The number of pairs whose rounds, each taking `round`, fill the budget.
fn pairs_for(round: Duration) -> u32 {
    let fit = BUDGET.as_secs_f64() / round.as_secs_f64().max(1e-6);
    (fit as u32).clamp(PAIRS_MIN, PAIRS_CHOSEN_MAX)
}

/// A new seed for the orders of a comparison or benchmark, short enough to type.
pub(crate) fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_micros()) ^ u64::from(std::process::id())
}

struct Bench<'a> {
    plan: &'a Plan,
    stdin: Stdin,
    style: Style,
}

impl Bench<'_> {
    /// One run that must succeed; `shown` leaves its output to the caller's terminal or file.
    fn once(&self, arm: Arm, occasion: &str, shown: bool) -> Result<Observed, Broken> {
        let failed = |what: &'static str| {
            move |error: io::Error| {
                Failure::because(format!("cannot open {what} for a run of the comparison: {error}"))
            }
        };
        let stdin = Some(self.stdin.open().map_err(failed("standard input"))?);
        let (mut said, mut stdio) = (None, [stdin, None, None]);
        if !shown {
            let kept = memfd_create("stderr", MemfdFlags::CLOEXEC);
            let file = File::from(kept.map_err(|errno| failed("a file in memory")(errno.into()))?);
            let null = File::options().write(true).open("/dev/null").map_err(failed("/dev/null"))?;
            stdio[1] = Some(null.into());
            stdio[2] = Some(file.try_clone().map_err(failed("a file in memory"))?.into());
            said = Some(file);
        }
        let on_vellum = arm == Arm::With;
        let observed =
            self.plan.launch(Occasion { on_vellum, stdio, compared: true, ..Occasion::default() })?;
        // An interrupted command has not failed, whatever its exit status.
        if let Some(signal) = observed.ended.asked.or_else(Interrupt::arrived) {
            self.progress("");
            return Err(Broken::Asked(signal));
        }
        if observed.ended.outcome == Outcome::Exited(0) {
            return Ok(observed);
        }
        self.progress("");
        let how = text::ending(&outcome::Outcome::of(observed.ended.outcome));
        let said = said.and_then(|said| tail(said).ok()).unwrap_or_default();
        let message = format!(
            "the command failed {occasion} ({how}); a comparison needs a command that succeeds{said}"
        );
        Err(Failure::because(message).with_status(observed.ended.outcome.shell_status()).into())
    }

    /// Shows the progress on a terminal; nothing else is written there between the runs.
    fn progress(&self, text: &str) {
        if isatty(rustix::stdio::stderr()) {
            let _ = write!(io::stderr(), "\r\x1b[K{}", self.style.label(text));
        }
    }
}

/// The end of a failed run's output, to follow a message.
fn tail(mut said: File) -> io::Result<String> {
    let end = said.seek(SeekFrom::End(0))?;
    said.seek(SeekFrom::Start(end.saturating_sub(SAID_MAX)))?;
    let mut text = Vec::new();
    said.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(if text.trim().is_empty() { String::new() } else { format!("; its output:\n{}", text.trim_end()) })
}

/// The standard input of every run.
enum Stdin {
    File(u64),
    Empty,
}

impl Stdin {
    fn find() -> Stdin {
        let stdin = rustix::stdio::stdin();
        let regular =
            fstat(stdin).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        match tell(stdin) {
            Ok(position) if regular => Stdin::File(position),
            _ => Stdin::Empty,
        }
    }

    fn open(&self) -> io::Result<OwnedFd> {
        match self {
            // Opened again: a duplicate would share its position with the previous run.
            Stdin::File(position) => {
                let mut file = File::open("/proc/self/fd/0")?;
                file.seek(SeekFrom::Start(*position))?;
                Ok(file.into())
            }
            Stdin::Empty => Ok(File::open("/dev/null")?.into()),
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Stdin::File(_) => "file",
            Stdin::Empty => "empty",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_pairs_follows_the_time_of_a_round() {
        assert_eq!(pairs_for(Duration::from_secs(60)), PAIRS_MIN);
        assert_eq!(pairs_for(Duration::from_secs(2)), 10);
        assert_eq!(pairs_for(Duration::ZERO), PAIRS_CHOSEN_MAX);
    }
}
