//! The experiment `real`: Nishigaki's jobs as real processes on this machine, against the kernel's reclaim.
//!
//! ```text
//!   Device (zram, swap) ── Group (memory cgroup, a limit for each run) ── six jobs on one processor
//!                                                                          │
//!      calibration: cost of a fault, speed of the jobs' work ──▶ a fault costs 80,000 instructions of a job
//! ```
//!
//! - The delay of the device is given, and is measured. The *programs'* speed is set so that a fault costs
//!   as many instructions as in the paper. They have [`SCALE`] pages for each of the paper's, so that the
//!   kernel's own memory is small compared with theirs.
//! - On zram a fault costs CPU time and no waiting. The result is therefore the jobs' service per second of
//!   their CPU time, which other programs on the machine do not change.
//! - There is no load control: whatever chooses the pages to evict, no job is suspended.
//! - Everything made here is removed at the end, also after a signal: first jobs, then cgroup, then device.

mod job;

pub use job::{JOB, job};

use super::Run;
use super::machine::percent;
use crate::model::published::DELAY;
use crate::{Bound, Finding, Goal, Table, Value};
use serde_json::json;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use vellum_campaign::Metrics;
use vellum_campaign::confine::{BETWEEN_RELIEFS, Device, DeviceError, Group, GroupError, RELIEF_BYTES};
use vellum_campaign::worker::area::PAGE;
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};
use vellum_measure::Interval;
use vellum_process::Interrupt;

/// Pages here for each page of the paper's programs.
const SCALE: u64 = 32;
const GROUP: &str = "vellum-papers";
/// Δ of the paper, enlarged like the programs: about a millisecond. A governor's Δ is a hundred times as
/// long, so windows cost far more here.
const DELTA: u64 = 200_000 * SCALE;
/// Number of jobs beside the King.
const OTHERS: usize = 5;
/// The two memory sizes, in the paper's pages: the need at the knees of all jobs with little to spare, and
/// ample memory.
const FRAMES: [(&str, u64); 2] = [("squeezed", 448), ("not squeezed", 1024)];
/// Bytes of the device: all jobs' pages several times.
const DEVICE_BYTES: u64 = 4 << 30;
/// Goals, in percent: the gain over the kernel's reclaim where memory is short, and the loss allowed where
/// memory is not short.
const GAIN_MIN: f64 = 10.0;
const LOSS_MAX: f64 = -1.0;
const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 2;
/// The warm-up and the counted part of a run, in milliseconds of work of each job beside the King …
const WARM_MS: u64 = 1000;
const COUNT_MS: u64 = 2000;
/// … and the divisor of these for the King, which faults more and does less work in the same time.
const KING_PART: u64 = 4;
/// Time between two checks whether jobs have ended.
const LOOK: Duration = Duration::from_millis(5);

const ARMS: [(&str, &str); 3] = [("none", "kernel's reclaim"), ("pe", "PE each"), ("lt", "LT each")];

#[derive(Debug, thiserror::Error)]
enum RealError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error("a job could not be started or read from: {0}")]
    Start(#[from] io::Error),
    #[error("{arm}: a job ended without figures ({status}; with signal 9 it lacked memory)")]
    Died { arm: &'static str, status: ExitStatus },
    #[error("the calibration measured nothing")]
    Calibration,
    #[error("a signal asked to end")]
    Asked,
}

/// Runs the experiment if this machine allows it; otherwise notes the reason.
pub(super) fn run(run: &mut Run<'_>) -> Finding {
    let mut finding = Finding::new(
        "real",
        "Throughput of real processes",
        "Nishigaki, section 5",
        "Measured on one machine of 1981; today's peer is the kernel's own reclaim.",
        Vec::new(),
    );
    let measured = Interrupt::catch().map_err(RealError::from).and_then(|_caught| measure(run, &mut finding));
    if let Err(error) = measured {
        finding.notes.push(format!("not measured to the end: {error}. The simulation stands in"));
    }
    finding
}

fn measure(run: &mut Run<'_>, finding: &mut Finding) -> Result<(), RealError> {
    let rounds = run.scale.pick(ROUNDS, ROUNDS_QUICK, 1);
    let (warm, count) = (run.scale.pick(WARM_MS, WARM_MS, 100), run.scale.pick(COUNT_MS, COUNT_MS / 2, 100));
    let total = FRAMES.len() * rounds * ARMS.len();
    let _device = Device::new(DEVICE_BYTES)?;
    run.tell(0, total, "calibration");
    let speed = Speed::calibrate()?;
    finding.notes.push(format!(
        "zram: a fault costs {:.1} µs of CPU time, measured; so a tick, the source's instruction, is {:.3} ns of work: S is {DELAY} of \
         them",
        speed.delay_ns / 1e3,
        speed.tick_ns()
    ));
    finding.notes.push(format!(
        "six jobs on one processor, {SCALE} pages for each of the source's; {rounds} rounds in random order, each job's work of {count} ms (the \
         King's a part in {KING_PART} of it) after {warm} ms: the same references in every arm; service is work for each second of the jobs' \
         CPU time without what it took to draw references; no load control"
    ));
    for (at, (memory, frames)) in FRAMES.into_iter().enumerate() {
        let mut results: [Vec<Figures>; ARMS.len()] = Default::default();
        let mut experiment = Experiment::new(ArmOrder::Random, ARMS.len(), run.seed + at as u64);
        let mut executor = |Turn { round, place, arm }: Turn| -> Result<(), RealError> {
            let done = (at * rounds + round) * ARMS.len() + place;
            run.tell(done, total, &format!("{memory}: {}", ARMS[arm].1));
            let seed = run.seed + round as u64;
            let figures = one(&speed, frames, ARMS[arm], (warm, count), seed)?;
            finding.runs.push(json!({
                "cell": memory, "arm": ARMS[arm].1, "round": round, "place": place, "seed": seed,
                "metrics": { "jobs": figures.jobs, "relieved": figures.relieved },
            }));
            results[arm].push(figures);
            Ok(())
        };
        if experiment.run(&Stop::rounds(rounds), &mut executor)?.is_some() {
            return Err(RealError::Asked);
        }
        let relieved: u32 = results.iter().flatten().map(|figures| figures.relieved).sum();
        if relieved > 0 {
            finding.notes.push(format!(
                "{memory}: {relieved} times in all the kernel found nothing to reclaim although the device was nearly empty, and would have \
                 killed a job; its limit was raised by {} MiB for {} ms instead",
                RELIEF_BYTES >> 20,
                BETWEEN_RELIEFS.as_millis()
            ));
        }
        let gains = [1, 2].map(|arm| gain(&results[arm], &results[0], run.seed));
        let bound = Bound::AtLeast(if at == 0 { GAIN_MIN } else { LOSS_MAX });
        for ((_, arm), gain) in ARMS.into_iter().skip(1).zip(gains) {
            finding.goals.push(Goal::within(
                format!("{memory}: {arm} over the kernel's reclaim"),
                " %",
                bound,
                gain,
            ));
        }
        finding.tables.push(table(memory, frames, &results, [None, gains[0], gains[1]]));
    }
    Ok(())
}

/// The speed of the processor and the device.
struct Speed {
    /// The time of a round of spinning.
    round_ns: f64,
    /// S, the time of a fault.
    delay_ns: f64,
}

impl Speed {
    fn tick_ns(&self) -> f64 {
        self.delay_ns / DELAY
    }

    fn calibrate() -> Result<Self, RealError> {
        let pages = FRAMES[0].1 * SCALE;
        let group = Group::new(GROUP, pages * PAGE as u64)?;
        let mut jobs = Jobs(Vec::new());
        jobs.start(&group, &["program=calibration".to_owned(), format!("pages={}", pages * 2)])?;
        let figures = jobs.figures(&group, "calibration")?;
        let number = |name| figures[0].get(name).filter(|ns| *ns > 0.0).ok_or(RealError::Calibration);
        Ok(Self { round_ns: number("round_ns")?, delay_ns: number("delay_ns")? })
    }
}

struct Figures {
    /// The figures of the King, then of the others.
    jobs: Vec<Metrics>,
    /// Number of times the kernel found nothing to reclaim.
    relieved: u32,
}

fn sum(jobs: &[Metrics], name: &str) -> f64 {
    jobs.iter().filter_map(|job| job.get(name)).sum()
}

/// Faults for a million ticks.
fn fault_rate(jobs: &[Metrics]) -> f64 {
    sum(jobs, "major_faults") / sum(jobs, "ticks") * 1e6
}

impl Figures {
    /// Million ticks of work for a second of CPU time.
    fn service(&self) -> f64 {
        sum(&self.jobs, "ticks") * 1e3 / (sum(&self.jobs, "cpu_ns") - sum(&self.jobs, "drawing_ns"))
    }
}

fn one(
    speed: &Speed,
    frames: u64,
    (windows, arm): (&str, &'static str),
    (warm, count): (u64, u64),
    seed: u64,
) -> Result<Figures, RealError> {
    let group = Group::new(GROUP, frames * SCALE * PAGE as u64)?;
    let rounds = (speed.tick_ns() / speed.round_ns * 1e6).round();
    let mut jobs = Jobs(Vec::new());
    for number in 0..=OTHERS {
        let part = if number == 0 { KING_PART } else { 1 };
        let ticks = |ms: u64| (ms as f64 * 1e6 / speed.tick_ns()) as u64 / part;
        jobs.start(
            &group,
            &[
                format!("program={number}"),
                format!("seed={}", seed * 100 + number as u64),
                format!("rounds_per_mega_tick={rounds}"),
                format!("windows={windows}"),
                format!("warm_ticks={}", ticks(warm)),
                format!("count_ticks={}", ticks(count)),
            ],
        )?;
    }
    Ok(Figures { jobs: jobs.figures(&group, arm)?, relieved: group.relieved() })
}

/// Jobs that are killed when this value is dropped.
struct Jobs(Vec<(Child, BufReader<ChildStdout>)>);

impl Jobs {
    /// Starts a job: this executable again, as a worker.
    fn start(&mut self, group: &Group, words: &[String]) -> io::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["work", JOB]).args(words).arg(format!("group={}", group.path().display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().map(BufReader::new).ok_or(io::ErrorKind::BrokenPipe)?;
        self.0.push((child, out));
        Ok(())
    }

    /// Lets the jobs run once all are prepared, and returns their figures.
    fn figures(&mut self, group: &Group, arm: &'static str) -> Result<Vec<Metrics>, RealError> {
        for (_, out) in &mut self.0 {
            next_line(out, group)?;
        }
        for (child, _) in &mut self.0 {
            // A job that has ended does not receive it; its end is reported below.
            let _ = child.stdin.as_mut().map(|input| input.write_all(b"go\n"));
        }
        let figures = |(child, out): &mut (Child, BufReader<ChildStdout>)| {
            serde_json::from_str(&next_line(out, group)?).or_else(|_| {
                // A job that still runs has printed something else, and must not be waited for.
                let _ = child.kill();
                Err(RealError::Died { arm, status: child.wait()? })
            })
        };
        self.0.iter_mut().map(figures).collect()
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            // The kill fails only if the job has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for a job's next line, which is empty at the end of its output. Raises the limit for a moment when
/// the kernel holds jobs that lack memory.
fn next_line(out: &mut BufReader<ChildStdout>, group: &Group) -> Result<String, RealError> {
    loop {
        if Interrupt::arrived().is_some() {
            return Err(RealError::Asked);
        }
        let mut ready = libc::pollfd { fd: out.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry with an open descriptor.
        if unsafe { libc::poll(&raw mut ready, 1, LOOK.as_millis() as libc::c_int) } > 0 {
            let mut line = String::new();
            out.read_line(&mut line)?;
            return Ok(line);
        }
        group.relieve();
    }
}

fn gain(ours: &[Figures], peer: &[Figures], seed: u64) -> Option<Interval> {
    percent(ours.iter().zip(peer).map(|(a, b)| (a.service(), b.service())), seed)
}

fn table(
    memory: &str,
    frames: u64,
    results: &[Vec<Figures>],
    gains: [Option<Interval>; ARMS.len()],
) -> Table {
    let mut table = Table::new(
        &format!("{memory}: a limit of {} MiB", (frames * SCALE * PAGE as u64) >> 20),
        &[
            ("windows", "windows"),
            ("service_mega_ticks", "work for a CPU|second, 10^6"),
            ("over_kernel_percent", "over the kernel's"),
            ("faults_per_mega_tick", "faults in|10^6 ticks"),
            ("king_faults_per_mega_tick", "King's in|10^6 ticks"),
            ("system_percent", "system|time, %"),
            ("window_intervals", "window of the|others, Δ"),
            ("relieved", "times|relieved"),
        ],
    );
    for (arm, figures) in results.iter().enumerate() {
        let mean = |of: fn(&Figures) -> f64| {
            Value::Number(figures.iter().map(of).sum::<f64>() / figures.len().max(1) as f64)
        };
        let window = mean(|of| sum(&of.jobs[1..], "windows_mean") / OTHERS as f64);
        table.rows.push(vec![
            Value::text(ARMS[arm].1),
            mean(Figures::service),
            gains[arm].map_or(Value::Nothing, Value::PercentRange),
            mean(|of| fault_rate(&of.jobs)),
            mean(|of| fault_rate(&of.jobs[..1])),
            mean(|of| sum(&of.jobs, "sys_ns") / sum(&of.jobs, "cpu_ns") * 100.0),
            if arm > 0 { window } else { Value::Nothing },
            mean(|of| f64::from(of.relieved)),
        ]);
    }
    table
}
