//! Observes the working set (memory used within a time window) of a program under `vellum run`.
//!
//! A thread takes samples, and sleeps between them. Sampling begins after [`BEGIN_AFTER`], so that short
//! programs are not disturbed. The thread uses at most [`BUDGET`] of the program's CPU time; the thread that
//! samples resident memory may use the rest of one percent.
//!
//! S (the cost of a page fault) is measured after the program's end, if there is a working-set curve.

use crate::working_set_text::too_short;
use serde::Serialize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use vellum_kernel::Pid;
use vellum_reference::{Delay, Frame, Options, SourceKind, Target, WatchError, Watcher};

/// A program that ends earlier is not observed.
const BEGIN_AFTER: Duration = Duration::from_millis(100);
/// The smallest CPU time that is reported as needed, as runs differ by milliseconds.
const ENOUGH_MIN: Duration = Duration::from_secs(2);
/// The largest share of the program's CPU time for watching.
const BUDGET: f64 = 0.008;

/// The working set of one run, in the form of the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WorkingSet {
    pub(crate) source: SourceKind,
    pub(crate) delta_ns: u64,
    pub(crate) delay: Option<Delay>,
    #[serde(flatten)]
    pub(crate) frame: Frame,
}

#[derive(Debug)]
pub(crate) struct References {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Option<Watcher>, WatchError>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    wake: Condvar,
}

impl Shared {
    /// Sleeps for `time`; true if the watch must end.
    fn sleep(&self, time: Duration) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(stop, time, |stop| !*stop);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl References {
    pub(crate) fn start(program: Pid) -> References {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let work = move || watch(program, &theirs);
        let thread = std::thread::Builder::new().name("references".into()).spawn(work).ok();
        References { shared, thread }
    }

    /// Ends the watch, and returns the working set, or the reason why it is missing.
    pub(crate) fn stop(self) -> Result<WorkingSet, String> {
        *self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        let Some(Ok(watched)) = self.thread.map(JoinHandle::join) else {
            return Err("no working-set curve: its thread could not be started".to_owned());
        };
        let watched = watched.map_err(|why| format!("no working-set curve: {why}"))?;
        let Some(mut watcher) = watched else { return Err(too_short(ENOUGH_MIN.as_nanos() as u64)) };
        watcher.finish();
        if watcher.curve().is_none() {
            return Err(too_short(watcher.frame(None).enough_ns));
        }
        // A curve needs no S.
        let delay = Delay::measure().ok();
        Ok(WorkingSet {
            source: watcher.source(),
            delta_ns: watcher.options().delta.as_nanos() as u64,
            frame: watcher.frame(delay.as_ref()),
            delay,
        })
    }
}

/// Watches until stopped; `None` if stopped before the first sample.
fn watch(program: Pid, shared: &Shared) -> Result<Option<Watcher>, WatchError> {
    if shared.sleep(BEGIN_AFTER) {
        return Ok(None);
    }
    let options = Options { budget: BUDGET, ..Options::default() };
    let mut watcher = Watcher::new(Target::Processes(vec![program]), options)?;
    while let Some(wait) = watcher.step()?.wait {
        if shared.sleep(wait) {
            break;
        }
    }
    Ok(Some(watcher))
}
