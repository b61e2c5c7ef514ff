//! A cgroup with a job, and the watch on its memory.
//!
//! A watch is a [`Watcher`], as in `vellum watch --cgroup`, and begins with the cgroup's first turn. A
//! cgroup without readable processes is tried again later; the wait doubles up to [`RETRY_MAX`].

use crate::group::Identity;
use crate::pods::Named;
use crate::turns::Stepped;
use crate::view::{State, View};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vellum_kernel::{Bytes, Cgroup};
use vellum_reference::{Delay, FIRST_LOOKS, Options, PAGE_BYTES, SourceKind, Target, WatchError, Watcher};

/// The first wait before a group is tried again.
const RETRY_MIN: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The cost to clear or count a page, before it is measured.
const PAGE: Duration = Duration::from_nanos(100);
/// The cost to clear or count a process.
const PROCESS: Duration = Duration::from_micros(30);
/// A job that uses a smaller part of a processor hardly runs.
const HARDLY: f64 = 0.03;
/// Groups that hold less use the source without setup cost; for larger groups the watcher chooses the source.
const LARGE: Bytes = Bytes(512 << 20);

#[derive(Debug)]
pub(crate) struct Watched {
    identity: Identity,
    watcher: Option<Watcher>,
    retry: Duration,
    found: Instant,
    /// The time lost by the job that was already accounted.
    imposed: Duration,
    changed: bool,
    view: Arc<View>,
}

impl Watched {
    pub(crate) fn new(path: &str, directory: PathBuf, identity: Identity, named: Option<&Named>) -> Watched {
        let view = Arc::new(View::new(path, directory, &identity, named));
        Watched {
            identity,
            watcher: None,
            retry: RETRY_MIN,
            found: Instant::now(),
            imposed: Duration::ZERO,
            changed: true,
            view,
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn view(&self) -> &Arc<View> {
        &self.view
    }

    pub(crate) fn identify(&mut self, named: Option<&Named>) {
        Arc::make_mut(&mut self.view).identify(&self.identity, named);
    }

    /// The estimated cost of the first cycle, from the memory charged to the group.
    pub(crate) fn estimate(&self) -> Duration {
        cost(self.view.group().charged().unwrap_or(Bytes(0)), 1, FIRST_LOOKS)
    }

    /// Makes a step if it is due. The second value is the time that the job lost.
    pub(crate) fn step(&mut self, options: &Options) -> (Stepped, Duration) {
        let done = self.watch(options);
        done.unwrap_or_else(|state| {
            self.set(state);
            self.watcher = None;
            let (wait, estimate) = (self.retry, self.estimate());
            self.retry = (wait * 2).min(RETRY_MAX);
            (Stepped { wait, in_cycle: false, idle: true, cost: Duration::ZERO, estimate }, Duration::ZERO)
        })
    }

    /// Makes a step, or returns the state of a group that cannot be watched now.
    fn watch(&mut self, options: &Options) -> Result<(Stepped, Duration), State> {
        let watcher = match &mut self.watcher {
            Some(watcher) => watcher,
            none => {
                self.imposed = Duration::ZERO;
                none.insert(begin(&self.view.directory, options).map_err(State::Blind)?)
            }
        };
        let step = watcher.step().map_err(|why| match why {
            WatchError::Blind(why) => State::Blind(why),
            why => State::Blind(why.to_string()),
        })?;
        let wait = step.wait.ok_or(State::Empty)?;
        let imposed = Duration::from_nanos(watcher.cost().imposed_ns);
        let lost = imposed.saturating_sub(self.imposed);
        let looks = if watcher.history().samples() == 0 { FIRST_LOOKS } else { options.windows };
        let estimate = cost(watcher.resident(), watcher.processes().count() as u32, looks);
        let (in_cycle, idle) = (watcher.in_cycle(), watcher.rate() < HARDLY);
        self.imposed = imposed;
        self.retry = RETRY_MIN;
        self.changed |= !step.events.is_empty();
        self.set(State::Watched);
        Ok((Stepped { wait, in_cycle, idle, cost: Duration::ZERO, estimate }, lost))
    }

    fn set(&mut self, state: State) {
        if self.view.state != state {
            Arc::make_mut(&mut self.view).state = state;
            self.changed = true;
        }
    }

    /// True if there is a curve, or cannot be one for now.
    pub(crate) fn is_answered(&self) -> bool {
        match &self.view.state {
            State::Waiting => false,
            State::Watched => self.watcher.as_ref().is_some_and(|watcher| watcher.first_curve().is_some()),
            State::Empty | State::Blind(_) => true,
        }
    }

    /// Updates the view, if anything has changed.
    pub(crate) fn refresh(&mut self, delay: &Delay) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let view = Arc::make_mut(&mut self.view);
        let Some(watcher) = &self.watcher else {
            // The history stays, but the group holds no memory.
            (view.processes, view.resident_bytes, view.swapped_bytes) = (0, 0, 0);
            return;
        };
        view.processes = watcher.processes().count() as u64;
        view.resident_bytes = watcher.resident().0;
        view.swapped_bytes = watcher.latest().swapped.0;
        view.clock_seconds = watcher.clock().as_secs_f64();
        view.watch_share = watcher.cost().share;
        view.untouched = watcher.untouched().map(|(age, bytes)| (age.as_secs(), bytes.0)).collect();
        view.advised_by_age_bytes = watcher.give_by_age().map(|by_age| by_age.bytes);
        let Some(curve) = watcher.curve() else { return };
        view.curve = vellum_reference::windows(&curve);
        if let Some([give, two_thirds]) = watcher.advised(delay) {
            view.advised_bytes = Some(give.bytes);
            view.slowdown_two_thirds = Some(two_thirds.slowdown);
        }
        if let Some(knee) = watcher.knee(delay) {
            view.worth_bytes = Some(knee.bytes);
            view.window_seconds = Some(knee.window_ns / 1e9);
            view.waiting = Some(knee.waiting);
        }
        view.first_curve_seconds.get_or_insert_with(|| self.found.elapsed().as_secs_f64());
    }
}

fn begin(directory: &Path, options: &Options) -> Result<Watcher, String> {
    let target = Target::cgroup(directory).map_err(|why| why.to_string())?;
    let small = Cgroup::at(directory).charged().map_or(true, |charged| charged < LARGE);
    let source = options.source.or(small.then_some(SourceKind::AccessedBits));
    Watcher::new(target, Options { source, ..options.clone() }).map_err(|why| why.to_string())
}

/// The cost of a cycle with this many samples.
fn cost(resident: Bytes, processes: u32, looks: u32) -> Duration {
    let pages = u32::try_from(resident.0 / PAGE_BYTES).unwrap_or(u32::MAX);
    (PAGE * pages + PROCESS * processes) * (looks + 1)
}
