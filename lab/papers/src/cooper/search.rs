//! The search for the best parameters of a strategy of Cooper et al. 1992: all combinations of some values,
//! as in the paper ("a brute-force search of the parameter space").
//!
//! ```text
//! grid + the paper's parameters ─▶ skip those in the journal ─▶ run several at once ─▶ journal ─▶ fastest
//! ```
//!
//! The journal is a file to which each run appends a line; an interrupted search continues from it. A run's
//! key names everything that its result depends on: client, work, memory, plan, place (who pages), paging
//! device, setting, number of simultaneous runs, library. Simultaneous runs slow each other down, all of
//! them alike. The tables do not use their times: they are measured again, one run at a time.

use super::client::Client;
use super::lab::{ALLOWED, Lab, search_key};
use super::place::{Place, Ready, asked};
use super::setting::{After, Mode, Setting, Sizing, Strategy};
use crate::workshop::Collector;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use vellum_campaign::Ended;

/// The values tried for each parameter: fractions of the memory, or ratios.
struct Grid {
    mem_limit: &'static [f64],
    ratio: &'static [u32],
    mem_lim: &'static [f64],
    min_new_size: &'static [f64],
    min_old_incr: &'static [f64],
}

const GRID: Grid = Grid {
    mem_limit: &[0.5, 1.0, 1.4],
    ratio: &[3, 4, 7],
    mem_lim: &[0.0, 0.5, 1.0],
    min_new_size: &[0.1, 0.3, 0.5],
    min_old_incr: &[0.1, 0.5, 1.0],
};
const GRID_FULL: Grid = Grid {
    mem_limit: &[0.25, 0.5, 0.75, 1.0, 1.25, 1.5],
    ratio: &[3, 4, 7, 10, 100],
    mem_lim: &[0.0, 0.25, 0.5, 0.75, 1.0, 1.3],
    min_new_size: &[0.05, 0.1, 0.2, 0.35, 0.5],
    min_old_incr: &[0.05, 0.1, 0.3, 0.5, 1.0],
};
/// A run is stopped after this many times the fastest time yet, but not before the least time below.
const PATIENCE: u32 = 4;
const PATIENCE_MIN: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    key: String,
    sizing: Sizing,
    /// Nanoseconds by the place's clock; `None` if the run failed.
    ns: Option<f64>,
}

/// The optimum of one client, strategy and mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Optimum {
    pub(super) sizing: Sizing,
    pub(super) ns: f64,
    pub(super) tried: usize,
    pub(super) failed: usize,
}

impl Grid {
    fn points(&self, strategy: Strategy) -> Vec<Sizing> {
        let mut out = Vec::new();
        match strategy {
            Strategy::Original => {
                for &mem_limit in self.mem_limit {
                    out.extend(self.ratio.iter().map(|&ratio| Sizing::Original { mem_limit, ratio }));
                }
            }
            Strategy::Modified => {
                for &mem_lim in self.mem_lim {
                    for &min_new_size in self.min_new_size {
                        out.extend(self.min_old_incr.iter().map(|&min_old_incr| Sizing::Modified {
                            mem_lim,
                            min_new_size,
                            min_old_incr,
                        }));
                    }
                }
            }
        }
        out
    }
}

/// The finished runs, and the file to which new ones are added.
#[derive(Debug, Default)]
pub(super) struct Journal {
    path: Option<PathBuf>,
    known: BTreeMap<String, Vec<Line>>,
}

impl Journal {
    /// Reads the existing file. A malformed line (the last of a killed process) is skipped.
    pub(super) fn open(path: Option<&Path>) -> Self {
        let mut journal = Self { path: path.map(Path::to_path_buf), ..Self::default() };
        let text = path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            journal.known.entry(line.key.clone()).or_default().push(line);
        }
        journal
    }

    fn has(&self, key: &str, sizing: Sizing) -> bool {
        self.known.get(key).is_some_and(|lines| lines.iter().any(|line| line.sizing == sizing))
    }

    /// Adds a run.
    ///
    /// # Errors
    /// If the file cannot be written; the run is still kept in memory.
    fn add(&mut self, line: Line) -> std::io::Result<()> {
        let text = serde_json::to_string(&line).unwrap_or_default();
        self.known.entry(line.key.clone()).or_default().push(line);
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // A killed process may have left the beginning of a line.
        file.write_all(format!("\n{text}\n").as_bytes())
    }

    fn optimum(&self, key: &str) -> Option<Optimum> {
        let lines = self.known.get(key)?;
        let good = lines.iter().filter_map(|line| Some((line.ns?, line.sizing)));
        let (ns, sizing) = good.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let failed = lines.iter().filter(|line| line.ns.is_none()).count();
        Some(Optimum { sizing, ns, tried: lines.len(), failed })
    }
}

/// Everything that a run's result depends on, without the parameters.
fn key(
    lab: &Lab<'_>,
    client: &Client,
    strategy: Strategy,
    (mode, after): (Mode, After),
    place: Place,
    library: &str,
) -> String {
    let device =
        if lab.options.zram { "zram".to_owned() } else { lab.options.folder().display().to_string() };
    format!(
        "{} work={} memory={} plan={} device={device} jobs={} library={library}",
        search_key(client, strategy, (mode, after), place),
        lab.size.work,
        lab.memory(client),
        Collector::Vellum(lab.options.plan).name(),
        lab.jobs(),
    )
}

/// Searches the parameters of a strategy for a client under a mode and with the treatment `after`. Stores
/// them in the lab and returns them.
pub(super) fn search(
    lab: &mut Lab<'_>,
    journal: &mut Journal,
    library: &str,
    (client, strategy, mode, place): (&'static Client, Strategy, Mode, Place),
    after: After,
) -> Result<Optimum, String> {
    let grid = if lab.options.full { GRID_FULL } else { GRID };
    let mut points = grid.points(strategy);
    points.extend(strategy.published(client.name, mode));
    let key = key(lab, client, strategy, (mode, after), place, library);
    let open: Vec<Sizing> = points.into_iter().filter(|sizing| !journal.has(&key, *sizing)).collect();
    let runs: Vec<(Sizing, Ready)> = open
        .into_iter()
        .filter_map(|sizing| Some((sizing, lab.ready(client, &Setting { sizing, mode, after }, place)?)))
        .collect();
    let what = format!("search: {} {} {}", client.name, strategy.name(), mode.name());
    run_all(lab, journal, (&key, &what), place, runs)?;
    let found = journal.optimum(&key).ok_or_else(|| format!("{what}: no run ended well"))?;
    lab.found.insert(search_key(client, strategy, (mode, after), place), found.sizing);
    Ok(found)
}

/// Makes the runs, several at a time, and adds each to the journal at its end.
fn run_all(
    lab: &mut Lab<'_>,
    journal: &mut Journal,
    (key, what): (&str, &str),
    place: Place,
    runs: Vec<(Sizing, Ready)>,
) -> Result<(), String> {
    let (metric, jobs, total) = (lab.clock(place).metric, lab.jobs(), runs.len());
    let next = AtomicUsize::new(0);
    let fastest = Mutex::new(journal.optimum(key).map(|found| found.ns));
    let (sender, results) = mpsc::channel();
    let work = |sender: mpsc::Sender<_>| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((sizing, ready)) = runs.get(at) else { return };
            if asked() {
                return;
            }
            let best = *fastest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let allowed = best.map_or(ALLOWED, |ns| {
                (Duration::from_nanos(ns as u64) * PATIENCE).clamp(PATIENCE_MIN, ALLOWED)
            });
            let ready = Ready { number: at + 1, allowed, ..ready.clone() };
            let ns = match ready.run() {
                Ok(metrics) => metrics.get(metric),
                // This error does not depend on the parameters, so the run is not journalled and may be tried
                // again.
                Err(Ended::NotStarted { program, why }) => {
                    if sender.send((*sizing, Err(format!("{program}: {why}")))).is_err() {
                        return;
                    }
                    continue;
                }
                Err(_) => None,
            };
            if let Some(ns) = ns {
                let mut best = fastest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                *best = Some(best.map_or(ns, |best| best.min(ns)));
            }
            if asked() || sender.send((*sizing, Ok(ns))).is_err() {
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
        let mut refused = None;
        for (done, (sizing, ns)) in results.iter().enumerate() {
            match ns {
                Ok(ns) => {
                    let line = Line { key: key.to_owned(), sizing, ns };
                    journal.add(line).map_err(|error| format!("the journal of the search: {error}"))?;
                }
                Err(why) => refused = Some(why),
            }
            lab.tell(done + 1, total, what);
        }
        match refused {
            _ if asked() => Err("a signal asked to end".to_owned()),
            Some(why) => Err(format!("{what}: not every run could be started: {why}")),
            None => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_resumed_and_finds_the_fastest_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let sizing = |ratio| Sizing::Original { mem_limit: 0.5, ratio };
        let mut journal = Journal::open(Some(&path));
        for (ratio, ns) in [(3, Some(7.0)), (4, Some(5.0)), (7, None)] {
            journal.add(Line { key: "k".to_owned(), sizing: sizing(ratio), ns }).unwrap();
        }
        // The unfinished line of a killed process.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"key\": \"k").unwrap();
        let again = Journal::open(Some(&path));
        assert!(again.has("k", sizing(7)) && !again.has("k", sizing(8)) && !again.has("other", sizing(3)));
        let found = again.optimum("k").unwrap();
        assert_eq!((found.sizing, found.ns, found.tried, found.failed), (sizing(4), 5.0, 3, 1));
        assert!(again.optimum("other").is_none());
        let mut again = again;
        again.add(Line { key: "k".to_owned(), sizing: sizing(10), ns: Some(4.0) }).unwrap();
        assert_eq!(
            Journal::open(Some(&path)).optimum("k").unwrap().sizing,
            sizing(10),
            "behind the broken line"
        );
    }

    #[test]
    fn grids_have_every_combination_once() {
        for grid in [GRID, GRID_FULL] {
            for strategy in Strategy::BOTH {
                let points = grid.points(strategy);
                let distinct = points.iter().enumerate().all(|(at, one)| !points[..at].contains(one));
                assert!(distinct && points.len() >= 9, "{points:?}");
            }
        }
    }
}
