//! The simulated machine: its CPU, its page frames, and the suspension of jobs when frames run out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::device::{Device, Request};
use super::job::{Job, State, Stop, Totals};
use super::program::Program;
use super::report::{JobReport, Report};
use super::settings::{
    BLOCK_PAGE_TIME, FAULT_CPU, INTERVAL, OPERATION, PAGE_TIME, Settings, WARM_UP, WINDOW_MAX, WINDOW_START,
    initiators,
};
use super::windows::{Chooser, Eviction, Windows, adjusted};
use crate::model::estimators::Quanta;
use vellum_random::Rng;
use vellum_workset::Page;

/// The longest time a job executes before the next job's turn.
const SLICE: u64 = 20_000;
/// The interval at which the common window and the suspended jobs are reviewed.
const PERIOD: u64 = 2_000_000;
/// The least CPU time of an activated job before it may be suspended.
const SERVED_MIN: u64 = 1_000_000;
/// A job suspended for this long replaces a job in memory.
const SUSPENDED_MAX: u64 = 30_000_000;
/// Frames kept free when a job is activated, so that no job is suspended again at once.
const RESERVE: usize = 8;
/// With fewer free frames than this, pages outside of windows are evicted at sample points
/// ([`Eviction::WhenShort`]).
const SHORT: usize = 32;
/// The assumed need of a job that has not run yet.
const NEED_FIRST: usize = 24;
/// The weight of the past in a job's measured S.
const DELAY_ALPHA: f64 = 0.9;

/// Runs the machine and reports the figures after its warm-up.
#[must_use]
pub fn simulate(settings: &Settings) -> Report {
    let mut machine = Machine::new(settings);
    machine.run_until(WARM_UP);
    machine.count_from_here();
    machine.run_until(WARM_UP + settings.length);
    machine.report()
}

struct Machine<'a> {
    settings: &'a Settings,
    now: u64,
    jobs: Vec<Job>,
    /// Jobs to execute, in turn. The executing job stays at the front until it stops.
    ready: VecDeque<usize>,
    device: Device,
    /// File operations in progress: the time of the end, the job and its activation.
    operations: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Suspended jobs, the longest suspended first.
    suspended: VecDeque<usize>,
    free: usize,
    stamp: u64,
    common: Quanta,
    period_end: u64,
    period_busy: u64,
    random: Rng,
    sums: Sums,
}

#[derive(Default)]
struct Sums {
    start: u64,
    busy_before: u64,
    cpu: u64,
    overhead: u64,
    ready: f64,
    in_memory: f64,
    frames: f64,
    fault_time: f64,
    fetched: u64,
    suspensions: u64,
}

impl<'a> Machine<'a> {
    fn new(settings: &'a Settings) -> Self {
        let mut random = Rng::new(settings.seed);
        let job = |programs: Vec<Program>| Job::new(programs, random.index(usize::MAX) as u64);
        let jobs: Vec<Job> = initiators().into_iter().map(job).collect();
        let lru = settings.windows == Windows::GlobalLru;
        let mut machine = Self {
            settings,
            now: 0,
            suspended: (0..jobs.len()).collect(),
            jobs,
            ready: VecDeque::new(),
            device: Device::default(),
            operations: BinaryHeap::new(),
            free: settings.frames,
            stamp: 0,
            common: if lru { WINDOW_MAX } else { WINDOW_START },
            period_end: PERIOD,
            period_busy: 0,
            random,
            sums: Sums::default(),
        };
        for job in 0..machine.jobs.len() {
            machine.begin_program(job);
        }
        machine
    }

    fn run_until(&mut self, end: u64) {
        while self.now < end {
            self.finish_due();
            if self.now >= self.period_end {
                self.end_period();
            }
            self.activate_what_fits();
            match self.ready.front() {
                Some(job) => self.execute(*job),
                None => {
                    let file = self.operations.peek().map(|Reverse((done, ..))| *done);
                    let next = [self.device.next(), file, Some(self.period_end)];
                    let next = next.into_iter().flatten().min().unwrap_or(end).min(end);
                    self.pass(next.max(self.now + 1) - self.now);
                }
            }
        }
    }

    fn execute(&mut self, job: usize) {
        let (used, stop) = self.jobs[job].execute(SLICE, &mut self.stamp);
        self.sums.cpu += used;
        self.pass(used);
        match stop {
            Stop::Slice => self.ready.rotate_left(1),
            Stop::Sample => self.sample(job),
            Stop::End => {
                let freed = self.jobs[job].resident.len();
                self.jobs[job].resident.clear();
                self.free += freed;
                self.begin_program(job);
            }
            Stop::Operation => {
                self.ready.pop_front();
                self.jobs[job].state = State::Waiting;
                let done = self.now + self.random.exponential(OPERATION as f64);
                self.operations.push(Reverse((done, job, self.jobs[job].activation)));
            }
            Stop::Fault => self.fault(job),
        }
    }

    fn fault(&mut self, job: usize) {
        self.sums.overhead += FAULT_CPU;
        self.pass(FAULT_CPU);
        if self.free == 0 && !self.make_room(job) {
            // The job itself was suspended.
            return;
        }
        self.free -= 1;
        self.ready.pop_front();
        let (page, activation) = (self.jobs[job].page, self.jobs[job].activation);
        self.jobs[job].resident.insert(page, self.stamp);
        self.jobs[job].state = State::Waiting;
        self.jobs[job].totals.faults += 1;
        let request = Request::Page { job, at: self.now, activation };
        self.device.ask(self.now, request, PAGE_TIME);
    }

    fn sample(&mut self, job: usize) {
        let common = self.common;
        let job = &mut self.jobs[job];
        job.sample();
        let step = job.chooser.step(common, &job.counters, job.delay);
        job.window = step.window;
        job.totals.windows += job.window.of(INTERVAL).as_f64();
        let lru = self.settings.windows == Windows::GlobalLru;
        let leave = match self.settings.eviction {
            Eviction::AtOnce => true,
            Eviction::WhenShort => self.free < SHORT,
            Eviction::WhenNeeded => false,
        };
        if step.replace && !lru && leave {
            self.free += job.evict();
        }
    }

    fn begin_program(&mut self, job: usize) {
        let chooser = Chooser::new(self.settings.windows, self.jobs[job].delay);
        self.jobs[job].begin(chooser, self.common);
    }

    /// Finds a frame for `job`; returns false if `job` itself was suspended for that.
    fn make_room(&mut self, job: usize) -> bool {
        let lru = self.settings.windows == Windows::GlobalLru;
        if lru
            || (self.settings.eviction != Eviction::AtOnce && self.take_oldest(|job, page| job.outside(page)))
        {
            return !lru || self.take_oldest(|_, _| true);
        }
        let eligible = |other: &usize| {
            let state = &self.jobs[*other];
            *other != job && state.in_memory() && state.state != State::Loading && state.served >= SERVED_MIN
        };
        if let Some(victim) =
            (0..self.jobs.len()).filter(eligible).max_by_key(|other| self.jobs[*other].served)
        {
            self.suspend(victim);
            return true;
        }
        // No job has run for long: the oldest page of all is evicted.
        self.take_oldest(|_, _| true)
    }

    /// Evicts the least recently used page for which `may` returns true; returns false if there is no such
    /// page. Pages being loaded stay.
    fn take_oldest(&mut self, may: impl Fn(&Job, Page) -> bool) -> bool {
        let mut oldest: Option<(u64, usize, Page)> = None;
        for (at, job) in self.jobs.iter().enumerate() {
            if job.state == State::Loading {
                continue;
            }
            for (page, stamp) in &job.resident {
                let first = oldest.is_none_or(|(other, ..)| *stamp < other);
                if first && !(job.state == State::Waiting && *page == job.page) && may(job, *page) {
                    oldest = Some((*stamp, at, *page));
                }
            }
        }
        let Some((_, job, page)) = oldest else { return false };
        self.jobs[job].resident.remove(&page);
        self.free += 1;
        true
    }

    fn suspend(&mut self, victim: usize) {
        let now = self.now;
        let job = &mut self.jobs[victim];
        let pages = job.leave();
        job.state = State::Suspended { since: now };
        job.activation += 1;
        self.free += pages;
        self.ready.retain(|other| *other != victim);
        self.suspended.push_back(victim);
        self.sums.suspensions += 1;
        self.device.ask(now, Request::BlockOut, pages as u64 * BLOCK_PAGE_TIME);
    }

    /// Activates suspended jobs, the longest suspended first, while they fit.
    fn activate_what_fits(&mut self) {
        while let Some(job) = self.suspended.front().copied() {
            let pages = self.jobs[job].left_behind.len();
            let need = if pages == 0 { NEED_FIRST } else { pages };
            // If no job is in memory, the first is activated without the reserve.
            let alone = self.suspended.len() == self.jobs.len();
            let wanted = if alone { need } else { need + RESERVE };
            if self.free < wanted {
                return;
            }
            self.suspended.pop_front();
            self.activate(job);
        }
    }

    fn activate(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        if let State::Suspended { since } = job.state {
            job.totals.suspended_time += self.now - since;
        }
        let pages = std::mem::take(&mut job.left_behind);
        job.served = 0;
        self.free -= pages.len();
        if pages.is_empty() {
            job.state = State::Ready;
            self.ready.push_back(at);
            return;
        }
        job.state = State::Loading;
        let (count, activation) = (pages.len() as u64, job.activation);
        job.resident.extend(pages.into_iter().map(|page| (page, self.stamp)));
        let service = PAGE_TIME + count * BLOCK_PAGE_TIME;
        self.device.ask(self.now, Request::BlockIn { job: at, activation }, service);
    }

    /// Handles all requests and operations that are done by now.
    fn finish_due(&mut self) {
        while let Some((done, request)) = self.device.done(self.now) {
            match request {
                Request::Page { job, at, activation } => {
                    let took = (done - at) as f64;
                    self.sums.fault_time += took;
                    self.sums.fetched += 1;
                    let smoothed = &mut self.jobs[job].delay;
                    *smoothed = DELAY_ALPHA * *smoothed + (1.0 - DELAY_ALPHA) * took;
                    self.wake(job, activation);
                }
                Request::BlockIn { job, activation } => self.wake(job, activation),
                Request::BlockOut => {}
            }
        }
        while let Some(Reverse((done, job, activation))) = self.operations.peek().copied() {
            if done > self.now {
                break;
            }
            self.operations.pop();
            self.wake(job, activation);
        }
    }

    /// Makes a job ready, unless it was suspended since the request.
    fn wake(&mut self, job: usize, activation: u64) {
        if self.jobs[job].activation == activation {
            self.jobs[job].state = State::Ready;
            self.ready.push_back(job);
        }
    }

    /// Frees the frames that the longest suspended job needs, if enough pages lie outside of windows.
    fn make_room_for_suspended(&mut self) {
        let Some(job) = self.suspended.front() else { return };
        let wanted = self.jobs[*job].left_behind.len().max(NEED_FIRST) + RESERVE;
        let outside = |job: &Job| job.resident.keys().filter(|page| job.outside(**page)).count();
        let spare: usize =
            self.jobs.iter().filter(|job| job.in_memory() && job.state != State::Loading).map(outside).sum();
        if self.free + spare >= wanted {
            while self.free < wanted && self.take_oldest(|job, page| job.outside(page)) {}
        }
    }

    fn end_period(&mut self) {
        if self.settings.eviction != Eviction::AtOnce {
            self.make_room_for_suspended();
        }
        let busy = self.device.busy - self.period_busy;
        let load = busy as f64 / PERIOD as f64;
        if self.settings.windows == Windows::Adaptive {
            self.common = adjusted(self.common, load);
        }
        self.period_busy = self.device.busy;
        self.period_end = self.now + PERIOD;
        let waited = |job: &usize| match self.jobs[*job].state {
            State::Suspended { since } => self.now - since >= SUSPENDED_MAX,
            _ => false,
        };
        if self.suspended.front().is_some_and(waited) {
            let eligible = |job: &usize| {
                let job = &self.jobs[*job];
                job.in_memory() && job.state != State::Loading && job.served >= SERVED_MIN
            };
            let most = (0..self.jobs.len()).filter(eligible).max_by_key(|job| self.jobs[*job].served);
            if let Some(victim) = most {
                self.suspend(victim);
            }
        }
    }

    fn pass(&mut self, time: u64) {
        let weight = time as f64;
        self.sums.ready += self.ready.len() as f64 * weight;
        self.sums.in_memory += (self.jobs.len() - self.suspended.len()) as f64 * weight;
        self.sums.frames += (self.settings.frames - self.free) as f64 * weight;
        for job in &mut self.jobs {
            job.totals.page_time += job.resident.len() as f64 * weight;
        }
        self.now += time;
    }

    fn count_from_here(&mut self) {
        self.sums = Sums { start: self.now, busy_before: self.device.busy, ..Sums::default() };
        let now = self.now;
        for job in &mut self.jobs {
            job.totals = Totals::default();
            if let State::Suspended { since } = &mut job.state {
                *since = now;
            }
        }
    }

    fn report(&self) -> Report {
        let passed = (self.now - self.sums.start) as f64;
        let job = |job: &Job| {
            let totals = job.totals;
            let still = match job.state {
                State::Suspended { since } => self.now - since,
                _ => 0,
            };
            JobReport {
                name: job.name(),
                cpu: totals.cpu,
                operations: totals.operations,
                faults: totals.faults,
                ended: totals.ended,
                pages: totals.page_time / passed,
                window: totals.windows / totals.samples.max(1) as f64,
                suspended: (totals.suspended_time + still) as f64 / passed,
            }
        };
        let busy = (self.device.busy - self.sums.busy_before) as f64;
        Report {
            passed: self.now - self.sums.start,
            delay: PAGE_TIME as f64,
            cpu: self.sums.cpu as f64 / passed,
            overhead: self.sums.overhead as f64 / passed,
            paging: busy / passed,
            multiprogramming: self.sums.in_memory / passed,
            ready: self.sums.ready / passed,
            frames: self.sums.frames / passed,
            fault_time: self.sums.fault_time / self.sums.fetched.max(1) as f64,
            suspensions: self.sums.suspensions,
            jobs: self.jobs.iter().map(job).collect(),
        }
    }
}
