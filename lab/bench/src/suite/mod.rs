//! The suite: all sections of the benchmark, with the sizes of each workload, and the target (the least or
//! greatest ratio that counts as met) of each line in a table.
//!
//! A *section* is one topic with its cells and its tables. A *cell* is a workload with its *arms*, the
//! processes compared on it; a cell's figures can be in several tables. Every cell has two arms with glibc
//! and two with Vellum. The second arm of each pair is the control. With `quick`, there are fewer sizes
//! and shorter runs.

pub(crate) mod govern;
pub(crate) mod growth;
pub(crate) mod hardened;
pub(crate) mod idle;
pub(crate) mod large;
pub(crate) mod lent;
pub(crate) mod numpy;
pub(crate) mod pager;
pub(crate) mod small;
pub(crate) mod watch;

use crate::target::{Against, Target, twin};
use crate::{Arm, COMMAND, Cell, EXPECT, Launch, Line, Peer, Roster, Table, Unit, peer};
use std::path::PathBuf;
use vellum_campaign::cells::cell;
use vellum_report::units::size;

/// One topic.
#[derive(Debug, Clone)]
pub struct Section {
    /// Short name, for `--only`.
    pub name: &'static str,
    /// The cells to run.
    pub cells: Vec<Cell>,
    /// The tables to show.
    pub tables: Vec<Table>,
}

/// The options of the suite.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The executable that implements [`COMMAND`].
    pub worker: PathBuf,
    /// Vellum's library.
    pub library: PathBuf,
    /// The peers to compare.
    pub roster: Roster,
    /// Fewer sizes, shorter runs.
    pub quick: bool,
    /// Rounds of the usual cell.
    pub rounds: usize,
    /// Seed of the workloads' random choices.
    pub seed: u64,
    /// Threads of the workloads that use all processors.
    pub threads: usize,
    /// The checkout of mimalloc-bench, built.
    pub mimalloc_bench: Option<PathBuf>,
}

/// All peers but Vellum.
const OTHERS: &[&str] = &[peer::GLIBC, "mimalloc2", peer::MIMALLOC3, peer::JEMALLOC, "tcmalloc"];

/// Goal: no slower, within noise (2 %).
const NO_SLOWER: f64 = 1.02;

/// Goal for the peak memory of programs with large blocks: this multiple of glibc's …
const LARGE_PEAK: f64 = 1.05;
/// … or this number of bytes above it.
const LARGE_PEAK_PLUS: f64 = 4e6;

/// Bytes of small frames that are backed beforehand, at most: they are slow to touch.
const BACK_SMALL: usize = 128 * MIB;
/// Bytes of huge frames that are backed beforehand, at least: they are quick to touch.
const BACK_HUGE: usize = 512 * MIB;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Debian's interpreter, to which Debian's numpy belongs.
const PYTHON: &str = "/usr/bin/python3";
const GIB: usize = 1 << 30;

impl Plan {
    /// Rounds for cells whose single run takes seconds.
    fn few_rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds.div_ceil(2) }
    }

    /// `quick` in a quick run, else `full`.
    fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A worker under `peer`.
    fn launch(&self, peer: &Peer, workload: &str, params: &[(&str, usize)]) -> Launch {
        let words = params.iter().map(|(name, value)| format!("{name}={value}"));
        let args = [COMMAND.to_owned(), workload.to_owned(), format!("seed={}", self.seed)];
        let env = peer.library.iter().map(|library| (EXPECT.into(), library.into())).collect();
        let plain = Launch::new(&self.worker, args.into_iter().chain(words));
        Launch { env, preload: peer.library.clone(), reports: true, ..plain }
    }

    /// A process that makes the host of a virtual machine back enough memory for a first touch of `bytes`.
    fn back(&self, bytes: usize) -> Option<Launch> {
        let glibc = self.roster.get(peer::GLIBC)?;
        let small = bytes.min(BACK_SMALL);
        Some(self.launch(glibc, "back", &[("bytes", small), ("huge_bytes", bytes.max(BACK_HUGE))]))
    }

    /// A cell with an arm for every peer for which `launch` returns a command, and controls.
    pub(crate) fn cell_of(&self, name: &str, launch: impl Fn(&Peer) -> Option<Launch>) -> Cell {
        let mut arms = Vec::new();
        for peer in &self.roster.peers {
            let Some(launch) = launch(peer) else { continue };
            if [peer::GLIBC, peer::VELLUM].contains(&peer.name) {
                arms.push(Arm { label: twin(peer.name), launch: launch.clone() });
            }
            arms.push(Arm { label: peer.name.to_owned(), launch });
        }
        cell(name.to_owned(), self.rounds, arms)
    }

    /// A cell with an arm for every peer for which `work` returns a workload, and controls.
    fn cell_by<'a>(
        &self,
        name: &str,
        work: impl Fn(&Peer) -> Option<(&'a str, Vec<(&'a str, usize)>)>,
    ) -> Cell {
        self.cell_of(name, |peer| {
            let (workload, params) = work(peer)?;
            Some(self.launch(peer, workload, &params))
        })
    }

    /// A cell in which every peer runs the same workload.
    fn cell(&self, name: &str, workload: &str, params: &[(&str, usize)]) -> Cell {
        self.cell_by(name, |_| Some((workload, params.to_vec())))
    }
}

/// A cell with the columns *glibc* and *vellum*, each with its control.
fn columns(plan: &Plan, name: String, launches: [Option<Launch>; 2]) -> Cell {
    let columns = [peer::GLIBC, peer::VELLUM].into_iter().zip(launches);
    let arms = columns.filter_map(|(label, launch)| Some((label, launch?))).flat_map(|(label, launch)| {
        [label.to_owned(), twin(label)].map(|label| Arm { label, launch: launch.clone() })
    });
    cell(name, plan.rounds, arms.collect())
}

/// Two jobs of the same work side by side on one processor, for each amount of memory: in the column *vellum*
/// the parameter `on` of the workload is 1. Returns the cells with their labels.
fn jobs_beside(
    plan: &Plan,
    section: &str,
    workload: &str,
    on: &str,
    jobs: &[(usize, usize)],
) -> Vec<(String, Cell)> {
    let Some(glibc) = plan.roster.get(peer::GLIBC) else { return Vec::new() };
    let one = |&(bytes, touches): &(usize, usize)| {
        let launches = [0, 1].map(|value| {
            Some(plan.launch(glibc, workload, &[("bytes", bytes), ("touches", touches), (on, value)]))
        });
        let cell = columns(plan, format!("{section}-{}", tag(bytes)), launches);
        (format!("{} of memory", size(bytes)), cell)
    };
    jobs.iter().map(one).collect()
}

/// Runs a script in Debian's Python under `peer`. The script reports its own figures, without the start-up.
fn python(peer: &Peer, script: &str, arguments: [String; 2]) -> Launch {
    let args = ["-c".to_owned(), script.to_owned()].into_iter().chain(arguments);
    Launch { preload: peer.library.clone(), reports: true, ..Launch::new(PYTHON, args) }
}

pub(crate) fn line(label: impl Into<String>, cell: &Cell, target: Option<Target>) -> Line {
    Line { label: label.into(), cell: cell.name.clone(), target }
}

pub(crate) fn table(title: &str, metric: &'static str, unit: Unit, lines: Vec<Line>) -> Table {
    Table { title: title.to_owned(), metric, unit, lines, means: Vec::new() }
}

/// The target for peak memory of programs with large blocks.
fn large_peak() -> Target {
    Target::at_most(LARGE_PEAK, Against::Arm(peer::GLIBC)).or_within(LARGE_PEAK_PLUS)
}

/// The target for peak memory of programs with small blocks.
fn leaner() -> Target {
    Target::at_most(1.0, Against::Least(&[peer::MIMALLOC3, peer::JEMALLOC]))
}

/// `256K`, `1G`: a size in a cell's name.
fn tag(bytes: usize) -> String {
    size(bytes).replace(' ', "").replace("iB", "")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TOPICS;

    pub(crate) fn plan(quick: bool) -> Plan {
        let peer = |name| Peer { name, library: None, version: String::new() };
        let roster = Roster { peers: peer::NAMES.map(peer).to_vec(), missing: Vec::new() };
        let worker = "/nonexistent/bench".into();
        let library = PathBuf::new();
        Plan { worker, library, roster, quick, rounds: 3, seed: 1, threads: 2, mimalloc_bench: None }
    }

    /// The sections whose cells run workloads under allocators.
    fn sections(quick: bool) -> Vec<Section> {
        let plan = plan(quick);
        let with_workers = ["large", "growth", "idle", watch::WATCH, govern::GOVERN, pager::PAGER];
        let topics = TOPICS.iter().filter(|topic| with_workers.contains(&topic.name));
        topics.map(|topic| topic.prepare(&plan, None).unwrap().section).collect()
    }

    #[test]
    fn lines_have_cells() {
        let plan = plan(false);
        for section in sections(false).into_iter().chain([numpy::section(&plan), lent::section(&plan)]) {
            let has = |name: &str| section.cells.iter().any(|cell| cell.name == name);
            for line in section.tables.iter().flat_map(|table| &table.lines) {
                assert!(has(&line.cell), "{} has no cell", line.label);
                if let Some(Target { against: Against::Cell(other), .. }) = &line.target {
                    assert!(has(other), "no cell {other}");
                }
            }
        }
    }

    #[test]
    fn every_cell_has_its_controls_and_an_existing_workload() {
        let workloads: Vec<&str> = crate::work::WORKLOADS.iter().map(|w| w.name).collect();
        for cell in sections(true).iter().flat_map(|section| &section.cells) {
            for peer in [peer::GLIBC, peer::VELLUM] {
                for label in [peer.to_owned(), twin(peer)] {
                    assert!(cell.arms.iter().any(|arm| arm.label == label), "{} lacks {label}", cell.name);
                }
            }
            for launch in cell.arms.iter().map(|arm| &arm.launch).chain(&cell.prepare) {
                let workload = launch.args[1].to_str().unwrap();
                assert!(workloads.contains(&workload), "{} runs {workload}", cell.name);
            }
        }
    }

    #[test]
    fn only_built_programs_of_mimalloc_bench_are_run() {
        assert!(small::section(&plan(false)).cells.is_empty());
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("out/bench")).unwrap();
        for name in ["cfrac", "barnes", "sh6bench"] {
            std::fs::write(folder.path().join("out/bench").join(name), "").unwrap();
        }
        let built = Plan { mimalloc_bench: Some(folder.path().to_path_buf()), ..plan(false) };
        let cells = small::section(&built).cells;
        assert_eq!(cells.iter().map(|cell| &*cell.name).collect::<Vec<_>>(), ["cfrac", "barnes", "sh6-N"]);
        assert_eq!(cells[2].arms[0].launch.args, ["4"]);
        assert!(cells[1].arms[0].launch.args[3].to_str().unwrap().ends_with("bench/barnes/input"));
        assert_eq!(cells[0].arms.iter().filter(|arm| arm.label == twin(peer::VELLUM)).count(), 1);
        let hardened = hardened::section(&built).cells;
        assert_eq!(hardened.len(), 2);
    }
}
