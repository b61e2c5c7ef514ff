//! A simulated job: its place in the list of programs that it runs, its resident pages, its counters.

use super::program::{Program, Stretches};
use super::settings::{INTERVAL, PAGE_TIME, WINDOW_MAX};
use super::windows::Chooser;
use crate::model::estimators::{Counters, PageTable, Quanta};
use vellum_random::Rng;
use vellum_workset::Page;

/// Distance between the page numbers of two phases, so that no two phases share a page.
const PHASE_PAGES: u64 = 1 << 32;
/// The ages that a job's counters distinguish.
const HORIZON: Quanta = Quanta(WINDOW_MAX.0 + 2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// For a page or the file device.
    Waiting,
    /// Out of memory since the given time.
    Suspended {
        since: u64,
    },
    /// Its pages are being loaded.
    Loading,
}

/// Why a job stopped executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Slice,
    Fault,
    Operation,
    Sample,
    /// The program ended; the next one begins.
    End,
}

#[derive(Debug)]
pub(super) struct Job {
    programs: Vec<Program>,
    program: usize,
    phase: usize,
    phases_begun: u64,
    phase_left: u64,
    stretches: Stretches,
    pub(super) page: Page,
    page_left: u64,
    operation_left: u64,
    sample_left: u64,
    random: Rng,
    pub(super) state: State,
    /// The number of this activation; an answer to an earlier one is stale.
    pub(super) activation: u64,
    /// CPU time since the last activation.
    pub(super) served: u64,
    /// Pages in memory, with the stamps of their last references.
    pub(super) resident: PageTable<u64>,
    /// Pages that were in memory when it was suspended.
    pub(super) left_behind: Vec<Page>,
    pub(super) counters: Counters,
    referenced: Vec<Page>,
    pub(super) window: Quanta,
    pub(super) chooser: Chooser,
    /// S as measured for this job, smoothed.
    pub(super) delay: f64,
    pub(super) totals: Totals,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) cpu: u64,
    pub(super) operations: u64,
    pub(super) faults: u64,
    pub(super) ended: u64,
    pub(super) page_time: f64,
    pub(super) suspended_time: u64,
    pub(super) windows: f64,
    pub(super) samples: u64,
}

impl Job {
    pub(super) fn new(programs: Vec<Program>, seed: u64) -> Self {
        let mut job = Self {
            program: 0,
            phase: 0,
            phases_begun: 0,
            phase_left: 0,
            stretches: Stretches::Walk { pages: 1, stay: 1, next: 0 },
            page: Page(0),
            page_left: 0,
            operation_left: u64::MAX,
            sample_left: 0,
            random: Rng::new(seed),
            state: State::Suspended { since: 0 },
            activation: 0,
            served: 0,
            resident: PageTable::default(),
            left_behind: Vec::new(),
            counters: Counters::new(HORIZON),
            referenced: Vec::new(),
            window: Quanta(1),
            chooser: Chooser::Common,
            delay: PAGE_TIME as f64,
            totals: Totals::default(),
            programs,
        };
        job.begin_phase();
        job
    }

    pub(super) fn name(&self) -> &'static str {
        self.programs[0].name
    }

    pub(super) fn in_memory(&self) -> bool {
        !matches!(self.state, State::Suspended { .. })
    }

    /// Starts the sampling of a new program with `chooser`.
    pub(super) fn begin(&mut self, chooser: Chooser, window: Quanta) {
        self.chooser = chooser;
        self.window = window;
        self.counters = Counters::new(HORIZON);
        self.referenced.clear();
        self.sample_left = INTERVAL.0;
    }

    /// Executes for at most `slice`; returns the time, and why it stopped. `stamp` is advanced at each
    /// reference to another page.
    pub(super) fn execute(&mut self, slice: u64, stamp: &mut u64) -> (u64, Stop) {
        let mut used = 0;
        loop {
            *stamp += 1;
            match self.resident.get_mut(&self.page) {
                Some(last) => *last = *stamp,
                None => return (used, Stop::Fault),
            }
            if self.referenced.last() != Some(&self.page) {
                self.referenced.push(self.page);
            }
            let part = (slice - used)
                .min(self.page_left)
                .min(self.operation_left)
                .min(self.sample_left)
                .min(self.phase_left);
            self.pass(part);
            used += part;
            if self.page_left == 0 {
                self.next_stretch();
            }
            if self.phase_left == 0 && self.end_phase() {
                return (used, Stop::End);
            }
            if self.sample_left == 0 {
                return (used, Stop::Sample);
            }
            if self.operation_left == 0 {
                self.totals.operations += 1;
                self.draw_operation();
                return (used, Stop::Operation);
            }
            if used == slice {
                return (used, Stop::Slice);
            }
        }
    }

    /// A sample point: reports the references to the counters.
    pub(super) fn sample(&mut self) {
        self.sample_left = INTERVAL.0;
        self.counters.sample(self.referenced.drain(..));
        self.totals.samples += 1;
    }

    /// Removes all pages from memory and stores those within the window for the next activation; returns
    /// their number before.
    pub(super) fn leave(&mut self) -> usize {
        let pages = self.resident.len();
        let mut kept: Vec<Page> = self.resident.keys().copied().filter(|page| !self.outside(*page)).collect();
        // The order of a hash table is not deterministic.
        kept.sort_unstable();
        self.resident.clear();
        self.left_behind = kept;
        pages
    }

    /// Removes the pages outside the window from memory; returns their number.
    pub(super) fn evict(&mut self) -> usize {
        let (counters, window, before) = (&self.counters, self.window, self.resident.len());
        self.resident.retain(|page, _| counters.counter(*page).is_some_and(|counter| counter < window));
        before - self.resident.len()
    }

    /// Whether a resident page lies outside the window.
    pub(super) fn outside(&self, page: Page) -> bool {
        // Without a counter it was referenced since the last sample point, or so long ago that the counter
        // was dropped.
        let old = match self.counters.counter(page) {
            Some(counter) => counter >= self.window,
            None => true,
        };
        old && !self.referenced.contains(&page) && page != self.page
    }

    fn pass(&mut self, time: u64) {
        self.page_left -= time;
        self.operation_left -= time;
        self.sample_left -= time;
        self.phase_left -= time;
        self.served += time;
        self.totals.cpu += time;
    }

    fn next_stretch(&mut self) {
        if let Some((page, length)) = self.stretches.next() {
            self.page = Page(page.0 + self.phases_begun * PHASE_PAGES);
            self.page_left = length;
        }
    }

    /// Begins the next phase; returns true if that is the first of the next program.
    fn end_phase(&mut self) -> bool {
        self.phase += 1;
        let ended = self.phase == self.programs[self.program].phases.len();
        if ended {
            self.phase = 0;
            self.program = (self.program + 1) % self.programs.len();
            self.totals.ended += 1;
        }
        self.begin_phase();
        ended
    }

    fn begin_phase(&mut self) {
        let seed = self.random.index(usize::MAX) as u64;
        let phase = &self.programs[self.program].phases[self.phase];
        self.stretches = phase.behaviour.stretches(seed);
        self.phase_left = phase.length;
        self.phases_begun += 1;
        self.next_stretch();
        self.draw_operation();
    }

    fn draw_operation(&mut self) {
        let every = self.programs[self.program].phases[self.phase].io_every;
        self.operation_left = if every == 0 { u64::MAX } else { self.random.exponential(every as f64) };
    }
}
