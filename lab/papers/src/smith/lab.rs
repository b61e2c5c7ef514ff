//! `Lab`, the state that all experiments of Smith 1998 share: the compiled clients, the collectors found on
//! this machine, and the campaign that runs them.

use super::client::{CLIENTS, Client};
use crate::workshop::{Build, Collector, Workshop};
use crate::{Finding, Value};
use crate::{Progress, Scale};
use std::path::PathBuf;
use std::time::Duration;
use vellum_campaign::cells::{middle, ratio, sheet};
use vellum_campaign::{Arm, Campaign, Cell, Missing, Sheet};
use vellum_measure::Interval;
use vellum_process::Interrupt;

/// The longest time of a client.
const ALLOWED: Duration = Duration::from_secs(600);
pub(super) const CPU: &str = "cpu_ns";
pub(super) const COLLECTOR: &str = "collector_ns";
const NANOS: f64 = 1e9;
/// The message of a client with too little heap, which is no failure but a missing bar in Figure 1.
const TOO_SMALL: &str = "too small";

pub(super) struct Lab<'a> {
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) workshop: Workshop,
    /// The collectors found here, libgc first.
    pub(super) here: Vec<Collector>,
    pub(super) missing: Vec<Missing>,
    /// The folder with Vellum's `libgc.so.1`, or the reason why it is missing.
    pub(super) drop_in: Result<PathBuf, String>,
    pub(super) experiment: String,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl<'a> Lab<'a> {
    pub(super) fn new(
        scale: Scale,
        seed: u64,
        mut workshop: Workshop,
        drop_in: Result<PathBuf, String>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> Self {
        progress(Progress { experiment: "start", done: 0, total: 1, what: "compiling the clients" });
        let (here, missing) = workshop.discover();
        Self { scale, seed, workshop, here, missing, drop_in, experiment: "start".to_owned(), progress }
    }

    /// Vellum's plans found here.
    pub(super) fn plans(&self) -> Vec<Collector> {
        self.here.iter().copied().filter(|collector| matches!(collector, Collector::Vellum(_))).collect()
    }

    pub(super) fn has(&self, collector: Collector) -> bool {
        self.here.contains(&collector)
    }

    /// The share of the paper's work, in percent.
    fn work(&self, client: &Client) -> u32 {
        self.scale.pick(100, client.quick_percent, 1)
    }

    /// A client in a heap of `mib` MiB.
    pub(super) fn arm(
        &mut self,
        label: &str,
        client: &Client,
        collector: Collector,
        build: Build,
        mib: u64,
    ) -> Option<Arm> {
        if Interrupt::arrived().is_some() {
            // Compiling would be a waste of time.
            return None;
        }
        let (work, heap) = (format!("scale={}", self.work(client)), format!("heap={mib}"));
        (self.progress)(Progress { experiment: &self.experiment, done: 0, total: 1, what: "compiling" });
        self.workshop.arm(label, client.name, collector, build, &[&work, &heap])
    }

    pub(super) fn campaign(&mut self, cells: &[Cell]) -> Vec<Sheet> {
        let campaign = Campaign { seed: self.seed, allowed: ALLOWED, budget: None };
        let (experiment, progress) = (&self.experiment, &mut self.progress);
        campaign.run(cells, |done, total, what| progress(Progress { experiment, done, total, what }))
    }

    /// An empty finding, with notes about missing parts.
    pub(super) fn finding(
        &self,
        title: &'static str,
        source: &'static str,
        published: &'static str,
    ) -> Finding {
        let mut notes: Vec<String> =
            self.missing.iter().map(|one| format!("{} is not here: {}", one.name, one.cure)).collect();
        if self.scale != Scale::Full {
            let (least, most) = (self.work(&CLIENTS[0]), self.work(&CLIENTS[CLIENTS.len() - 1]));
            notes.push(format!(
                "the clients do {least} % of their work (Groebner {most} %): totals and collections are fewer by as much"
            ));
        }
        Finding::new(self.experiment.as_str(), title, source, published, notes)
    }
}

/// Adds every run, and notes why figures are missing, unless the heap was only too small, which the tables
/// show.
pub(super) fn keep(finding: &mut Finding, sheets: &[Sheet]) {
    let before = finding.notes.len();
    finding.keep(sheets);
    let new = finding.notes.split_off(before);
    finding.notes.extend(new.into_iter().filter(|note| !note.contains(TOO_SMALL)));
}

/// A client in a heap of a given number of MiB.
pub(super) type Place<'c> = (&'c Client, u64);

/// The name of a place's cell.
pub(super) fn name((client, mib): Place<'_>) -> String {
    format!("{}-{mib}", client.name)
}

/// The results of all clients and heap sizes, plain and as ratios to libgc's.
pub(super) struct View<'s> {
    pub(super) sheets: &'s [Sheet],
    pub(super) seed: u64,
}

impl View<'_> {
    pub(super) fn figure(&self, at: Place<'_>, arm: &str, metric: &str) -> Option<f64> {
        middle(sheet(self.sheets, &name(at))?, arm, metric)
    }

    /// An arm's figure over libgc's.
    pub(super) fn over(&self, at: Place<'_>, arm: &str, metric: &str) -> Option<Interval> {
        ratio(sheet(self.sheets, &name(at))?, (arm, metric), (Collector::Libgc.name(), metric), self.seed)
    }

    /// The worst of an arm's figures over libgc's, with its place as words.
    pub(super) fn worst(&self, places: &[Place<'_>], arm: &str, metric: &str) -> (String, Option<Interval>) {
        let ratios = places.iter().filter_map(|at| Some((*at, self.over(*at, arm, metric)?)));
        let worst = ratios.max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
        let place =
            worst.map_or(String::new(), |((client, mib), _)| format!(" ({}, {mib} MiB)", client.title));
        (place, worst.map(|worst| worst.1))
    }

    /// CPU seconds of the client and of the collector.
    pub(super) fn split(&self, at: Place<'_>, arm: &str) -> Option<(f64, f64)> {
        let cpu = self.figure(at, arm, CPU)? / NANOS;
        let collector = (self.figure(at, arm, COLLECTOR)? / NANOS).min(cpu);
        Some((cpu - collector, collector))
    }
}

/// The parts of a time as text, with the given number of digits.
pub(super) fn sum(parts: Option<(f64, f64)>, digits: usize) -> Value {
    parts.map_or(Value::Nothing, |(c, g)| Value::text(format!("{c:.digits$} + {g:.digits$}")))
}
