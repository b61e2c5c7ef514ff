//! Watching a job: cycles of one clearing and several looks, paced by a budget, gathered into a history.
//!
//! ```text
//! step ─▶ Job::update ─▶ due? ─┬─ cycle can be paid for ─▶ clear every process
//!   ▲                         ├─ a window has passed ───▶ count every process ─▶ (T, w)
//!   │ wait                    └─ last window ──────────▶ cycle::at_windows ─▶ History
//!   └────────────────────────────────┘
//! ```
//!
//! The caller's loop is `step`, sleep for as long as it says, `step` again. Nothing runs in between: no thread, no timer.
//!
//! A cycle is as long as half of what was watched so far, within [`FIRST_LOOKS`] and the options' number of windows: the first curve
//! comes soon, and the longest windows as soon as there is time for them.
//!
//! The time that the job loses to our clearing is taken off its clock within the cycle.
//!
//! Departure from the source (section 3): it looks at every Δ and keeps a counter a page. One clearing for several looks costs a job
//! a fraction of that and says the same of a job that is stationary ([`vellum_workset::cycle`]).

use super::accessed::{AccessedBits, thread_cpu};
use super::budget::{Budget, Size};
use super::event::Event;
use super::job::Job;
use super::options::{FIRST_LOOKS, Options, WINDOWS_MAX, WatchError};
use super::source::{Availability, Count, Source, SourceError, SourceKind};
use super::tables::PageTables;
use super::target::Target;
use super::whole::Whole;
use crate::{Bytes, Pid};
use std::time::{Duration, Instant};
use vellum_workset::{Curve, History, cycle};

/// Where a job has so much memory, what it costs to load the program that reads page tables comes back with the first cycle.
const TABLES_FROM: Bytes = Bytes(128 << 20);
/// Bytes of a page in every count of pages.
pub const PAGE_BYTES: u64 = vellum_sys::PAGE as u64;
/// A look comes at a window if it comes within this factor of it.
const REACH: f64 = 1.25;
/// A window that has passed to this part is looked at now rather than a little later.
const NEARLY: f64 = 0.98;
/// The shortest and the longest time between two steps.
const WAIT_MIN: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(500);
/// A sleeping job is taken to use this part of a processor.
const RATE_MIN: f64 = 0.02;
/// The weight of the newest rate.
const RATE_NEWEST: f64 = 0.5;
/// Between cycles, waking up may use one part in this many of the budget: else it would use up what is being saved.
const IDLE_SHARE: f64 = 4.0;
/// The weight of the newest cost of a step.
const STEP_NEWEST: f64 = 0.25;
/// The rate is formed over no less than this.
const RATE_OVER: Duration = Duration::from_millis(20);

/// What one step did.
#[derive(Debug, Default)]
pub struct Step {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// For how long nothing needs to be done; `None` when the job is over.
    pub wait: Option<Duration>,
}

/// What watching has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Our CPU time, the kernel's on our behalf included.
    pub cpu: Duration,
    /// The job's own time that we made it spend, by a count of pages and what one costs.
    pub imposed: Duration,
    /// The longest time that a process could not change its mappings.
    pub longest_stall: Duration,
    /// All of it, as a part of the job's user CPU time.
    pub share: f64,
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

#[derive(Debug)]
struct Cycle {
    began: Duration,
    looks: Vec<(f64, f64)>,
    /// The next window to look at, and how many there will be.
    next: u32,
    windows: u32,
}

/// A watch on a job.
#[derive(Debug)]
pub struct Watcher {
    job: Job,
    source: Box<dyn Source>,
    options: Options,
    history: History,
    whole: Whole,
    cycle: Option<Cycle>,
    budget: Budget,
    latest: Count,
    peak: Bytes,
    most_processes: u64,
    /// The most that its processes had read and written by calls at any look.
    transferred: Bytes,
    longest_stall: Duration,
    began: Instant,
    first_curve: Option<Duration>,
    /// What a step in which nothing is due costs, in seconds.
    step_cost: f64,
    rate: f64,
    rated: (Instant, Duration),
    ended: bool,
}

impl Watcher {
    /// A watch on `target`; it begins with the first [`step`](Self::step).
    ///
    /// # Errors
    /// [`WatchError`] if an option is out of bounds, or if no source can be used.
    pub fn new(target: Target, options: Options) -> Result<Watcher, WatchError> {
        options.check()?;
        let cpu = thread_cpu();
        let source = choose(options.source, &target)?;
        let mut budget = Budget::new(options.budget, source.count_a_page());
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
            latest: Count::default(),
            peak: Bytes(0),
            most_processes: 0,
            transferred: Bytes(0),
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

    /// Does what is due.
    ///
    /// # Errors
    /// [`WatchError::Blind`] if there are processes and not one of them can be looked into.
    pub fn step(&mut self) -> Result<Step, WatchError> {
        if self.ended {
            return Ok(Step::default());
        }
        let cpu = thread_cpu();
        let mut events = self.job.update(false);
        self.note(&mut events);
        self.learn_rate();
        self.account();
        let wait = if self.job.members().is_empty() {
            self.end_cycle(&mut events);
            events.push(Event::Ended);
            self.ended = true;
            None
        } else {
            let clock = self.advance(&mut events)?;
            Some(self.wall(clock.saturating_sub(self.job.clock())))
        };
        let spent = thread_cpu().saturating_sub(cpu);
        if events.is_empty() {
            self.step_cost += STEP_NEWEST * (spent.as_secs_f64() - self.step_cost);
        }
        self.budget.cpu += spent;
        Ok(Step { events, wait })
    }

    /// Ends the watch: what the cycle that runs knows already becomes a sample.
    pub fn finish(&mut self) {
        self.end_cycle(&mut Vec::new());
        self.whole.pass(self.job.clock(), self.job.resident());
    }

    /// The samples so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The mean curve, windows in nanoseconds of user CPU time and pages of [`PAGE_BYTES`]; before the first cycle has ended, what it
    /// knows already. `None` with less than that.
    #[must_use]
    pub fn curve(&self) -> Option<Curve> {
        self.known().mean()
    }

    /// The history; while there is none, that of the cycle that runs.
    pub(crate) fn known(&self) -> History {
        let mut history = self.history.clone();
        if history.samples() == 0
            && let Some(cycle) = &self.cycle
        {
            push(&mut history, cycle);
        }
        history
    }

    /// The source in use.
    #[must_use]
    pub fn source(&self) -> SourceKind {
        self.source.kind()
    }

    /// What the source's counts are not to be trusted in on this machine.
    #[must_use]
    pub fn caveat(&self) -> Option<&'static str> {
        self.source.caveat()
    }

    /// How it watches.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What is watched.
    #[must_use]
    pub fn target(&self) -> &Target {
        self.job.target()
    }

    /// The job's processes, by their names.
    pub fn processes(&self) -> impl Iterator<Item = (Pid, &str)> {
        self.job.members().iter().map(|(pid, member)| (*pid, member.name.as_str()))
    }

    /// The job's user CPU time since the watch began.
    #[must_use]
    pub fn clock(&self) -> Duration {
        self.job.clock()
    }

    /// First references for each nanosecond of user CPU time, in pages: the kernel's minor faults, or the growth of what is resident if that
    /// is more, as where a fault brings a huge page. What is resident already does neither, so these come whatever the memory.
    #[must_use]
    pub fn first_references(&self) -> f64 {
        let clock = self.job.clock().as_nanos() as f64;
        let pages = self.job.minor_faults().max(self.job.grown().0 / PAGE_BYTES);
        if clock > 0.0 { pages as f64 / clock } else { 0.0 }
    }

    /// The job's resident memory: at the last look, or, before the first, by a file that is cheaper to read.
    #[must_use]
    pub fn resident(&self) -> Bytes {
        let resident_of = |member: &super::job::Member| member.resident;
        match self.latest.resident {
            Bytes(0) => self.job.members().values().map(resident_of).sum(),
            counted => counted,
        }
    }

    /// The job's memory at the last look.
    #[must_use]
    pub fn latest(&self) -> Count {
        self.latest
    }

    /// The most that its processes had read and written by calls at any look, files and pipes alike.
    pub(super) fn transferred(&self) -> Bytes {
        self.transferred
    }

    /// The most processes that it had at any time.
    pub(super) fn most_processes(&self) -> u64 {
        self.most_processes
    }

    /// The most resident and swapped memory that was seen at any time.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.peak
    }

    /// In which pages the answer is.
    #[must_use]
    pub fn grain(&self) -> Grain {
        let huge = self.latest.huge.0 as f64 / (self.latest.resident.0.max(1)) as f64;
        match huge {
            huge if huge < MIXED_FROM => Grain::Base,
            huge if huge < HUGE_FROM => Grain::Mixed { huge },
            huge => Grain::Huge { huge },
        }
    }

    /// Wall-clock time from the beginning of the watch to the first curve; `None` while there is none.
    #[must_use]
    pub fn first_curve(&self) -> Option<Duration> {
        self.first_curve
    }

    /// For how long the watch has gone on.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// What it has cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let clock = self.job.clock().as_secs_f64();
        Cost {
            cpu: self.budget.cpu,
            imposed: self.budget.imposed,
            longest_stall: self.longest_stall,
            share: if clock > 0.0 { self.budget.spent().as_secs_f64() / clock } else { 0.0 },
        }
    }

    /// All the time watched, in stretches; before the first cycle has ended, what it knows already.
    pub(super) fn stretches(&self) -> History {
        match self.whole.stretches() {
            none if none.samples() == 0 => self.known(),
            some => some.clone(),
        }
    }

    /// What passed since the last step, and what is held.
    fn account(&mut self) {
        let resident = self.job.resident();
        self.peak = self.peak.max(resident + self.latest.swapped);
        self.most_processes = self.most_processes.max(self.job.members().len() as u64);
        self.whole.pass(self.job.clock(), resident);
    }

    /// What events mean for what is known.
    fn note(&mut self, events: &mut Vec<Event>) {
        let mut another = false;
        for event in &*events {
            match event {
                Event::Left { pid, .. } => self.source.forget(*pid),
                // A process among many that executes something is how jobs work; the only one is another job from then on.
                Event::Executed { pid, .. } => {
                    self.source.forget(*pid);
                    another |= self.job.members().len() == 1;
                }
                _ => {}
            }
        }
        if another {
            self.cycle = None;
            self.history.restart();
            self.whole = Whole::new(self.history.windows().to_vec(), self.job.clock());
            (self.peak, self.transferred, self.latest) = (Bytes(0), Bytes(0), Count::default());
            events.push(Event::Restarted);
        }
    }

    fn learn_rate(&mut self) {
        let (at, clock) = self.rated;
        let wall = at.elapsed();
        if wall >= RATE_OVER {
            let now = self.job.clock().saturating_sub(clock).as_secs_f64() / wall.as_secs_f64();
            self.rate += RATE_NEWEST * (now - self.rate);
            self.rated = (Instant::now(), self.job.clock());
        }
    }

    /// The wall-clock time in which the job's clock will advance by this.
    fn wall(&self, clock: Duration) -> Duration {
        let rate = self.rate.max(RATE_MIN);
        Duration::from_secs_f64(clock.as_secs_f64() / rate).clamp(WAIT_MIN, WAIT_MAX)
    }

    /// Does what is due; the job's time at which there is more to do.
    fn advance(&mut self, events: &mut Vec<Event>) -> Result<Duration, WatchError> {
        if let Some(cycle) = &self.cycle {
            let due = cycle.began + self.window(cycle.next);
            let now = self.job.clock();
            let net = now.saturating_sub(cycle.began);
            if net < self.window(cycle.next).mul_f64(NEARLY) {
                return Ok(due);
            }
            self.look(events)?;
            let ends = self.cycle.as_ref().is_none_or(|cycle| cycle.next >= cycle.windows);
            if !ends {
                let cycle = self.cycle.as_ref().map_or(now, |cycle| cycle.began + self.window(cycle.next));
                return Ok(cycle);
            }
            self.end_cycle(events);
        }
        if self.latest.resident == Bytes(0) {
            // How much of it is in huge pages, which cost next to nothing, is worth a count of its own.
            let affordable = self.budget.count_affordable_at(self.size());
            if self.job.clock() < affordable {
                return Ok(affordable.max(self.next_idle()));
            }
            self.count(events)?;
        }
        let windows = self.next_windows();
        let length = self.window(windows - 1);
        let affordable = self.budget.affordable_at(self.size(), windows, length);
        if self.job.clock() < affordable {
            return Ok(affordable.max(self.next_idle()));
        }
        self.clear(windows, events)?;
        Ok(self.job.clock() + self.window(0))
    }

    /// The job's time at which to wake up next though nothing can be paid for yet.
    fn next_idle(&self) -> Duration {
        self.job.clock() + Duration::from_secs_f64(self.step_cost * IDLE_SHARE / self.options.budget)
    }

    /// How many windows the next cycle looks at.
    fn next_windows(&self) -> u32 {
        let half = self.job.clock() / 2;
        let fitting = (FIRST_LOOKS..self.options.windows).take_while(|window| self.window(*window) <= half);
        FIRST_LOOKS + fitting.count() as u32
    }

    fn window(&self, number: u32) -> Duration {
        self.options.delta * (1 << number.min(WINDOWS_MAX))
    }

    fn size(&self) -> Size {
        // What it has now, of which as much is in huge pages as at the last look.
        let resident: Bytes = self.job.members().values().map(|member| member.resident).sum();
        let huge = self.latest.huge.0 as f64 / self.latest.resident.0.max(1) as f64;
        let referenced = self.history.mean().map(|curve| curve.last().pages);
        let entries = entries(resident, Bytes((resident.0 as f64 * huge) as u64));
        Size {
            entries,
            processes: self.job.members().len() as f64,
            imposed: self.source.penalty_a_page().mul_f64(referenced.unwrap_or(entries).min(entries)),
        }
    }

    fn clear(&mut self, windows: u32, events: &mut Vec<Event>) -> Result<(), WatchError> {
        // Who is not listed now would count all of its references as if they were new.
        let mut listed = self.job.update(true);
        self.note(&mut listed);
        events.append(&mut listed);
        let entries = self.size().entries;
        let mut cpu = Duration::ZERO;
        self.every_process(events, |source, pid| {
            source.clear(pid).map(|spent| {
                cpu += spent.cpu;
                spent.stall
            })
        })?
        .into_iter()
        .for_each(|stall| self.longest_stall = self.longest_stall.max(stall));
        self.budget.cleared(entries, cpu);
        let began = self.midway(events);
        self.cycle = Some(Cycle { began, looks: Vec::new(), next: 0, windows });
        events.push(Event::Cleared);
        Ok(())
    }

    /// What all processes have referenced since they were cleared.
    fn count(&mut self, events: &mut Vec<Event>) -> Result<Count, WatchError> {
        let mut cpu = Duration::ZERO;
        let mut sum = Count::default();
        self.every_process(events, |source, pid| {
            source.count(pid).map(|(count, spent)| {
                cpu += spent.cpu;
                count
            })
        })?
        .into_iter()
        .for_each(|count| sum += count);
        self.budget.counted(entries(sum.resident, sum.huge), cpu);
        self.latest = sum;
        let transferred: u64 = self.job.members().keys().filter_map(|pid| transferred(*pid)).sum();
        self.transferred = self.transferred.max(Bytes(transferred));
        self.peak = self.peak.max(sum.resident + sum.swapped);
        Ok(sum)
    }

    fn look(&mut self, events: &mut Vec<Event>) -> Result<(), WatchError> {
        let sum = self.count(events)?;
        let penalty =
            self.source.penalty_a_page().mul_f64(entries(sum.referenced, sum.huge.min(sum.referenced)));
        let pages = sum.referenced.0 / PAGE_BYTES;
        let clock = self.midway(events);
        let had_curve = self.first_curve.is_some();
        let Some(cycle) = &mut self.cycle else { return Ok(()) };
        let window = clock.saturating_sub(cycle.began).saturating_sub(penalty);
        cycle.looks.push((window.as_nanos() as f64, pages as f64));
        // Windows that have passed meanwhile are given by this look.
        let passed = |number: u32| self.options.delta * (1 << number);
        while cycle.next < cycle.windows
            && passed(cycle.next).mul_f64(NEARLY) <= clock.saturating_sub(cycle.began)
        {
            cycle.next += 1;
        }
        events.push(Event::Looked { window, pages });
        if !had_curve && self.known().mean().is_some() {
            self.first_curve = Some(self.began.elapsed());
        }
        Ok(())
    }

    /// The job's time halfway between its last update and now: pages were gone through one by one meanwhile.
    fn midway(&mut self, events: &mut Vec<Event>) -> Duration {
        let before = self.job.clock();
        let mut more = self.job.update(false);
        self.note(&mut more);
        events.append(&mut more);
        before + self.job.clock().saturating_sub(before) / 2
    }

    fn end_cycle(&mut self, events: &mut Vec<Event>) {
        let Some(cycle) = self.cycle.take() else { return };
        let touched = cycle.looks.last().map_or(0.0, |(_, pages)| *pages);
        let huge = self.latest.huge.min(self.latest.referenced);
        let touched = entries(Bytes(touched as u64 * PAGE_BYTES), huge);
        self.budget.imposed += self.source.penalty_a_page().mul_f64(touched);
        self.whole.cycle(at_common_windows(&self.history, &cycle), self.job.resident());
        if push(&mut self.history, &cycle) {
            events.push(Event::Cycle { samples: self.history.samples() });
        }
    }

    /// Does the same to each process that can be looked into.
    fn every_process<T>(
        &mut self,
        events: &mut Vec<Event>,
        mut work: impl FnMut(&mut dyn Source, Pid) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, WatchError> {
        let pids: Vec<Pid> =
            self.job.members().iter().filter(|(_, member)| member.open).map(|(pid, _)| *pid).collect();
        let (mut done, mut why) = (Vec::with_capacity(pids.len()), None);
        for pid in pids {
            match work(self.source.as_mut(), pid) {
                Ok(value) => done.push(value),
                Err(SourceError::Ended(_)) => {}
                Err(error) => {
                    self.job.shut(pid);
                    let said = error.to_string();
                    events.push(Event::Lost { pid, why: said.clone() });
                    why = Some(said);
                }
            }
        }
        match why {
            Some(why) if done.is_empty() => Err(WatchError::Blind(why)),
            _ => Ok(done),
        }
    }
}

/// The source asked for; else the one that will cost less, of those that can be used.
fn choose(asked: Option<SourceKind>, target: &Target) -> Result<Box<dyn Source>, WatchError> {
    let tables = match asked {
        Some(kind) => kind == SourceKind::PageTables,
        None => target.resident() >= TABLES_FROM,
    };
    if tables && SourceKind::AccessedBits.availability() == Availability::Usable {
        match (PageTables::open(), asked) {
            (Ok(source), _) => return Ok(Box::new(source)),
            (Err(why), Some(kind)) => return Err(WatchError::Source { kind, why }),
            (Err(_), None) => {}
        }
    }
    let kind = asked.unwrap_or(SourceKind::AccessedBits);
    let why = match kind.availability() {
        Availability::Usable => return Ok(Box::new(AccessedBits::default())),
        Availability::NotRead => "this machine has it, but this version does not read it".to_owned(),
        Availability::Absent(why) => why,
    };
    Err(WatchError::Source { kind, why })
}

/// What a process has read and written by calls since it began; `None` if we may not know.
fn transferred(pid: Pid) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let number =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(number("rchar:")? + number("wchar:")?)
}

/// Page-table entries that map this much, of which `huge` is in huge pages.
fn entries(bytes: Bytes, huge: Bytes) -> f64 {
    let small = bytes.0.saturating_sub(huge.0) / PAGE_BYTES;
    small as f64 + huge.0 as f64 / vellum_sys::HUGE as f64
}

/// What a cycle found at the windows of a history, as far as it went.
fn at_common_windows(history: &History, cycle: &Cycle) -> Vec<f64> {
    let mut pages = cycle::at_windows(&cycle.looks, history.windows(), REACH);
    // Between two looks a curve bends. Straight lines are right only where a look came in time.
    let (times, counts): (Vec<f64>, Vec<f64>) = cycle.looks.iter().copied().unzip();
    if let Ok(curve) = Curve::of_sets(&times, &counts) {
        for (pages, window) in pages.iter_mut().zip(history.windows()) {
            if let Some(point) = curve.at(*window) {
                *pages = point.pages;
            }
        }
    }
    pages
}

/// The cycle as a sample; false if it knows too little.
fn push(history: &mut History, cycle: &Cycle) -> bool {
    let pages = at_common_windows(history, cycle);
    let length = cycle.looks.last().map_or(0.0, |(window, _)| *window);
    let before = history.samples();
    history.push(length, &pages, &[]);
    history.samples() > before
}
