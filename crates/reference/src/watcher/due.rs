//! The steps of a watch as they fall due: a clearing, a look, the end of a cycle with its sample for the
//! history.
//!
//! Invariant: a cycle that is begun has been cleared; a spoiled one is dropped whole.

use super::{PAGE_BYTES, WAIT_MAX, WAIT_MIN, Watcher};
use crate::budget::{Plan, Size};
use crate::event::Event;
use crate::options::{FIRST_LOOKS, WINDOWS_MAX, WatchError};
use crate::source::{Count, Done, Source, SourceError};
use std::time::Duration;
use vellum_process::{Bytes, Pid};
use vellum_workset::{Curve, History, cycle};

/// A look comes at a window if it comes within this factor of it.
const REACH: f64 = 1.25;
/// A window that has passed to this part is looked at now rather than a little later.
const NEARLY: f64 = 0.98;
/// Between cycles, waking up may use one part in this many of the budget, so that the rest can be saved.
const IDLE_SHARE: f64 = 4.0;

/// One cycle, begun.
#[derive(Debug)]
pub(super) struct Cycle {
    /// The job's time at the last clearing.
    began: Duration,
    /// For each look the time since the clearing, and what was referenced in it.
    looks: Vec<(f64, f64)>,
    /// Looks since the last clearing.
    looked: u32,
    /// Entries referenced at the last look.
    touched: f64,
    /// The next window to look at, and how many there will be.
    next: u32,
    windows: u32,
}

impl Watcher {
    /// Does what is due; for how long, in wall-clock time, there is nothing more to do.
    pub(super) fn advance(&mut self, events: &mut Vec<Event>) -> Result<Duration, WatchError> {
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
    pub(super) fn until(&self, clock: Duration) -> Duration {
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
    /// The job's time at which a cycle of `windows` windows can be paid for.
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
        // Its present memory, with the huge pages of the last look.
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
    /// Clears the source: a cycle of `windows` windows begins, or goes on with another clearing.
    fn clear(&mut self, windows: u32, events: &mut Vec<Event>) -> Result<(), WatchError> {
        // A process not listed now would later count all of its references as if they were new.
        let mut listed = self.job.update(true);
        self.note(&mut listed);
        events.append(&mut listed);
        let entries = self.size().entries;
        let next = self.cycle.as_ref().map_or(0, |cycle| cycle.next);
        let ahead = self.wall(self.window(next));
        self.impose();
        let Some(done) = self.asked(events, |source, job| source.clear(job, ahead))? else {
            self.cycle = None;
            return Ok(());
        };
        self.budget.cleared(entries, done.spent.cpu + done.spent.elsewhere);
        let midway = self.midway(events);
        // A source that takes its looks itself has begun at the end of the clearing; others have gone from
        // page to page meanwhile.
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
    /// What all processes have referenced since they were cleared; `None` if the cycle is spoiled.
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
        // A look that the kernel has taken was at a time of its own, which has just come; others are taken
        // meanwhile.
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
        // Where a clearing came between, a stretch in which the job ran less than it was expected to gives a
        // window that was looked at before.
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
    pub(super) fn midway(&mut self, events: &mut Vec<Event>) -> Duration {
        let before = self.job.clock();
        let mut more = self.job.update(false);
        self.note(&mut more);
        events.append(&mut more);
        before + self.job.clock().saturating_sub(before) / 2
    }
    pub(super) fn end_cycle(&mut self, events: &mut Vec<Event>) {
        self.impose();
        let Some(cycle) = self.cycle.take() else { return };
        self.whole.cycle(at_common_windows(&self.history, &cycle), self.job.resident());
        if push(&mut self.history, &cycle) {
            events.push(Event::Cycle { samples: self.history.samples() });
        }
    }
    /// Asks the source about the processes that can be looked into; `None` if the cycle is spoiled.
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
pub(super) fn push(history: &mut History, cycle: &Cycle) -> bool {
    let pages = at_common_windows(history, cycle);
    let length = cycle.looks.last().map_or(0.0, |(window, _)| *window);
    let before = history.samples();
    history.push(length, &pages, &[]);
    history.samples() > before
}
