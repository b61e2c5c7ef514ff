//! Watching a job: cycles of one clearing and several looks, paced by a budget, gathered into a history.
//!
//! ```text
//! step ─▶ Job::update ─▶ due? ─┬─ cycle can be paid for ─▶ clear every process
//!   ▲                         ├─ a window has passed ───▶ count every process ─▶ (T, w)
//!   │ wait                    └─ last window ──────────▶ cycle::at_windows ─▶ History
//!   └────────────────────────────────┘
//! ```
//!
//! The caller's loop is `step`, sleep for as long as it says, `step` again. Nothing of ours runs in between but what a source waits for.
//!
//! A cycle is as long as half of what was watched so far, within [`FIRST_LOOKS`] and the options' number of windows: the first curve
//! comes soon, and the longest windows as soon as there is time for them.
//!
//! The time that the job loses to our clearing is taken off its clock within the cycle.
//!
//! A source may allow fewer looks to a clearing than a cycle has ([`Source::looks`]). Then it is cleared again within the cycle, and each look is as long as
//! the time since the last clearing: windows that follow each other, of a job that is taken to be stationary over the cycle, as it is anyhow.
//!
//! Departure from the source (section 3): it looks at every Δ and keeps a counter a page. One clearing for several looks costs a job
//! a fraction of that and says the same of a job that is stationary ([`vellum_workset::cycle`]).

use super::accessed::thread_cpu;
use super::budget::{Budget, Plan, Size};
use super::choice::choose;
use super::event::Event;
use super::job::Job;
use super::options::{FIRST_LOOKS, Options, WINDOWS_MAX, WatchError};
use super::source::{Count, Done, Source, SourceError, SourceKind};
use super::target::Target;
use super::whole::Whole;
use crate::{Bytes, Pid};
use std::time::{Duration, Instant};
use vellum_workset::{Curve, History, cycle};

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
    /// The job's time at the last clearing.
    began: Duration,
    /// How long before each look the clearing was, and what was referenced since, with how many entries that was.
    looks: Vec<(f64, f64)>,
    /// Looks since the last clearing.
    looked: u32,
    /// Entries referenced at the last look.
    touched: f64,
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
            Some(self.advance(&mut events)?)
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

    /// The part of a processor that the job uses, lately; more than 1 for one that uses several.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate.max(RATE_MIN)
    }

    /// Whether a cycle is under way: what others then do to accessed bits is taken for the job's silence.
    #[must_use]
    pub fn in_cycle(&self) -> bool {
        self.cycle.is_some()
    }

    /// The wall-clock time in which the job's clock will advance by this.
    fn wall(&self, clock: Duration) -> Duration {
        Duration::from_secs_f64(clock.as_secs_f64() / self.rate())
    }

    /// Does what is due; for how long, in wall-clock time, there is nothing more to do.
    fn advance(&mut self, events: &mut Vec<Event>) -> Result<Duration, WatchError> {
        if let Some(cycle) = &self.cycle {
            let since = self.job.clock().saturating_sub(cycle.began);
            let early = match self.source.is_timed() {
                true => !self.source.to_come().is_zero(),
                false => since < self.window(cycle.next).mul_f64(NEARLY),
            };
            if early {
                return Ok(self.until_look());
            }
            self.look(events)?;
            match &self.cycle {
                Some(cycle) if cycle.next < cycle.windows => {
                    if cycle.looked >= self.source.looks() {
                        self.clear(cycle.windows, events)?;
                    }
                    return Ok(self.until_look());
                }
                _ => self.end_cycle(events),
            }
        }
        if self.latest.resident == Bytes(0) {
            // How much of it is in huge pages, which cost next to nothing, is worth a count of its own.
            let affordable = self.budget.count_affordable_at(self.size());
            if self.job.clock() < affordable {
                return Ok(self.until(affordable.max(self.next_idle())));
            }
            self.latest = self.asked(events, |source, job| source.size(job))?.unwrap_or_default().count;
        }
        let windows = self.next_windows();
        let affordable = self.affordable_at(windows);
        if self.job.clock() < affordable {
            return Ok(self.until(affordable.max(self.next_idle())));
        }
        self.clear(windows, events)?;
        Ok(self.until_look())
    }

    /// Wall-clock time until the job's clock will be at this.
    fn until(&self, clock: Duration) -> Duration {
        self.wall(clock.saturating_sub(self.job.clock())).clamp(WAIT_MIN, WAIT_MAX)
    }

    /// Wall-clock time until the next look.
    fn until_look(&mut self) -> Duration {
        match &self.cycle {
            Some(_) if self.source.is_timed() => self.source.to_come().clamp(WAIT_MIN, WAIT_MAX),
            Some(cycle) => self.until(cycle.began + self.window(cycle.next)),
            None => WAIT_MIN,
        }
    }

    /// The job's time at which a cycle of so many windows can be paid for.
    fn affordable_at(&self, windows: u32) -> Duration {
        // Each clearing's last look is the longest, and the cycle is all of these.
        let looks = self.source.looks().min(windows);
        let ends = (0..windows).filter(|window| (window + 1) % looks == 0 || window + 1 == windows);
        let (clearings, length) = ends
            .fold((0, Duration::ZERO), |(count, length), window| (count + 1, length + self.window(window)));
        let looks_clear = self.source.looks_clear();
        self.budget.affordable_at(self.size(), Plan { looks: windows, clearings, looks_clear, length })
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
        let entries = self.source.visits(entries(resident, Bytes((resident.0 as f64 * huge) as u64)));
        Size {
            entries,
            processes: self.job.members().len() as f64,
            imposed: self.source.penalty_a_page().mul_f64(referenced.unwrap_or(entries).min(entries)),
        }
    }

    /// Clears the source: a cycle of so many windows begins, or goes on with another clearing.
    fn clear(&mut self, windows: u32, events: &mut Vec<Event>) -> Result<(), WatchError> {
        // Who is not listed now would count all of its references as if they were new.
        let mut listed = self.job.update(true);
        self.note(&mut listed);
        events.append(&mut listed);
        let entries = self.size().entries;
        let next = self.cycle.as_ref().map_or(0, |cycle| cycle.next);
        let ahead = self.wall(self.window(next));
        self.impose();
        let Some(done) = self.asked(events, |source, job| source.clear(job, ahead))? else { return Ok(()) };
        self.budget.cleared(entries, done.spent.cpu + done.spent.elsewhere);
        let midway = self.midway(events);
        // A source that takes its looks itself has begun at the end of the clearing; others have gone from page to page meanwhile.
        let began = if self.source.is_timed() { self.job.clock() } else { midway };
        let looks = self.cycle.take().map_or_else(Vec::new, |cycle| cycle.looks);
        self.cycle = Some(Cycle { began, looks, looked: 0, touched: 0.0, next, windows });
        events.push(Event::Cleared);
        Ok(())
    }

    /// The last clearing's cost to the job is known now.
    fn impose(&mut self) {
        if let Some(cycle) = &mut self.cycle {
            let clearings = clearings(self.source.as_ref(), cycle.looked);
            self.budget.imposed += self.source.penalty_a_page().mul_f64(cycle.touched * f64::from(clearings));
            cycle.touched = 0.0;
        }
    }

    /// What all processes have referenced since they were cleared; `None` if that cannot be told any more.
    fn count(&mut self, events: &mut Vec<Event>) -> Result<Option<Count>, WatchError> {
        let Some(done) = self.asked(events, |source, job| source.count(job))? else { return Ok(None) };
        let sum = done.count;
        let visited = self.source.visits(entries(sum.resident, sum.huge));
        self.budget.counted(visited, done.spent.cpu + done.spent.elsewhere);
        self.latest = sum;
        let transferred: u64 = self.job.members().keys().filter_map(|pid| transferred(*pid)).sum();
        self.transferred = self.transferred.max(Bytes(transferred));
        self.peak = self.peak.max(sum.resident + sum.swapped);
        Ok(Some(sum))
    }

    fn look(&mut self, events: &mut Vec<Event>) -> Result<(), WatchError> {
        // A look that the kernel has taken was at a time of its own, which has just come; others are taken meanwhile.
        let taken = self.source.is_timed().then(|| self.job.clock());
        let Some(sum) = self.count(events)? else {
            self.impose();
            self.cycle = None;
            return Ok(());
        };
        let touched = self.source.visits(entries(sum.referenced, sum.huge.min(sum.referenced)));
        let pages = sum.referenced.0 / PAGE_BYTES;
        let passed = self.midway(events);
        let clock = taken.unwrap_or(passed);
        let had_curve = self.first_curve.is_some();
        let Some(cycle) = &mut self.cycle else { return Ok(()) };
        let clearings = clearings(self.source.as_ref(), cycle.looked);
        let penalty = self.source.penalty_a_page().mul_f64(touched * f64::from(clearings));
        (cycle.touched, cycle.looked) = (touched, cycle.looked + 1);
        let window = clock.saturating_sub(cycle.began).saturating_sub(penalty);
        let nanos = window.as_nanos() as f64;
        // Where a clearing came between, a stretch in which the job ran less than it was expected to gives a window that was looked at before.
        if cycle.looks.last().is_none_or(|(before, _)| *before < nanos) {
            cycle.looks.push((nanos, pages as f64));
        }
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
        self.impose();
        let Some(cycle) = self.cycle.take() else { return };
        self.whole.cycle(at_common_windows(&self.history, &cycle), self.job.resident());
        if push(&mut self.history, &cycle) {
            events.push(Event::Cycle { samples: self.history.samples() });
        }
    }

    /// Asks the source about the processes that can be looked into; `None` if what it was asked cannot be told any more.
    fn asked(
        &mut self,
        events: &mut Vec<Event>,
        question: impl FnOnce(&mut dyn Source, &[Pid]) -> Result<Done, SourceError>,
    ) -> Result<Option<Done>, WatchError> {
        let pids: Vec<Pid> =
            self.job.members().iter().filter(|(_, member)| member.open).map(|(pid, _)| *pid).collect();
        let done = match question(self.source.as_mut(), &pids) {
            Ok(done) => done,
            Err(SourceError::Spoiled(why)) => {
                events.push(Event::Spoiled { why });
                return Ok(None);
            }
            Err(error) => return Err(WatchError::Blind(error.to_string())),
        };
        let mut why = None;
        for (pid, error) in &done.lost {
            self.job.shut(*pid);
            let said = error.to_string();
            events.push(Event::Lost { pid: *pid, why: said.clone() });
            why = Some(said);
        }
        // `step` adds up what this thread spends.
        self.budget.cpu += done.spent.elsewhere;
        self.longest_stall = self.longest_stall.max(done.spent.stall);
        match why {
            Some(why) if done.reached == 0 => Err(WatchError::Blind(why)),
            _ => Ok(Some(done)),
        }
    }
}

/// How often the job's bits have been taken since a clearing, that one included, before another look.
fn clearings(source: &dyn Source, looked: u32) -> u32 {
    if source.looks_clear() { 1 + looked } else { 1 }
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
