//! A campaign a round at a time, so that it can end when it has to.
//!
//! The first round is always run in full: every line gets its figures. Each further one takes in the cells that have
//! rounds left and, going by what they took last time, still fit into the time given; cells are asked in random order,
//! so that a slow machine leaves out now these and now those. What was left out is counted, never hidden.

use crate::{Campaign, Cell, Run, Sheet};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use vellum_measure::Order;

/// What a campaign gave.
#[derive(Debug)]
pub struct Figures {
    /// One sheet a cell, in the cells' order.
    pub sheets: Vec<Sheet>,
    /// Runs that were asked for and not made.
    pub left_out: usize,
}

/// Runs all cells' rounds, within `budget` if there is one. `progress` hears the number of runs done, of runs asked
/// for, and what runs now.
pub fn within(
    campaign: Campaign,
    cells: &[Cell],
    budget: Option<Duration>,
    mut progress: impl FnMut(usize, usize, &str),
) -> Figures {
    let begun = Instant::now();
    let asked = cells.iter().map(|cell| cell.rounds * cell.arms.len()).sum();
    let mut sheets: Vec<Sheet> = cells.iter().map(empty).collect();
    let mut rounds = vec![0; cells.len()];
    let mut took: HashMap<String, Duration> = HashMap::new();
    let mut done = 0;
    for pass in 0.. {
        let left = budget.map(|budget| budget.saturating_sub(begun.elapsed()));
        // Drawn from a seed of its own for each pass: no two passes may go in the same order.
        let seed = campaign.seed.wrapping_add(pass << 32);
        let chosen = choose(cells, &rounds, &took, if pass == 0 { None } else { left }, seed);
        if chosen.is_empty() {
            break;
        }
        let round: Vec<Cell> =
            chosen.iter().map(|number| Cell { rounds: 1, ..cells[*number].clone() }).collect();
        let mut clock = Stopwatch { took: &mut took, running: None };
        let given = Campaign { seed, ..campaign }.run(&round, |_, _, what| {
            clock.now_runs(what);
            progress(done, asked, what);
            done += 1;
        });
        clock.stop();
        for (number, sheet) in chosen.into_iter().zip(given) {
            append(&mut sheets[number], sheet, rounds[number]);
            rounds[number] += 1;
        }
    }
    Figures { sheets, left_out: asked - done }
}

fn empty(cell: &Cell) -> Sheet {
    let arms = cell.arms.iter().map(|arm| (arm.label.clone(), Vec::new()));
    Sheet { cell: cell.name.clone(), arms: arms.collect() }
}

/// The cells that have rounds left and together fit into `left`, by number, in order.
fn choose(
    cells: &[Cell],
    rounds: &[usize],
    took: &HashMap<String, Duration>,
    left: Option<Duration>,
    seed: u64,
) -> Vec<usize> {
    let mut left = left.unwrap_or(Duration::MAX);
    let mut chosen = Order::interleave(cells.len(), 1, seed);
    chosen.retain(|number| {
        let cell = &cells[*number];
        let needs = took.get(&cell.name).copied().unwrap_or_default();
        let fits = rounds[*number] < cell.rounds && !cell.arms.is_empty() && needs <= left;
        left -= if fits { needs } else { Duration::ZERO };
        fits
    });
    chosen.sort_unstable();
    chosen
}

/// Adds one round's runs to a cell's sheet.
fn append(sheet: &mut Sheet, round: Sheet, number: usize) {
    for ((_, runs), (_, new)) in sheet.arms.iter_mut().zip(round.arms) {
        runs.extend(new.into_iter().map(|run| Run { round: number, ..run }));
    }
}

/// How long each cell takes, from hearing what runs now.
struct Stopwatch<'a> {
    took: &'a mut HashMap<String, Duration>,
    running: Option<(String, Instant)>,
}

impl Stopwatch<'_> {
    /// `what` is the cell's name, a space, the arm's label.
    fn now_runs(&mut self, what: &str) {
        let cell = what.split_once(' ').map_or(what, |(cell, _)| cell);
        if self.running.as_ref().is_none_or(|(running, _)| running != cell) {
            self.stop();
            self.running = Some((cell.to_owned(), Instant::now()));
        }
    }

    fn stop(&mut self) {
        if let Some((cell, since)) = self.running.take() {
            self.took.insert(cell, since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arm, Launch};

    fn cell(name: &str, rounds: usize) -> Cell {
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), r#"echo '{"n": 1}'"#.into()],
            env: Vec::new(),
            folder: None,
            preload: None,
            reports: true,
        };
        let arms = ["a", "b"].map(|label| Arm { label: label.to_owned(), launch: launch.clone() });
        Cell { name: name.to_owned(), prepare: None, arms: arms.to_vec(), rounds, together: false }
    }

    const CAMPAIGN: Campaign = Campaign { seed: 5, allowed: Duration::from_secs(60) };

    #[test]
    fn without_a_budget_every_round_is_run() {
        let mut heard = Vec::new();
        let figures = within(CAMPAIGN, &[cell("one", 3), cell("two", 1)], None, |done, asked, _| {
            heard.push((done, asked));
        });
        assert_eq!(figures.left_out, 0);
        assert_eq!(heard, (0..8).map(|done| (done, 8)).collect::<Vec<_>>());
        assert_eq!(figures.sheets[0].by_round("a", "n"), [Some(1.0); 3]);
        assert_eq!(figures.sheets[1].values("b", "n"), [1.0]);
        let rounds: Vec<usize> = figures.sheets[0].arms[1].1.iter().map(|run| run.round).collect();
        assert_eq!(rounds, [0, 1, 2]);
    }

    #[test]
    fn without_time_there_is_one_round_and_the_rest_is_counted() {
        let figures = within(CAMPAIGN, &[cell("one", 3), cell("two", 2)], Some(Duration::ZERO), |_, _, _| {});
        assert_eq!(figures.left_out, 6);
        assert!(figures.sheets.iter().all(|sheet| sheet.values("a", "n").len() == 1));
    }

    #[test]
    fn what_fits_is_chosen() {
        let cells = [cell("long", 3), cell("short", 3), cell("over", 1)];
        let took: HashMap<String, Duration> = [("long", 50), ("short", 5), ("over", 1)]
            .map(|(n, s)| (n.to_owned(), Duration::from_secs(s)))
            .into();
        let fits = |left| choose(&cells, &[1, 1, 1], &took, Some(Duration::from_secs(left)), 1);
        assert_eq!(fits(100), [0, 1]);
        assert_eq!(fits(40), [1]);
        assert!(fits(4).is_empty());
    }
}
