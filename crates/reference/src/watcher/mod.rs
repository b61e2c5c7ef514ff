//! Watches which pages a job uses: samples its working-set curve again and again, within a CPU budget.
//!
//! One sample is a *cycle*: the accessed bits of the job's pages are cleared, and then counted at several
//! *looks*, each a *window* of the job's CPU time after the clearing. Samples are averaged in a history.
//!
//! ```text
//! step ─▶ Job::update ─▶ due? ─┬─ the budget has a cycle ─▶ clear the bits of all processes
//!   ▲                         ├─ a window has passed ────▶ look: count their set bits ─▶ (window, pages)
//!   │ wait                    └─ the last window ────────▶ cycle::at_windows ─▶ History
//!   └────────────────────────────────┘
//! ```
//!
//! The caller's loop is: `step`, sleep for the returned time, `step` again. This file has the state of the
//! watch; `due` has the work of a step.
//!
//! - Each cycle has the first [`FIRST_LOOKS`](crate::options::FIRST_LOOKS) windows. It also has the longer
//!   ones of the options, up to half of the job's CPU time so far. A first curve, of short windows, is
//!   therefore ready soon.
//! - The time that the job loses by our clearing is subtracted from its clock within the cycle.
//! - A source that allows fewer looks than a cycle has (`SourceKind::looks`) is cleared again within the
//!   cycle. Each look then covers the time since the last clearing; the job is assumed to be stationary over
//!   a cycle.
//!
//! Departure: Nishigaki 1981 (section 3) samples at every Δ with a counter for each page. One clearing for
//! several looks costs a fraction, and gives the same for a stationary job ([`vellum_workset::cycle`]).

mod ages;
mod due;

pub use ages::AGES;

use crate::budget::{Budget, Parts, Passed};
use crate::charged::Charged;
use crate::event::Event;
use crate::frame::{Disturbance, nanos};
use crate::growth::Growth;
use crate::job::Job;
use crate::options::{Options, WatchError};
use crate::source::{Count, Source, SourceKind};
use crate::sources::accessed::thread_cpu;
use crate::sources::choose;
use crate::target::Target;
use crate::whole::Whole;
use ages::Ages;
use due::Cycle;
use std::time::{Duration, Instant};
use vellum_kernel::{Bytes, Pid};
use vellum_workset::{Curve, History, cycle};

/// Bytes of a page in every count of pages.
pub const PAGE_BYTES: u64 = vellum_sys::PAGE as u64;
const WAIT_MIN: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(500);
/// A sleeping job is taken to use this part of a processor …
const RATE_MIN: f64 = 0.02;
/// … and this part where it is only about when to look next: looking too late costs nothing there.
const RATE_LEAST: f64 = 1e-4;
/// The longest delay until the end of a job is noticed.
const WAKE_MAX: Duration = Duration::from_secs(5);
/// Waking up may use one part in this many of the budget, so that the rest can be saved for cycles.
const IDLE_SHARE: f64 = 4.0;
const RATE_NEWEST: f64 = 0.5;
/// The weight of the newest cost of a step.
const STEP_NEWEST: f64 = 0.25;
/// The rate is formed over no less than this.
const RATE_OVER: Duration = Duration::from_millis(20);

/// The result of a step.
#[derive(Debug, Default)]
pub struct Step {
    /// The events, in order.
    pub events: Vec<Event>,
    /// For how long nothing needs to be done; `None` when the job is over.
    pub wait: Option<Duration>,
}

/// In which pages the answer is.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "pages")]
pub enum Grain {
    /// 4 KiB.
    Base,
    /// This part of the memory is in huge pages of 2 MiB, each of which counts whole.
    Mixed {
        /// The part, below [`HUGE_FROM`].
        huge: f64,
    },
    /// Nearly all is in huge pages: the answer is one in huge pages.
    Huge {
        /// The part.
        huge: f64,
    },
}

/// With less than this part in huge pages they are not worth a word …
pub const MIXED_FROM: f64 = 0.05;
/// … and from this part on the answer is in huge pages.
pub const HUGE_FROM: f64 = 0.5;

/// A watch on a job.
#[derive(Debug)]
pub struct Watcher {
    job: Job,
    source: Box<dyn Source>,
    options: Options,
    history: History,
    whole: Whole,
    cycle: Option<Cycle>,
    ages: Ages,
    budget: Budget,
    latest: Count,
    peak: Bytes,
    pub(super) most_processes: u64,
    /// The most that its processes had read and written by calls at any look, files and pipes alike.
    pub(super) transferred: Bytes,
    /// The most that they had read by calls, and what they had at the first look.
    read: Bytes,
    read_before: Option<Bytes>,
    pub(super) charged: Charged,
    growth: Growth,
    correction: f64,
    longest_stall: Duration,
    began: Instant,
    first_curve: Option<Duration>,
    /// The cost of a step in which nothing is due, in seconds.
    step_cost: f64,
    rate: f64,
    rated: (Instant, Duration),
    ended: bool,
}

impl Watcher {
    /// A watch on `target`; it begins with the first [`step`](Self::step).
    pub fn new(target: Target, options: Options) -> Result<Watcher, WatchError> {
        options.check()?;
        let cpu = thread_cpu();
        let source = choose(options.source, &target)?;
        let parts = Parts { share: options.budget, idle: options.idle_budget, burst: options.burst };
        let mut budget = Budget::new(parts, source.kind().count_a_page());
        budget.cpu = thread_cpu().saturating_sub(cpu);
        let windows = cycle::doubling_windows(options.delta.as_nanos() as f64, options.windows);
        let now = Instant::now();
        Ok(Watcher {
            job: Job::new(target),
            budget,
            source,
            history: History::new(windows.clone(), options.alpha),
            whole: Whole::new(windows, Duration::ZERO),
            cycle: None,
            ages: Ages::default(),
            latest: Count::default(),
            peak: Bytes(0),
            most_processes: 0,
            transferred: Bytes(0),
            read: Bytes(0),
            read_before: None,
            charged: Charged::default(),
            growth: Growth::default(),
            correction: 1.0,
            longest_stall: Duration::ZERO,
            began: now,
            first_curve: None,
            step_cost: 0.0,
            rate: 1.0,
            rated: (now, Duration::ZERO),
            ended: false,
            options,
        })
    }

    /// Does all due work.
    pub fn step(&mut self) -> Result<Step, WatchError> {
        if self.ended {
            return Ok(Step::default());
        }
        let cpu = thread_cpu();
        let mut events = self.job.update(false);
        self.note(&mut events);
        self.learn_rate();
        self.account();
        let wait = if self.job.members.is_empty() {
            self.end_cycle(&mut events);
            events.push(Event::Ended);
            self.ended = true;
            None
        } else {
            Some(self.advance(&mut events)?)
        };
        let spent = thread_cpu().saturating_sub(cpu);
        if events.is_empty() {
            self.step_cost += STEP_NEWEST * (spent.as_secs_f64() - self.step_cost);
        }
        self.budget.cpu += spent;
        Ok(Step { events, wait })
    }

    /// Ends the watch: the looks of the running cycle become a sample.
    pub fn finish(&mut self) {
        self.end_cycle(&mut Vec::new());
        self.whole.pass(self.job.clock, self.held());
        self.job.update(false);
        self.ended |= self.job.members.is_empty();
    }

    /// The samples so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The mean curve, windows in nanoseconds of user CPU time and pages of [`PAGE_BYTES`]; before the first
    /// cycle has ended, its looks so far. `None` without two looks.
    pub fn curve(&self) -> Option<Curve> {
        self.known().mean()
    }

    /// The history, or the running cycle as one while it is empty.
    pub(crate) fn known(&self) -> History {
        let mut history = self.history.clone();
        if history.samples() == 0
            && let Some(cycle) = &self.cycle
        {
            due::push(&mut history, cycle);
        }
        history
    }

    /// The source in use.
    pub fn source(&self) -> SourceKind {
        self.source.kind()
    }

    /// The error of the source's counts on this machine.
    pub fn caveat(&self) -> Option<&'static str> {
        self.source.caveat()
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Its target.
    pub fn target(&self) -> &Target {
        &self.job.target
    }

    /// The job's processes, by their names.
    pub fn processes(&self) -> impl Iterator<Item = (Pid, &str)> {
        self.job.members.iter().map(|(pid, member)| (*pid, member.name.as_str()))
    }

    /// The job's user CPU time since the watch began.
    pub fn clock(&self) -> Duration {
        self.job.clock
    }

    /// First references for each nanosecond of user CPU time, in pages: the kernel's minor faults, or the
    /// growth of resident memory if that is more, as where a fault brings a huge page. Pages resident already
    /// cause neither, so these come whatever the memory.
    pub fn first_references(&self) -> f64 {
        let clock = self.job.clock.as_nanos() as f64;
        let pages = self.job.minor_faults.max(self.job.grown.0 / PAGE_BYTES);
        if clock > 0.0 { pages as f64 / clock } else { 0.0 }
    }

    /// The job's resident memory: at the last look, or, before the first, by a file that is cheaper to read.
    pub fn resident(&self) -> Bytes {
        let resident_of = |member: &crate::job::Member| member.resident;
        match self.latest.resident {
            Bytes(0) => self.job.members.values().map(resident_of).sum(),
            counted => counted,
        }
    }

    /// The job's memory at the last look.
    pub fn latest(&self) -> Count {
        self.latest
    }

    pub(super) fn read_since(&self) -> Bytes {
        Bytes(self.read.0.saturating_sub(self.read_before.unwrap_or_default().0))
    }

    /// True if it runs and has become larger lately.
    pub fn is_growing(&self) -> bool {
        !self.ended && self.growth.is_growing(self.job.clock, self.peak)
    }

    /// By what the curve was corrected; 1 if it was not.
    pub fn correction(&self) -> f64 {
        self.correction
    }

    /// Sets the proved factor on the pages of the curve.
    pub fn correct(&mut self, times: f64) {
        self.correction = times;
    }

    /// Its memory now, by a file that is cheap to read and counts shared pages in each process; corrected as
    /// the last look was.
    fn held(&self) -> Bytes {
        let (once, twice) = (self.latest.resident.0 as f64, self.latest.twice.0 as f64);
        let resident = self.job.resident;
        if twice > 0.0 { Bytes((resident.0 as f64 * once / (once + twice)) as u64) } else { resident }
    }

    /// The most resident and swapped memory that was seen at any time.
    pub fn peak(&self) -> Bytes {
        if self.peak == Bytes(0) { self.job.resident } else { self.peak }
    }

    /// In which pages the answer is.
    pub fn grain(&self) -> Grain {
        let huge = self.latest.huge.0 as f64 / (self.latest.resident.0.max(1)) as f64;
        match huge {
            huge if huge < MIXED_FROM => Grain::Base,
            huge if huge < HUGE_FROM => Grain::Mixed { huge },
            huge => Grain::Huge { huge },
        }
    }

    /// Wall-clock time from the beginning of the watch to the first curve; `None` while there is none.
    pub fn first_curve(&self) -> Option<Duration> {
        self.first_curve
    }

    /// For how long the watch has gone on.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Its cost so far.
    pub fn cost(&self) -> Disturbance {
        let clock = self.job.clock.as_secs_f64();
        let wall = self.elapsed();
        let spent = self.budget.spent();
        Disturbance {
            cpu_ns: nanos(self.budget.cpu),
            imposed_ns: nanos(self.budget.imposed),
            longest_stall_ns: nanos(self.longest_stall),
            share: if clock > 0.0 { spent.as_secs_f64() / clock } else { 0.0 },
            of_processor: spent.as_secs_f64() / wall.as_secs_f64().max(f64::MIN_POSITIVE),
            ahead_ns: nanos(self.budget.ahead(self.passed())),
        }
    }

    /// All the time watched, in stretches; before the first cycle has ended, its looks so far.
    pub(super) fn stretches(&self) -> History {
        match &self.whole.stretches {
            none if none.samples() == 0 => self.known(),
            some => some.clone(),
        }
    }

    fn account(&mut self) {
        let resident = self.held();
        // What several processes share is not known before a look.
        if self.latest.resident > Bytes(0) || self.job.members.len() < 2 {
            self.peak = self.peak.max(resident + self.latest.swapped);
            self.growth.note(self.job.clock, self.peak);
        }
        self.most_processes = self.most_processes.max(self.job.members.len() as u64);
        self.whole.pass(self.job.clock, resident);
    }

    fn note(&mut self, events: &mut Vec<Event>) {
        let mut another = false;
        for event in &*events {
            match event {
                Event::Left { pid, .. } => self.source.discard(*pid),
                // A process among many that executes something is how jobs work; the only one is another job
                // from then on.
                Event::Executed { pid, .. } => {
                    self.source.discard(*pid);
                    another |= self.job.members.len() == 1;
                }
                _ => {}
            }
        }
        if another {
            (self.cycle, self.ages, self.budget.cycles) = (None, Ages::default(), 0);
            self.history.restart();
            self.whole = Whole::new(self.history.windows().to_vec(), self.job.clock);
            (self.peak, self.transferred, self.latest) = (Bytes(0), Bytes(0), Count::default());
            (self.read, self.read_before) = (Bytes(0), None);
            (self.charged, self.growth) = (Charged::default(), Growth::default());
            events.push(Event::Restarted);
        }
    }

    fn learn_rate(&mut self) {
        let (at, clock) = self.rated;
        let wall = at.elapsed();
        if wall >= RATE_OVER {
            let now = self.job.clock.saturating_sub(clock).as_secs_f64() / wall.as_secs_f64();
            self.rate += RATE_NEWEST * (now - self.rate);
            self.rated = (Instant::now(), self.job.clock);
        }
    }

    /// The part of a processor that the job uses, lately; more than 1 for several processors.
    pub fn rate(&self) -> f64 {
        self.rate.max(RATE_MIN)
    }

    /// True if a cycle runs: pages whose bits others clear then would count as idle.
    pub fn in_cycle(&self) -> bool {
        self.cycle.is_some()
    }

    fn passed(&self) -> Passed {
        Passed { clock: self.job.clock, wall: self.elapsed() }
    }

    /// Resident memory not touched for each measured age of [`AGES`], in rising order.
    pub fn untouched(&self) -> impl Iterator<Item = (Duration, Bytes)> {
        self.ages().map(|(age, found)| (age, found.untouched))
    }

    pub(crate) fn ages(&self) -> impl Iterator<Item = (Duration, ages::Aged)> {
        self.ages.known()
    }

    /// The wall-clock time in which the job's clock will advance by this.
    pub(crate) fn wall(&self, clock: Duration) -> Duration {
        let seconds = clock.as_secs_f64() / self.rate.max(RATE_LEAST);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}
