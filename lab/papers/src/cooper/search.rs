//! The search for the best parameters of a strategy of Cooper et al. 1992: all combinations of some values,
//! as in the paper ("a brute-force search of the parameter space"), and the paper's own parameters.
//!
//! Several runs are made at once, which slow each other down alike. The tables do not use these times: the
//! settings found are measured again, one run at a time.

use super::client::Client;
use super::lab::{ALLOWED, Lab, search_key};
use super::place::{Place, Ready, asked};
use super::setting::{After, Mode, Setting, Sizing, Strategy};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;
use vellum_campaign::Ended;

/// The values tried for each parameter: fractions of the memory, or ratios.
const MEM_LIMIT: [f64; 3] = [0.5, 1.0, 1.4];
const RATIO: [u32; 3] = [3, 4, 7];
const MEM_LIM: [f64; 3] = [0.0, 0.5, 1.0];
const MIN_NEW_SIZE: [f64; 3] = [0.1, 0.3, 0.5];
const MIN_OLD_INCR: [f64; 3] = [0.1, 0.5, 1.0];
/// A run is stopped after this many times the fastest time yet, but not before the least time below.
const PATIENCE: u32 = 4;
const PATIENCE_MIN: Duration = Duration::from_secs(20);

/// The optimum of one client, strategy and mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Optimum {
    pub(super) sizing: Sizing,
    pub(super) ns: f64,
    pub(super) tried: usize,
    pub(super) failed: usize,
}

/// All combinations of the values.
fn points(strategy: Strategy) -> Vec<Sizing> {
    let mut out = Vec::new();
    match strategy {
        Strategy::Original => {
            for mem_limit in MEM_LIMIT {
                out.extend(RATIO.map(|ratio| Sizing::Original { mem_limit, ratio }));
            }
        }
        Strategy::Modified => {
            for mem_lim in MEM_LIM {
                for min_new_size in MIN_NEW_SIZE {
                    let point = |min_old_incr| Sizing::Modified { mem_lim, min_new_size, min_old_incr };
                    out.extend(MIN_OLD_INCR.map(point));
                }
            }
        }
    }
    out
}

/// Searches the parameters of a strategy for a client under a mode and with the treatment `after`. Stores
/// them in the lab and returns them.
pub(super) fn search(
    lab: &mut Lab<'_>,
    (client, strategy, mode, place): (&'static Client, Strategy, Mode, Place),
    after: After,
) -> Result<Optimum, String> {
    let mut runs = Vec::new();
    for sizing in points(strategy).into_iter().chain([strategy.published(client.name, mode)]) {
        let ready = lab.ready(client, &Setting { sizing, mode, after }, place);
        runs.extend(ready.map(|ready| (sizing, ready)));
    }
    let what = format!("search: {} {} {}", client.name, strategy.name(), mode.name());
    let times = run_all(lab, &what, place, &runs)?;
    let good = times.iter().filter_map(|(sizing, ns)| Some((*sizing, (*ns)?)));
    let best = good.clone().min_by(|a, b| a.1.total_cmp(&b.1));
    let (sizing, ns) = best.ok_or_else(|| format!("{what}: no run ended well"))?;
    lab.found.insert(search_key(client, strategy, (mode, after), place), sizing);
    Ok(Optimum { sizing, ns, tried: times.len(), failed: times.len() - good.count() })
}

/// Makes the runs, several at a time. Returns the nanoseconds of each by the place's clock; `None` if it
/// failed.
fn run_all(
    lab: &mut Lab<'_>,
    what: &str,
    place: Place,
    runs: &[(Sizing, Ready)],
) -> Result<Vec<(Sizing, Option<f64>)>, String> {
    let (metric, jobs, total) = (lab.clock(place).metric, lab.jobs(), runs.len());
    let next = AtomicUsize::new(0);
    let fastest = Mutex::new(None::<f64>);
    let (sender, results) = mpsc::channel();
    let work = |sender: mpsc::Sender<_>| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((sizing, ready)) = runs.get(at).filter(|_| !asked()) else { return };
            let best = *fastest.lock().unwrap_or_else(PoisonError::into_inner);
            let allowed = best.map_or(ALLOWED, |ns| {
                (Duration::from_nanos(ns as u64) * PATIENCE).clamp(PATIENCE_MIN, ALLOWED)
            });
            let ready = Ready { number: at + 1, allowed, ..ready.clone() };
            let ns = match ready.run() {
                Ok(metrics) => Ok(metrics.get(metric)),
                // This error does not depend on the parameters.
                Err(Ended::NotStarted { program, why }) => Err(format!("{program}: {why}")),
                Err(_) => Ok(None),
            };
            if let Ok(Some(ns)) = ns {
                let mut best = fastest.lock().unwrap_or_else(PoisonError::into_inner);
                *best = Some(best.map_or(ns, |best| best.min(ns)));
            }
            if sender.send((*sizing, ns)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(total) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        lab.tell(0, total, what);
        let (mut times, mut refused) = (Vec::new(), None);
        for (done, (sizing, ns)) in results.iter().enumerate() {
            match ns {
                Ok(ns) => times.push((sizing, ns)),
                Err(why) => refused = Some(why),
            }
            lab.tell(done + 1, total, what);
        }
        match refused {
            _ if asked() => Err("a signal asked to end".to_owned()),
            Some(why) => Err(format!("{what}: not every run could be started: {why}")),
            None => Ok(times),
        }
    })
}
