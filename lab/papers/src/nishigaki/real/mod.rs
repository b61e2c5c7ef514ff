//! The experiment `real`: the same jobs as real processes on this machine, against the kernel's own reclaim.
//!
//! ```text
//!   Device (zram, swap) ── Group (memory cgroup, a limit for each run) ── six jobs on one processor
//!                                                                          │
//!      calibration: S, rounds a ns ──▶ the jobs' speed: S is 80,000 instructions, as in the paper
//! ```
//!
//! - The delay of the device is given, and is measured. The *programs* are made as fast relative to it as the
//!   paper's were to its device. They have [`SCALE`] pages for each of the paper's, so that the kernel's own
//!   memory is small compared with theirs.
//! - On zram a fault costs CPU time and no waiting. The result is therefore service for a second of CPU
//!   time of all jobs, which other programs on the machine do not change.
//! - There is no load control: jobs are not suspended, in any arm.
//! - Everything made here is removed at the end, also after a signal: jobs first, then the cgroup, then the
//!   device.

mod job;

use super::Run;
use crate::finding::RESAMPLES;
use crate::model::published::DELAY;
use crate::model::sim::{KING_PAGES, KING_STAY};
use crate::params::WorkError;
use crate::{Bound, Finding, Goal, Table, Value};
use serde_json::{Value as Json, json};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use vellum_campaign::confine::{BETWEEN_RELIEFS, Device, DeviceError, Group, GroupError, RELIEF_BYTES};
use vellum_experiment::{ArmOrder, End, Experiment, Stop, Turn};
use vellum_measure::{Interval, paired_ratio};
use vellum_process::Interrupt;

/// The command that starts jobs: this executable again.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The executable.
    pub program: PathBuf,
    /// The words before the work's name.
    pub words: Vec<OsString>,
}

/// Runs a job if `name` names the work of this experiment's jobs; otherwise returns `None`.
#[must_use]
pub fn work(name: &str, words: &[String]) -> Option<Result<String, WorkError>> {
    (name == job::NAME).then(|| job::job(words))
}

/// Pages here for each page of the paper's programs.
const SCALE: u64 = 32;
const PAGE_BYTES: u64 = 4096;
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
    #[error("a job could not be started or heard: {0}")]
    Start(#[from] io::Error),
    #[error("{arm}: a job died ({how}): these settings are refused, since under them that arm does not live")]
    Died { arm: &'static str, how: String },
    #[error("a signal asked to end")]
    Asked,
}

/// Runs the experiment if this machine allows it; otherwise notes the reason.
pub(super) fn run(run: &mut Run<'_>, worker: &Worker) -> Finding {
    let mut finding = Finding::new(
        "real",
        "Throughput of real processes",
        "Nishigaki, section 5",
        "Measured on one machine of 1981; today's peer is the kernel's own reclaim.",
        Vec::new(),
    );
    let measured =
        Interrupt::catch().map_err(RealError::from).and_then(|_caught| measure(run, worker, &mut finding));
    if let Err(error) = measured {
        finding.notes.push(format!("not measured to the end: {error}. The simulation stands in"));
    }
    finding
}

fn measure(run: &mut Run<'_>, worker: &Worker, finding: &mut Finding) -> Result<(), RealError> {
    let rounds = run.scale.pick(ROUNDS, ROUNDS_QUICK, 1);
    let (warm, count) = (run.scale.pick(WARM_MS, WARM_MS, 100), run.scale.pick(COUNT_MS, COUNT_MS / 2, 100));
    let total = FRAMES.len() * rounds * ARMS.len();
    let _device = Device::new(DEVICE_BYTES)?;
    run.tell(0, total, "calibration");
    let speed = calibrate(worker)?;
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
            let figures = one(worker, &speed, frames, ARMS[arm], (warm, count), seed)?;
            finding.runs.push(json!({
                "cell": memory, "arm": ARMS[arm].1, "round": round, "place": place, "seed": seed,
                "metrics": { "jobs": figures.jobs, "relieved": figures.relieved },
            }));
            results[arm].push(figures);
            Ok(())
        };
        if let End::Signal(_) = experiment.run(&Stop::rounds(rounds), &mut executor)? {
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
        finding.tables.push(table(memory, frames, &results, run.seed));
        let bound = Bound::AtLeast(if at == 0 { GAIN_MIN } else { LOSS_MAX });
        for arm in 1..ARMS.len() {
            let gain = gain(&results[arm], &results[0], run.seed);
            let what = format!("{memory}: {} over the kernel's reclaim", ARMS[arm].1);
            finding.goals.push(Goal::within(what, " %", bound, gain));
        }
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
}

fn calibrate(worker: &Worker) -> Result<Speed, RealError> {
    let pages = FRAMES[0].1 * SCALE;
    let words = ["program=calibration".to_owned(), format!("pages={}", pages * 2)];
    let group = Group::new(GROUP, pages * PAGE_BYTES)?;
    let mut jobs = Jobs(vec![start(worker, &words)?]);
    let figures = jobs.finish(&group, "calibration")?;
    let number = |name: &str| figures[0][name].as_f64().filter(|ns| *ns > 0.0);
    match (number("round_ns"), number("delay_ns")) {
        (Some(round_ns), Some(delay_ns)) => Ok(Speed { round_ns, delay_ns }),
        _ => Err(RealError::Died { arm: "calibration", how: "it measured nothing".to_owned() }),
    }
}

struct Figures {
    jobs: Vec<Json>,
    /// Number of times the kernel found nothing to reclaim.
    relieved: u32,
}

impl Figures {
    fn sum(&self, names: &[&str]) -> f64 {
        let of = |job: &Json| names.iter().filter_map(|name| job[*name].as_f64()).sum::<f64>();
        self.jobs.iter().map(of).sum()
    }

    /// Million ticks of work for a second of CPU time.
    fn service(&self) -> f64 {
        self.sum(&["ticks"]) * 1e3 / (self.sum(&["user_ns", "system_ns"]) - self.sum(&["drawing_ns"]))
    }
}

fn one(
    worker: &Worker,
    speed: &Speed,
    frames: u64,
    (windows, arm): (&str, &'static str),
    (warm, count): (u64, u64),
    seed: u64,
) -> Result<Figures, RealError> {
    let limit = frames * SCALE * PAGE_BYTES;
    let group = Group::new(GROUP, limit)?;
    let mut jobs = Jobs(Vec::new());
    for number in 0..=OTHERS {
        let program = if number == 0 { "king".to_owned() } else { (number - 1).to_string() };
        let rounds = (speed.tick_ns() / speed.round_ns * 1e6).round() as u64;
        let ticks =
            |ms: u64| (ms as f64 * 1e6 / speed.tick_ns()) as u64 / if number == 0 { KING_PART } else { 1 };
        let words = [
            format!("program={program}"),
            format!("seed={}", seed * 100 + number as u64),
            format!("scale={SCALE}"),
            format!("delta={DELTA}"),
            format!("king_pages={KING_PAGES}"),
            format!("stay={KING_STAY}"),
            format!("rounds_per_mega_tick={rounds}"),
            format!("delay={DELAY}"),
            format!("windows={windows}"),
            format!("usage={}", group.usage().display()),
            format!("limit={limit}"),
            format!("warm_ticks={}", ticks(warm)),
            format!("count_ticks={}", ticks(count)),
        ];
        jobs.0.push(start(worker, &words)?);
    }
    let jobs = jobs.finish(&group, arm)?;
    Ok(Figures { jobs, relieved: group.relieved() })
}

/// Jobs that are killed when this value is dropped.
struct Jobs(Vec<Child>);

impl Jobs {
    fn go(&mut self) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|child| {
            // A job that has died does not receive it; its end is reported when it is waited for.
            child.stdin.as_mut().map(|input| input.write_all(b"go\n")).map_or(Err(broken()), |_| Ok(()))
        })
    }

    /// Moves the jobs into the group, lets them run, and returns their lines of figures.
    fn finish(&mut self, group: &Group, arm: &'static str) -> Result<Vec<Json>, RealError> {
        let mut outs = Vec::new();
        for child in &mut self.0 {
            let mut out = BufReader::new(child.stdout.take().ok_or_else(broken)?);
            hear(&mut out, group)?;
            group.take(child.id())?;
            outs.push(out);
        }
        // First all jobs prepare their pages, then all begin.
        self.go()?;
        outs.iter_mut().try_for_each(|out| hear(out, group).map(|_| ()))?;
        self.go()?;
        let mut figures = Vec::new();
        for (child, mut out) in self.0.iter_mut().zip(outs) {
            let line = hear(&mut out, group)?;
            if let Ok(found) = serde_json::from_str(&line) {
                figures.push(found);
                continue;
            }
            // A job that still runs has printed something else, and must not be waited for.
            let _ = child.kill();
            let status = child.wait()?;
            let how = match status.signal() {
                Some(libc::SIGKILL) if line.is_empty() => {
                    "signal 9, as the kernel ends what it has no memory for".to_owned()
                }
                Some(libc::SIGKILL) => format!("it said {line:?}"),
                _ => status.to_string(),
            };
            return Err(RealError::Died { arm, how });
        }
        Ok(figures)
    }
}

/// Waits for a job's next line, which is empty at the end of its output. Raises the limit for a moment when
/// the kernel holds jobs that lack memory.
fn hear(out: &mut BufReader<ChildStdout>, group: &Group) -> Result<String, RealError> {
    loop {
        if Interrupt::arrived().is_some() {
            return Err(RealError::Asked);
        }
        let mut ready = libc::pollfd { fd: out.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry with an open descriptor.
        let heard = unsafe { libc::poll(&raw mut ready, 1, LOOK.as_millis() as libc::c_int) };
        if heard > 0 {
            let mut line = String::new();
            out.read_line(&mut line)?;
            return Ok(line);
        }
        group.relieve();
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // The kill fails only if the job has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(worker: &Worker, words: &[String]) -> io::Result<Child> {
    let mut command = Command::new(&worker.program);
    command.args(&worker.words).arg(job::NAME).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: between fork and exec only two system calls are made, on local values.
    unsafe {
        command.pre_exec(|| {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::sched_getaffinity(0, size, &raw mut allowed) == 0 {
                // The last allowed processor, since interrupts prefer the first.
                let last = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed));
                if let Some(cpu) = last {
                    libc::CPU_SET(cpu, &mut one);
                    libc::sched_setaffinity(0, size, &raw const one);
                }
            }
            Ok(())
        });
    }
    command.spawn()
}

fn gain(ours: &[Figures], peer: &[Figures], seed: u64) -> Option<Interval> {
    let pairs: Vec<(f64, f64)> = ours.iter().zip(peer).map(|(a, b)| (a.service(), b.service())).collect();
    let ratio = paired_ratio(&pairs, RESAMPLES, seed)?;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Some(Interval { estimate: percent(ratio.estimate), low: percent(ratio.low), high: percent(ratio.high) })
}

fn table(memory: &str, frames: u64, results: &[Vec<Figures>; ARMS.len()], seed: u64) -> Table {
    let mut table = Table::new(
        &format!("{memory}: a limit of {} MiB", (frames * SCALE * PAGE_BYTES) >> 20),
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
    for (arm, (_, words)) in ARMS.into_iter().enumerate() {
        let mean = |of: &dyn Fn(&Figures) -> f64| {
            results[arm].iter().map(of).sum::<f64>() / results[arm].len().max(1) as f64
        };
        let rate = |jobs: &[Json]| {
            let jobs = Figures { jobs: jobs.to_vec(), relieved: 0 };
            jobs.sum(&["major_faults"]) / jobs.sum(&["ticks"]) * 1e6
        };
        let over = if arm > 0 { gain(&results[arm], &results[0], seed) } else { None };
        let window = |figures: &Figures| {
            Figures { jobs: figures.jobs[1..].to_vec(), relieved: 0 }.sum(&["windows_mean"]) / OTHERS as f64
        };
        table.rows.push(vec![
            Value::text(words),
            Value::Number(mean(&Figures::service)),
            over.map_or(Value::Nothing, Value::PercentRange),
            Value::Number(mean(&|figures| rate(&figures.jobs))),
            Value::Number(mean(&|figures| rate(&figures.jobs[..1]))),
            Value::Number(mean(&|figures| {
                figures.sum(&["system_ns"]) / figures.sum(&["user_ns", "system_ns"]) * 100.0
            })),
            if arm > 0 { Value::Number(mean(&window)) } else { Value::Nothing },
            Value::Number(mean(&|figures| f64::from(figures.relieved))),
        ]);
    }
    table
}
