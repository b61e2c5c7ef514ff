//! A campaign: many cells, each with its arms, run round after round in random order.
//!
//! ```text
//! round 1   cell 4: vellum glibc' jemalloc glibc …   cell 1: glibc vellum' …   …
//! round 2   cell 2: …                                cell 4: …                 …
//! ```
//!
//! A **cell** is one thing to measure; its **arms** are the processes compared on it. All arms of a cell run next
//! to each other in time, so that the runs of one round can be paired; the order inside is drawn anew each round,
//! and so is the order of the cells, so that no arm and no cell always follows the same other. Every run is kept,
//! failed ones with the reason.

use super::{Ended, Launch, Metrics};
use crate::interrupt::Interrupt;
use std::time::Duration;
use vellum_measure::Order;

/// One process among those compared in a cell.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Its column; a second arm of the same peer, for the control, has the peer's label with a prime.
    pub label: String,
    /// What to run.
    pub launch: Launch,
}

/// One thing to measure.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Unique name.
    pub name: String,
    /// Run before each arm, its figures thrown away.
    pub prepare: Option<Launch>,
    /// What is compared.
    pub arms: Vec<Arm>,
    /// In how many rounds it takes part.
    pub rounds: usize,
    /// Whether the arms of a round run at the same time: for cells that mostly sleep and measure memory.
    pub together: bool,
}

/// What one process gave.
#[derive(Debug, Clone)]
pub struct Run {
    /// Which round, from 0.
    pub round: usize,
    /// The how-manieth of its cell's arms it was in this round, from 0.
    pub place: usize,
    /// The figures, or why there are none.
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
    /// The figure of an arm by round; rounds that failed or did not measure it hold nothing.
    #[must_use]
    pub fn by_round(&self, arm: &str, metric: &str) -> Vec<Option<f64>> {
        let runs = self.arms.iter().find(|(label, _)| label == arm).map_or(&[][..], |(_, runs)| runs);
        runs.iter().map(|run| run.result.as_ref().ok()?.get(metric)).collect()
    }

    /// The figures of an arm that there are.
    #[must_use]
    pub fn values(&self, arm: &str, metric: &str) -> Vec<f64> {
        self.by_round(arm, metric).into_iter().flatten().collect()
    }

    /// The first reason why an arm lacks figures, if it lacks any.
    #[must_use]
    pub fn failure(&self, arm: &str) -> Option<&Ended> {
        let (_, runs) = self.arms.iter().find(|(label, _)| label == arm)?;
        runs.iter().find_map(|run| run.result.as_ref().err())
    }
}

/// How to run cells.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// Draws all orders.
    pub seed: u64,
    /// The longest any process may take.
    pub allowed: Duration,
}

impl Campaign {
    /// Runs all cells. `progress` hears the number of runs done, the number in all, and what runs now. An [`Interrupt`] that arrives ends it with
    /// what has been run.
    pub fn run(&self, cells: &[Cell], mut progress: impl FnMut(usize, usize, &str)) -> Vec<Sheet> {
        let mut sheets: Vec<Sheet> = cells
            .iter()
            .map(|cell| Sheet {
                cell: cell.name.clone(),
                arms: cell.arms.iter().map(|arm| (arm.label.clone(), Vec::new())).collect(),
            })
            .collect();
        let orders: Vec<Vec<usize>> = cells
            .iter()
            .enumerate()
            .map(|(number, cell)| {
                Order::interleave(cell.arms.len(), cell.rounds, self.seed + 1 + number as u64)
            })
            .collect();
        let rounds = cells.iter().map(|cell| cell.rounds).max().unwrap_or(0);
        let total = cells.iter().map(|cell| cell.rounds * cell.arms.len()).sum();
        let mut done = 0;
        for (turn, number) in Order::interleave(cells.len(), rounds, self.seed).into_iter().enumerate() {
            let (cell, round) = (&cells[number], turn / cells.len());
            if round >= cell.rounds || cell.arms.is_empty() {
                continue;
            }
            if Interrupt::arrived().is_some() {
                break;
            }
            let order = &orders[number][round * cell.arms.len()..][..cell.arms.len()];
            let mut name = |arm: usize| {
                progress(done, total, &format!("{} {}", cell.name, cell.arms[arm].label));
                done += 1;
            };
            let results: Vec<Result<Metrics, Ended>> = if cell.together {
                let running: Vec<_> = order
                    .iter()
                    .map(|arm| {
                        name(*arm);
                        cell.arms[*arm].launch.start()
                    })
                    .collect();
                running.into_iter().map(|process| process?.finish(self.allowed)).collect()
            } else {
                let one = |arm: &usize| {
                    if Interrupt::arrived().is_some() {
                        return Err(Ended::Asked);
                    }
                    name(*arm);
                    if let Some(prepare) = &cell.prepare {
                        prepare.run(self.allowed)?;
                    }
                    cell.arms[*arm].launch.run(self.allowed)
                };
                order.iter().map(one).collect()
            };
            for (place, (arm, result)) in order.iter().zip(results).enumerate() {
                sheets[number].arms[*arm].1.push(Run { round, place, result });
            }
        }
        sheets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, rounds: usize, together: bool, scripts: &[(&str, &str)]) -> Cell {
        let launch = |script: &str| Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: Vec::new(),
            folder: None,
            preload: None,
            reports: true,
        };
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
        let sheets = Campaign { seed: 5, allowed: Duration::from_secs(60) }.run(&cells, |done, total, _| {
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
    fn a_failed_preparation_fails_the_arm() {
        let mut cells = [cell("one", 1, false, &[("a", r#"echo '{"n": 1}'"#)])];
        let mut broken = cells[0].arms[0].launch.clone();
        broken.args = vec!["-c".into(), "exit 9".into()];
        cells[0].prepare = Some(broken);
        let sheets = Campaign { seed: 1, allowed: Duration::from_secs(60) }.run(&cells, |_, _, _| {});
        assert!(sheets[0].failure("a").is_some());
    }
}
