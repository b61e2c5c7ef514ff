//! `Lab`, the state that all experiments of Cooper et al. 1992 share. It compiles the clients, tests which
//! features this build of Vellum's library has, chooses the memory of each client, and makes the runs.

use super::Options;
use super::client::{Client, Size};
use super::place::{Place, Ready, Swap};
use super::setting::{After, Mode, Setting, Sizing, Strategy};
use crate::finding::Finding;
use crate::workshop::{Build, Collector, Plan, Workshop};
use crate::{Progress, Scale};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use vellum_campaign::{Ended, Launch, Sheet};
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};

/// The longest time of a run.
pub(super) const ALLOWED: Duration = Duration::from_secs(900);
/// A client with a small heap, and its words: shows the memory that a process needs besides its heap.
const TRIAL: (&str, &[&str]) = ("mergesort", &["scale=1", "items=100"]);
/// Its memory limit, and the value used if it cannot be measured.
const TRIAL_LIMIT: u64 = 64 << 20;
const BESIDES: u64 = 4 << 20;
/// The factor by which a client's memory grows if the kernel kills its baseline, and the number of attempts.
const RAISE: (u64, u64) = (5, 4);
const RAISES: usize = 4;
/// A sort that shows whether heaps are paged: its frames, and the memory in MiB that it is given.
const PAGED_TRIAL: (u64, u32) = (2 << 20, 3);

/// The figure by which runs are compared, and its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) metric: &'static str,
    pub(super) words: &'static str,
}

/// The capabilities of this library.
#[derive(Debug)]
struct Has {
    /// The plan, or the reason why it is missing.
    plan: Result<(), String>,
    /// Whether Vellum pages heaps, or the reason why not.
    paged: Result<(), String>,
}

pub(super) struct Lab<'a> {
    pub(super) options: &'a Options,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) size: Size,
    pub(super) experiment: String,
    /// The parameters found by search.
    pub(super) found: BTreeMap<String, Sizing>,
    workshop: Workshop,
    has: Has,
    swap: Option<Result<Swap, String>>,
    besides: u64,
    /// Memory of clients whose baseline was killed with less.
    raised: BTreeMap<&'static str, u64>,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl<'a> Lab<'a> {
    pub(super) fn new(
        options: &'a Options,
        scale: Scale,
        workshop: Workshop,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> Self {
        let size =
            Size { memory_mib: options.memory_mib(scale), work: scale.pick(100, WORK_QUICK, WORK_QUICK) };
        let has = Has { plan: Ok(()), paged: Err("not looked at".to_owned()) };
        let mut lab = Self {
            options,
            scale,
            seed: options.common.seed(),
            size,
            experiment: "start".to_owned(),
            found: BTreeMap::new(),
            workshop,
            has,
            swap: None,
            besides: BESIDES,
            raised: BTreeMap::new(),
            progress,
        };
        lab.discover();
        lab
    }

    fn discover(&mut self) {
        self.tell(0, 1, "compiling the clients");
        let run = |lab: &mut Self, place, limit, words: &[&str], client| {
            let launch = lab.launch(client, Build::Plain, words)?;
            let ready = lab.ready_with(launch, place, limit);
            ready.run().map_err(|ended| ended.to_string())
        };
        self.has.plan = run(self, Place::Plenty, 0, TRIAL.1, TRIAL.0).map(drop);
        if let Ok(Some(charged)) = run(self, Place::Kernel, TRIAL_LIMIT, TRIAL.1, TRIAL.0)
            .map(|metrics| metrics.get("most_charged_bytes"))
        {
            self.besides = charged as u64;
        }
        let memory = format!("memory={}", PAGED_TRIAL.1);
        let paged = run(self, Place::Pager, PAGED_TRIAL.0, &[&memory], "sort");
        self.has.paged = paged.and_then(|metrics| {
            let pages = metrics.get("peak_paged_pages").unwrap_or(0.0);
            if pages > 0.0 { Ok(()) } else { Err("this library does not page collected heaps".to_owned()) }
        });
    }

    /// The missing parts, with the reasons; the tables leave them out.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Err(why) = &self.has.plan {
            out.push(format!("the plan {} is not here: {why}", Collector::Vellum(self.options.plan).name()));
        }
        if let Err(why) = &self.has.paged {
            out.push(format!("Vellum's pager is left out: {why}"));
        }
        out
    }

    /// The reason why a place cannot be used.
    pub(super) fn obstacle(&mut self, place: Place) -> Option<String> {
        if let Err(why) = &self.has.plan {
            return Some(why.clone());
        }
        match place {
            Place::Plenty => None,
            Place::Pager => self.has.paged.as_ref().err().cloned(),
            Place::Kernel => {
                let memory = self.size.memory();
                let (zram, folder) = (self.options.zram, self.options.folder());
                let make = || Swap::new(zram, &folder, memory).map_err(|error| error.to_string());
                self.swap.get_or_insert_with(make).as_ref().err().cloned()
            }
        }
    }

    /// All treatments of vacated regions that this plan supports.
    pub(super) fn afters(&self) -> &'static [After] {
        match self.options.plan {
            Plan::Appel => &[After::CopyBack, After::Drift, After::Reuse, After::Stay],
            Plan::MostlyCopying | Plan::MarkSweep => &[After::InPlace],
        }
    }

    /// The treatment of vacated regions in a strategy of the paper, if this plan supports it.
    pub(super) fn usually(&self, strategy: Strategy) -> After {
        match self.options.plan {
            Plan::Appel => strategy.usually(),
            Plan::MostlyCopying | Plan::MarkSweep => After::InPlace,
        }
    }

    /// The best treatment of this plan, for settings that choose none.
    pub(super) fn usual(&self) -> After {
        if self.options.plan == Plan::Appel { After::Stay } else { After::InPlace }
    }

    /// The figure by which runs are compared: CPU time, if the device costs CPU time only, since other
    /// programs use the machine's processors.
    pub(super) fn clock(&self, place: Place) -> Clock {
        if self.options.zram && place != Place::Pager {
            Clock { metric: "process_cpu_ns", words: "CPU time" }
        } else {
            Clock { metric: "process_wall_ns", words: "elapsed time" }
        }
    }

    /// Number of simultaneous runs.
    pub(super) fn jobs(&self) -> usize {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        self.options.jobs.map_or(all, usize::from)
    }

    /// A client's program with words and the plan.
    pub(super) fn launch(&mut self, client: &str, build: Build, words: &[&str]) -> Result<Launch, String> {
        self.workshop.launch(client, Collector::Vellum(self.options.plan), build, words)
    }

    fn ready_with(&self, launch: Launch, place: Place, limit: u64) -> Ready {
        Ready { launch, place, limit, folder: self.options.folder(), number: 0, allowed: ALLOWED }
    }

    pub(super) fn memory(&self, client: &Client) -> u64 {
        self.raised.get(client.name).copied().unwrap_or_else(|| self.size.memory())
    }

    /// A run of a client under a setting; `None` if the client cannot be compiled.
    pub(super) fn ready(
        &mut self,
        client: &'static Client,
        setting: &Setting,
        place: Place,
    ) -> Option<Ready> {
        let mut words = client.words(self.size);
        if setting.after != After::InPlace {
            words.push(format!("after={}", setting.after.word()));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut launch = self.launch(client.name, Build::Plain, &words).ok()?;
        let memory = self.memory(client);
        launch.env.push(("VELLUM_GC_SIZING".into(), setting.sizing.word(memory).into()));
        if setting.mode != Mode::Default {
            launch.env.push(("VELLUM_DISCARD".into(), setting.mode.word().into()));
        }
        let limit = if place == Place::Kernel { memory + self.besides } else { memory };
        Some(self.ready_with(launch, place, limit))
    }

    /// The baseline of all comparisons: the paper's original strategy, no pager, copy-back.
    pub(super) fn baseline(&self, client: &Client, place: Place) -> Setting {
        let (strategy, mode) = (Strategy::Original, Mode::None);
        let sizing = self.parameters(client, strategy, mode, place);
        Setting { sizing, mode, after: self.usually(strategy) }
    }

    /// A strategy's parameters: those found by search, or else the paper's.
    pub(super) fn parameters(&self, client: &Client, strategy: Strategy, mode: Mode, place: Place) -> Sizing {
        let searched =
            self.found.get(&search_key(client, strategy, (mode, self.usually(strategy)), place)).copied();
        searched.unwrap_or_else(|| strategy.published(client.name, mode))
    }

    /// Raises a client's memory until the kernel does not kill its baseline; returns a note of it.
    pub(super) fn calibrate(&mut self, client: &'static Client) -> Option<String> {
        let mut tried = Vec::new();
        for _ in 0..=RAISES {
            let baseline = self.baseline(client, Place::Kernel);
            let ready = self.ready(client, &baseline, Place::Kernel)?;
            self.tell(0, 1, &format!("{}: does the baseline live?", client.name));
            match ready.run() {
                Ok(_) if tried.is_empty() => return None,
                Ok(_) => {
                    return Some(format!(
                        "{}: with {} the kernel kills the baseline; it has {} MiB instead",
                        client.name,
                        tried.join(", "),
                        self.memory(client) >> 20
                    ));
                }
                Err(Ended::Signal { signal: libc::SIGKILL, .. }) => {
                    tried.push(format!("{} MiB", self.memory(client) >> 20));
                    let more = self.memory(client) * RAISE.0 / RAISE.1;
                    self.raised.insert(client.name, more);
                }
                Err(ended) => return Some(format!("{}: the baseline did not run: {ended}", client.name)),
            }
        }
        Some(format!("{}: the kernel kills the baseline with {} alike", client.name, tried.join(", ")))
    }

    /// Runs a cell: in each round all arms one after the other, in random order.
    pub(super) fn campaign(&mut self, name: String, arms: Vec<(String, Ready)>, rounds: usize) -> Sheet {
        let mut experiment = Experiment::new(ArmOrder::Random, arms.len(), self.seed);
        let mut sheet = Sheet::new(&name, arms.iter().map(|(label, _)| &**label));
        let mut executor = |turn: Turn| -> Result<(), Infallible> {
            let (label, ready) = &arms[turn.arm];
            let done = turn.round * arms.len() + turn.place;
            self.tell(done, rounds * arms.len(), &format!("{name} {label}"));
            sheet.keep(turn, ready.run());
            Ok(())
        };
        let Ok(stopped) = experiment.run(&Stop::rounds(rounds), &mut executor);
        if stopped.is_some() {
            // Missing runs get a reason, so that no table has an empty cell without one.
            for arm in 0..arms.len() {
                for round in sheet.arms[arm].1.len()..rounds {
                    sheet.keep(Turn { round, place: 0, arm }, Err(Ended::Asked));
                }
            }
        }
        sheet
    }

    /// Reports progress.
    pub(super) fn tell(&mut self, done: usize, total: usize, what: &str) {
        (self.progress)(Progress { experiment: &self.experiment, done, total, what });
    }

    /// An empty finding, with notes about missing parts.
    pub(super) fn finding(
        &self,
        title: &'static str,
        source: &'static str,
        published: &'static str,
    ) -> Finding {
        let mut notes = self.missing();
        notes.push(format!(
            "{} MiB stand for the source's 11 MB, beside {:.1} MiB that a process without a heap is charged; the plan is {}; clients do {} % of their work",
            self.size.memory_mib,
            self.besides as f64 / f64::from(1 << 20),
            Collector::Vellum(self.options.plan).name(),
            self.size.work
        ));
        Finding::new(self.experiment.as_str(), title, source, published, notes)
    }
}

/// Percentage of the clients' work in a quick run.
const WORK_QUICK: u32 = 25;

/// The key of a search.
pub(super) fn search_key(
    client: &Client,
    strategy: Strategy,
    (mode, after): (Mode, After),
    place: Place,
) -> String {
    format!("{} {} {} {} {}", client.name, strategy.name(), mode.word(), after.word(), place.name())
}
