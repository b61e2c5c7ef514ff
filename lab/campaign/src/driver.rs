//! Runs a campaign: many measurements (*cells*), round after round in random order.
//!
//! ```text
//! round 1   cell 4: vellum glibc' jemalloc glibc …   cell 1: glibc vellum' …   …
//! round 2   cell 2: …                                cell 4: …                 …
//! ```
//!
//! A **cell** is one thing to measure. Its **arms** are the processes compared on it. All arms of a cell
//! run next to each other in time, so that the runs of one round can be paired. Each round draws new
//! orders of the cells and of the arms in each cell; no arm always follows the same other arm. An arm with
//! a prime (`glibc'`) repeats another one, as a control. Every run is kept, failed runs with the reason.

use crate::{Ended, Launch, Metrics};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};

/// A process that is compared with others in a cell.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Its column; a second arm of the same peer, for the control, has the peer's label with a prime.
    pub label: String,
    /// The process.
    pub launch: Launch,
}

/// One thing to measure.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Unique name.
    pub name: String,
    /// A process to run before each arm; its figures are dropped.
    pub prepare: Option<Launch>,
    /// The processes compared.
    pub arms: Vec<Arm>,
    /// The number of rounds in which it takes part.
    pub rounds: usize,
    /// Whether the arms of a round run at the same time: for cells that mostly sleep and measure memory.
    pub together: bool,
}

/// The result of one process.
#[derive(Debug, Clone)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// The place in the order of its cell's arms in this round, from 0.
    pub place: usize,
    /// The figures, or the reason why there are none.
    pub result: Result<Metrics, Ended>,
}

/// All runs of one cell.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// The cell's name.
    pub cell: String,
    /// For each arm its label and its runs, in the order of rounds.
    pub arms: Vec<(String, Vec<Run>)>,
}

impl Sheet {
    /// A sheet without runs.
    #[must_use]
    pub fn new<'a>(cell: &str, arms: impl IntoIterator<Item = &'a str>) -> Sheet {
        let arms = arms.into_iter().map(|label| (label.to_owned(), Vec::new())).collect();
        Sheet { cell: cell.to_owned(), arms }
    }

    /// Adds the run of a turn.
    pub fn keep(&mut self, Turn { round, place, arm }: Turn, result: Result<Metrics, Ended>) {
        self.arms[arm].1.push(Run { round, place, result });
    }

    /// The figure of an arm by round; `None` for rounds that failed or did not measure it.
    #[must_use]
    pub fn by_round(&self, arm: &str, metric: &str) -> Vec<Option<f64>> {
        let runs = self.arms.iter().find(|(label, _)| label == arm).map_or(&[][..], |(_, runs)| runs);
        runs.iter().map(|run| run.result.as_ref().ok()?.get(metric)).collect()
    }

    /// The measured figures of an arm.
    #[must_use]
    pub fn values(&self, arm: &str, metric: &str) -> Vec<f64> {
        self.by_round(arm, metric).into_iter().flatten().collect()
    }

    /// The number of runs made.
    #[must_use]
    pub fn made(&self) -> usize {
        self.arms.iter().map(|(_, runs)| runs.len()).sum()
    }

    /// The first reason why an arm lacks figures.
    #[must_use]
    pub fn failure(&self, arm: &str) -> Option<&Ended> {
        let (_, runs) = self.arms.iter().find(|(label, _)| label == arm)?;
        runs.iter().find_map(|run| run.result.as_ref().err())
    }
}

/// The settings for running cells.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// Seed of all orders.
    pub seed: u64,
    /// The longest time of a process.
    pub allowed: Duration,
    /// The time for all cells, if limited. Every cell has its first round in any case. Later rounds run only
    /// if the time of the cell's last round is left.
    pub budget: Option<Duration>,
}

impl Campaign {
    /// Runs all cells. `progress` gets the number of runs done, the total number, and the name of the next
    /// run. An [`Interrupt`](vellum_process::Interrupt) ends it with the runs made by then.
    pub fn run(&self, cells: &[Cell], mut progress: impl FnMut(usize, usize, &str)) -> Vec<Sheet> {
        let sheet = |cell: &Cell| Sheet::new(&cell.name, cell.arms.iter().map(|arm| &*arm.label));
        let mut sheets: Vec<Sheet> = cells.iter().map(sheet).collect();
        let seeds = (1..).map(|number| self.seed.wrapping_add(number));
        let order = |(cell, seed): (&Cell, u64)| Experiment::new(ArmOrder::Random, cell.arms.len(), seed);
        let mut experiments: Vec<Experiment> = cells.iter().zip(seeds).map(order).collect();
        let mut took = vec![Duration::ZERO; cells.len()];
        let total = cells.iter().map(|cell| cell.rounds * cell.arms.len()).sum();
        let (began, mut done) = (Instant::now(), 0);
        // The outer experiment orders the cells; each turn is one round of the cell's own experiment.
        let mut cell_turn = |Turn { round, arm: number, .. }: Turn| -> Result<(), Infallible> {
            let (cell, sheet) = (&cells[number], &mut sheets[number]);
            let wanted = round < cell.rounds && !cell.arms.is_empty();
            if !wanted || !self.has_time(round, took[number], began.elapsed()) {
                return Ok(());
            }
            let (begun, mut running) = (Instant::now(), Vec::new());
            let mut arm_turn = |turn: Turn| -> Result<(), Infallible> {
                let Arm { label, launch } = &cell.arms[turn.arm];
                progress(done, total, &format!("{} {label}", cell.name));
                done += 1;
                if cell.together {
                    running.push((turn, launch.start()));
                } else {
                    let prepared =
                        cell.prepare.as_ref().map_or(Ok(()), |first| first.run(self.allowed).map(drop));
                    sheet.keep(turn, prepared.and_then(|()| launch.run(self.allowed)));
                }
                Ok(())
            };
            // A signal that ends the round also ends the outer experiment.
            let _ = experiments[number].round(&mut arm_turn)?;
            for (turn, process) in running {
                sheet.keep(turn, process.and_then(|process| process.finish(self.allowed)));
            }
            took[number] = begun.elapsed();
            Ok(())
        };
        let rounds = Stop::rounds(cells.iter().map(|cell| cell.rounds).max().unwrap_or(0));
        let Ok(_) = Experiment::new(ArmOrder::Random, cells.len(), self.seed).run(&rounds, &mut cell_turn);
        sheets
    }

    /// Whether a cell whose last round took `took` may begin round `round` after the time `spent`.
    fn has_time(&self, round: usize, took: Duration, spent: Duration) -> bool {
        round == 0 || self.budget.is_none_or(|budget| took <= budget.saturating_sub(spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMPAIGN: Campaign = Campaign { seed: 5, allowed: Duration::from_secs(60), budget: None };

    fn cell(name: &str, rounds: usize, together: bool, scripts: &[(&str, &str)]) -> Cell {
        let launch = |script: &str| Launch { reports: true, ..Launch::new("/bin/sh", ["-c", script]) };
        let arms =
            scripts.iter().map(|(label, script)| Arm { label: (*label).to_owned(), launch: launch(script) });
        Cell { name: name.to_owned(), prepare: None, arms: arms.collect(), rounds, together }
    }

    #[test]
    fn every_arm_runs_once_a_round_and_failures_are_kept() {
        let good = r#"echo '{"n": 1}'"#;
        let cells = [
            cell("one", 3, false, &[("a", good), ("b", "exit 7"), ("c", good)]),
            cell("two", 2, true, &[("a", good), ("b", good)]),
            cell("none", 2, false, &[]),
        ];
        let mut heard = 0;
        let sheets = CAMPAIGN.run(&cells, |done, total, _| {
            assert_eq!((done, total), (heard, 13));
            heard += 1;
        });
        assert_eq!(heard, 13);
        assert_eq!(sheets[0].by_round("a", "n"), [Some(1.0); 3]);
        assert_eq!(sheets[0].by_round("b", "n"), [None; 3]);
        assert_eq!(sheets[0].failure("b"), Some(&Ended::Exit { code: 7, last: String::new() }));
        assert_eq!(sheets[1].values("b", "n"), [1.0; 2]);
        for round in 0..3 {
            let mut places: Vec<usize> = sheets[0].arms.iter().map(|(_, runs)| runs[round].place).collect();
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2]);
        }
    }

    #[test]
    fn without_time_there_is_one_round() {
        let good = r#"echo '{"n": 1}'"#;
        let cells = ["one", "two"].map(|name| cell(name, 3, false, &[("a", good), ("b", good)]));
        let none = Campaign { budget: Some(Duration::ZERO), ..CAMPAIGN };
        let sheets = none.run(&cells, |_, _, _| {});
        assert!(sheets.iter().all(|sheet| sheet.values("a", "n").len() == 1));
        assert_eq!(sheets.iter().map(Sheet::made).sum::<usize>(), 4);
    }

    #[test]
    fn a_round_that_fits_has_time() {
        let seconds = Duration::from_secs;
        let campaign = Campaign { budget: Some(seconds(100)), ..CAMPAIGN };
        let has_time = |took, spent| campaign.has_time(1, seconds(took), seconds(spent));
        assert!(has_time(50, 0) && has_time(5, 60) && has_time(50, 50));
        assert!(!has_time(50, 60) && !has_time(5, 96) && !has_time(5, 200));
        assert!(campaign.has_time(0, seconds(5), seconds(200)), "everything is run once");
        assert!(CAMPAIGN.has_time(9, seconds(5), seconds(200)), "without a budget there is always time");
    }

    #[test]
    fn a_failed_preparation_fails_the_arm() {
        let mut cells = [cell("one", 1, false, &[("a", r#"echo '{"n": 1}'"#)])];
        let mut broken = cells[0].arms[0].launch.clone();
        broken.args = vec!["-c".into(), "exit 9".into()];
        cells[0].prepare = Some(broken);
        let sheets = CAMPAIGN.run(&cells, |_, _, _| {});
        assert!(sheets[0].failure("a").is_some());
    }
}
