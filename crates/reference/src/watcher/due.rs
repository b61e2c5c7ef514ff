//! Performs the operation that is due in a step of a watch: a clearing of accessed bits, a look (count of
//! references), or the end of a cycle (one clearing and its looks). The end adds a sample to the history.
//!
//! Invariant: a cycle begins with a successful clearing; a cycle that lost its references is dropped whole.

use super::{AGES, IDLE_SHARE, PAGE_BYTES, RATE_LEAST, WAIT_MAX, WAIT_MIN, WAKE_MAX, Watcher};
use crate::budget::{Passed, Plan, Size};
use crate::event::Event;
use crate::options::{FIRST_LOOKS, WINDOWS_MAX, WatchError};
use crate::source::{Count, Done, REARM, Source, SourceError, SourceKind};
use std::time::Duration;
use vellum_kernel::{Bytes, Pid};
use vellum_workset::{Curve, History, cycle};

/// A look comes at a window if it comes within this factor of it.
const REACH: f64 = 1.25;
/// A window that has passed to this part is looked at now rather than a little later.
const NEARLY: f64 = 0.98;
/// A job that uses less than this part of a processor hardly runs …
const HARDLY: f64 = 0.05;
/// … and is not looked at more often than this many times for each time that waking up is paid for.
const HASTE: u32 = 4;

#[derive(Debug)]
pub(super) struct Cycle {
    began: Duration,
    /// For each look the time since the clearing, and the memory referenced in it.
    looks: Vec<(f64, f64)>,
    looked: u32,
    touched: f64,
    next: u32,
    windows: u32,
}

enum Counted {
    Sum(Count),
    /// The references since the clearing can no longer be determined.
    Spoiled,
    /// All processes are about to end, and have no memory left.
    Gone,
}

impl Watcher {
    pub(super) fn advance(&mut self, events: &mut Vec<Event>) -> Result<Duration, WatchError> {
        if let Some(cycle) = &self.cycle {
            let since = self.job.clock.saturating_sub(cycle.began);
            let early = since < self.window(cycle.next).mul_f64(NEARLY);
            if !early || self.age_due_in().is_some_and(|due| due.is_zero()) {
                self.look(early, events)?;
            } else if !self.is_in_vain() {
                return Ok(self.until_look());
            }
            match &self.cycle {
                Some(cycle) if cycle.next < cycle.windows && !self.is_in_vain() => {
                    if cycle.looked >= self.source.kind().looks() {
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
            if !self.passed().reaches(affordable) {
                return Ok(self.until_paid(affordable));
            }
            if let Some(done) = self.asked(events, |source, job| source.size(job))? {
                self.latest = done.count;
            }
        }
        let windows = self.next_windows();
        let affordable = self.budget.affordable_at(self.size(), self.plan(windows));
        if !self.passed().reaches(affordable) {
            let wait = self.until_paid(affordable);
            let now = self.elapsed();
            let Some(due) = self.ages.due_in(now, None).filter(|_| self.ages.wants(now)) else {
                return Ok(wait);
            };
            let paid = self.passed().reaches(self.budget.count_affordable_at(self.size()));
            if due.is_zero() && paid {
                self.look_at_age(events)?;
                return Ok(WAIT_MIN);
            }
            return Ok(if due.is_zero() { wait } else { self.asleep(due).min(wait) });
        }
        self.clear(windows, events)?;
        Ok(self.until_look())
    }
    /// Wall-clock time until the job's clock or the time that has passed will pay for something.
    fn until_paid(&self, due: Passed) -> Duration {
        let now = self.passed();
        let by_clock = self.wall(due.clock.saturating_sub(now.clock));
        let wait = by_clock.min(due.wall.saturating_sub(now.wall));
        self.asleep(wait.max(self.wake_every()))
    }
    fn until_look(&mut self) -> Duration {
        let of_window = match &self.cycle {
            Some(cycle) => {
                let end = cycle.began + self.window(cycle.next);
                self.wall(end.saturating_sub(self.job.clock))
            }
            None => WAIT_MIN,
        };
        self.asleep(self.age_due_in().map_or(of_window, |due| due.min(of_window)))
    }
    /// This wait, within bounds: short enough to notice that a job has ended or runs again, and long enough
    /// that waking up costs little.
    fn asleep(&self, wait: Duration) -> Duration {
        let now = self.passed();
        let hardly = now.clock.as_secs_f64() < now.wall.as_secs_f64() * HARDLY;
        let least = if hardly { (self.wake_every() / HASTE).max(WAIT_MIN) } else { WAIT_MIN };
        wait.clamp(least, WAIT_MAX.max(self.wake_every()))
    }
    fn wake_every(&self) -> Duration {
        let a_second = self.budget.a_second(self.rate.max(RATE_LEAST));
        Duration::try_from_secs_f64(self.step_cost * IDLE_SHARE / a_second).unwrap_or(WAKE_MAX).min(WAKE_MAX)
    }
    /// Wall-clock time until a look is due for an age, which no look of the cycle will give.
    fn age_due_in(&self) -> Option<Duration> {
        let cycle = self.cycle.as_ref()?;
        let window = (cycle.began + self.window(cycle.next)).saturating_sub(self.job.clock);
        self.ages.due_in(self.elapsed(), Some(self.wall(window)))
    }
    /// True if the job runs so little that the next window is further off than the longest age, and all ages
    /// are measured.
    fn is_in_vain(&self) -> bool {
        let Some(cycle) = &self.cycle else { return false };
        let window = (cycle.began + self.window(cycle.next)).saturating_sub(self.job.clock);
        let past = self.ages.are_past(self.elapsed());
        past && AGES.last().is_some_and(|longest| self.wall(window) > *longest)
    }
    /// The user CPU time of a run of this job that is long enough for a recommendation: a round figure, by
    /// its peak.
    pub(crate) fn enough(&self) -> Duration {
        let entries = entries(self.peak(), Bytes(0));
        // Half of its pages are taken to be in use.
        let imposed = REARM.mul_f64(entries / 2.0);
        let size = Size { entries, processes: 1.0, imposed };
        let plan = Plan { looks: FIRST_LOOKS, ..self.plan(FIRST_LOOKS) };
        self.budget.enough(self.source.kind().count_a_page(), size, plan, self.window(1))
    }
    fn plan(&self, windows: u32) -> Plan {
        // Each clearing's last look is the longest, and the cycle is all of these.
        let looks = self.source.kind().looks().min(windows);
        let ends = (0..windows).filter(|window| (window + 1) % looks == 0 || window + 1 == windows);
        let (clearings, clock) = ends
            .fold((0, Duration::ZERO), |(count, length), window| (count + 1, length + self.window(window)));
        let looks_clear = self.source.kind().looks_clear();
        let wall = AGES.last().map_or(Duration::ZERO, |longest| self.wall(clock).min(*longest));
        let of_ages = if self.tells_ages() {
            let first = self.wall(self.window(0));
            AGES.iter().filter(|age| **age < first).count() as u32
        } else {
            0
        };
        let length = Passed { clock, wall };
        Plan { looks: windows + of_ages, clearings, looks_clear, length }
    }
    /// True if looks at any time after a clearing count the memory touched since.
    fn tells_ages(&self) -> bool {
        self.source.kind().looks() == u32::MAX
    }
    fn next_windows(&self) -> u32 {
        let half = self.job.clock / 2;
        let fitting = (FIRST_LOOKS..self.options.windows).take_while(|window| self.window(*window) <= half);
        FIRST_LOOKS + fitting.count() as u32
    }
    fn window(&self, number: u32) -> Duration {
        self.options.delta * (1 << number.min(WINDOWS_MAX))
    }
    fn size(&self) -> Size {
        // Its present memory, with the huge pages of the last look.
        let resident: Bytes = self.job.members.values().map(|member| member.resident).sum();
        let huge = self.latest.huge.0 as f64 / self.latest.resident.0.max(1) as f64;
        let referenced = self.history.mean().map(|curve| curve.last().pages);
        let entries = entries(resident, Bytes((resident.0 as f64 * huge) as u64));
        Size {
            entries,
            processes: self.job.members.len() as f64,
            imposed: REARM.mul_f64(referenced.unwrap_or(entries).min(entries)),
        }
    }
    /// Clears the source: a cycle of `windows` windows begins, or goes on with another clearing.
    fn clear(&mut self, windows: u32, events: &mut Vec<Event>) -> Result<(), WatchError> {
        // A process not listed now would later count all of its references as if they were new.
        let mut listed = self.job.update(true);
        self.note(&mut listed);
        events.append(&mut listed);
        let entries = self.size().entries;
        let next = self.cycle.as_ref().map_or(0, |cycle| cycle.next);
        self.impose();
        let Some(done) = self.asked(events, |source, job| source.clear(job))? else {
            self.cycle = None;
            self.ages.dropped();
            return Ok(());
        };
        if self.tells_ages() {
            self.ages.cleared(self.elapsed());
        }
        self.budget.cleared(entries, done.spent.cpu);
        let began = self.midway(events);
        let looks = self.cycle.take().map_or_else(Vec::new, |cycle| cycle.looks);
        self.cycle = Some(Cycle { began, looks, looked: 0, touched: 0.0, next, windows });
        events.push(Event::Cleared);
        Ok(())
    }
    fn impose(&mut self) {
        if let Some(cycle) = &mut self.cycle {
            let clearings = clearings(self.source.kind(), cycle.looked);
            self.budget.imposed += REARM.mul_f64(cycle.touched * f64::from(clearings));
            cycle.touched = 0.0;
        }
    }
    fn count(&mut self, events: &mut Vec<Event>) -> Result<Counted, WatchError> {
        let Some(done) = self.asked(events, |source, job| source.count(job))? else {
            return Ok(Counted::Spoiled);
        };
        if done.reached == 0 {
            return Ok(Counted::Gone);
        }
        let sum = done.count;
        self.budget.counted(entries(sum.resident, sum.huge), done.spent.cpu);
        self.latest = sum;
        let by_calls = self.job.members.keys().filter_map(|pid| transferred(*pid));
        let (read, written) = by_calls.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.transferred = self.transferred.max(Bytes(read + written));
        self.read = self.read.max(Bytes(read));
        self.read_before.get_or_insert(Bytes(read));
        self.charged.look(&self.job.target, self.job.members.keys().copied());
        self.peak = self.peak.max(sum.resident + sum.swapped);
        let private = sum.resident.0.saturating_sub(sum.shared.0);
        let untouched = Bytes(private.saturating_sub(sum.referenced.0));
        self.ages.looked(self.elapsed(), sum.referenced, untouched);
        Ok(Counted::Sum(sum))
    }
    /// Counts the memory not touched since the last clearing, whose cycle has ended.
    fn look_at_age(&mut self, events: &mut Vec<Event>) -> Result<(), WatchError> {
        match self.count(events)? {
            Counted::Sum(_) => self.aged(events),
            Counted::Spoiled | Counted::Gone => self.ages.dropped(),
        }
        Ok(())
    }
    fn aged(&mut self, events: &mut Vec<Event>) {
        if let Some(untouched) = self.ages.since(self.elapsed()) {
            events.push(Event::Aged { untouched });
        }
    }
    /// Takes a look of the cycle: at a window, or, if it is too `early` for that, at an age.
    fn look(&mut self, early: bool, events: &mut Vec<Event>) -> Result<(), WatchError> {
        let sum = match self.count(events)? {
            Counted::Sum(sum) => sum,
            Counted::Gone => {
                // What the cycle has found is kept.
                self.end_cycle(events);
                return Ok(());
            }
            Counted::Spoiled => {
                self.impose();
                self.cycle = None;
                self.ages.dropped();
                return Ok(());
            }
        };
        let touched = entries(sum.referenced, sum.huge.min(sum.referenced));
        let pages = sum.referenced.0 / PAGE_BYTES;
        let clock = self.midway(events);
        let Some(cycle) = &mut self.cycle else { return Ok(()) };
        let clearings = clearings(self.source.kind(), cycle.looked);
        let penalty = REARM.mul_f64(touched * f64::from(clearings));
        (cycle.touched, cycle.looked) = (touched, cycle.looked + 1);
        let window = clock.saturating_sub(cycle.began).saturating_sub(penalty);
        let nanos = window.as_nanos() as f64;
        // Where a clearing came between, a stretch in which the job ran less than it was expected to gives a
        // window that was looked at before.
        if cycle.looks.last().map_or(0.0, |(before, _)| *before) < nanos {
            cycle.looks.push((nanos, pages as f64));
        }
        // Windows that have passed meanwhile are given by this look.
        let passed = |number: u32| self.options.delta * (1 << number);
        while cycle.next < cycle.windows
            && passed(cycle.next).mul_f64(NEARLY) <= clock.saturating_sub(cycle.began)
        {
            cycle.next += 1;
        }
        match early {
            true => self.aged(events),
            false => events.push(Event::Looked { window, pages }),
        }
        if self.budget.cycles == 0 && self.known().mean().is_some() {
            self.budget.cycles = 1;
            self.first_curve.get_or_insert(self.began.elapsed());
        }
        Ok(())
    }
    /// The job's time halfway between its last update and now, because pages were visited one by one in
    /// between.
    pub(super) fn midway(&mut self, events: &mut Vec<Event>) -> Duration {
        let before = self.job.clock;
        let mut more = self.job.update(false);
        self.note(&mut more);
        events.append(&mut more);
        before + self.job.clock.saturating_sub(before) / 2
    }
    pub(super) fn end_cycle(&mut self, events: &mut Vec<Event>) {
        self.impose();
        let Some(cycle) = self.cycle.take() else { return };
        self.whole.cycle(at_common_windows(&self.history, &cycle), self.held());
        if push(&mut self.history, &cycle) {
            self.budget.cycles = self.history.samples();
            events.push(Event::Cycle { samples: self.history.samples() });
        }
    }
    /// Runs the source on the processes that can be inspected; `None` if the cycle is spoiled.
    fn asked(
        &mut self,
        events: &mut Vec<Event>,
        question: impl FnOnce(&mut dyn Source, &[Pid]) -> Result<Done, SourceError>,
    ) -> Result<Option<Done>, WatchError> {
        let pids: Vec<Pid> =
            self.job.members.iter().filter(|(_, member)| member.open).map(|(pid, _)| *pid).collect();
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
        self.longest_stall = self.longest_stall.max(done.spent.stall);
        match why {
            Some(why) if done.reached == 0 => Err(WatchError::Blind(why)),
            _ => Ok(Some(done)),
        }
    }
}

/// The number of times that the job's bits were cleared, the clearing included, before another look.
fn clearings(source: SourceKind, looked: u32) -> u32 {
    if source.looks_clear() { 1 + looked } else { 1 }
}

/// Bytes read and written by calls since the process began; `None` if they may not be read.
fn transferred(pid: Pid) -> Option<(u64, u64)> {
    pid.io(["rchar", "wchar"]).map(|[read, written]| (read, written))
}

/// Page-table entries that map this much, of which `huge` is in huge pages.
fn entries(bytes: Bytes, huge: Bytes) -> f64 {
    let small = bytes.0.saturating_sub(huge.0) / PAGE_BYTES;
    small as f64 + huge.0 as f64 / vellum_sys::HUGE as f64
}

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

pub(super) fn push(history: &mut History, cycle: &Cycle) -> bool {
    let pages = at_common_windows(history, cycle);
    let length = cycle.looks.last().map_or(0.0, |(window, _)| *window);
    let before = history.samples();
    history.push(length, &pages, &[]);
    history.samples() > before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::target::Target;
    use std::process::{Child, Command};

    /// A source of a process that has just given up its memory.
    #[derive(Debug)]
    struct Gone;

    impl Source for Gone {
        fn kind(&self) -> SourceKind {
            SourceKind::AccessedBits
        }

        fn clear(&mut self, _: &[Pid]) -> Result<Done, SourceError> {
            Ok(Done::default())
        }

        fn count(&mut self, _: &[Pid]) -> Result<Done, SourceError> {
            Ok(Done::default())
        }

        fn discard(&mut self, _: Pid) {}

        fn caveat(&self) -> Option<&'static str> {
            None
        }
    }

    /// A process that does nothing, ended when dropped.
    struct Idle(Child);

    impl Idle {
        fn start() -> Idle {
            Idle(Command::new("sleep").arg("300").spawn().unwrap())
        }

        fn watcher(&self) -> Option<Watcher> {
            let target = Target::process(Pid(self.0.id() as i32)).unwrap();
            let watcher = Watcher::new(target, Options::default()).ok();
            if watcher.is_none() {
                vellum_skip::skip("accessed bits cannot be read here");
            }
            watcher
        }
    }

    impl Drop for Idle {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_look_at_memory_that_is_gone_loses_nothing_of_the_cycle() {
        let idle = Idle::start();
        let Some(mut watcher) = idle.watcher() else { return };
        watcher.step().unwrap();
        let (held, mut events) = (watcher.latest(), Vec::new());
        watcher.source = Box::new(Gone);
        let looks = vec![(1e8, 100.0), (2e8, 150.0), (4e8, 170.0)];
        let began = Duration::ZERO;
        watcher.cycle = Some(Cycle { began, looks, looked: 3, touched: 0.0, next: 3, windows: 4 });
        watcher.look(false, &mut events).unwrap();
        assert_eq!(events, [Event::Cycle { samples: 1 }]);
        assert_eq!(watcher.latest(), held, "it did not shrink to nothing");
        assert_eq!(watcher.curve().unwrap().last().pages, 170.0);
    }

    #[test]
    fn a_job_that_hardly_runs_is_seldom_looked_at() {
        let idle = Idle::start();
        let Some(mut watcher) = idle.watcher() else { return };
        watcher.step().unwrap();
        // As if a step took 100 µs, and the job had not run for an hour.
        (watcher.step_cost, watcher.rate) = (1e-4, 0.0);
        watcher.began = watcher.began.checked_sub(Duration::from_secs(3600)).unwrap_or(watcher.began);
        let idle_budget = watcher.options().idle_budget;
        let often = 1e-4 / watcher.wake_every().as_secs_f64();
        assert!(often < idle_budget / 4.0, "waking up takes {often} of a processor");
        let soon = watcher.asleep(Duration::ZERO);
        assert!(soon >= watcher.wake_every() / HASTE, "{soon:?}");
        // One that runs is looked at when its windows have passed.
        (watcher.began, watcher.rate) = (std::time::Instant::now(), 1.0);
        assert!(watcher.wake_every() < Duration::from_millis(100), "{:?}", watcher.wake_every());
    }
}
