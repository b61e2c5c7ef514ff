//! The programs of the simulated jobs.
//!
//! A program is a list of phases. Each phase has pages that no other phase uses, and references them by
//! the stack model (`slrum.rs`) or in order. It lasts for a number of instructions, with random file I/O.
//!
//! Source: Nishigaki 1981, section 5. There, B1, B2 and B3 are FORTRAN programs that are compiled, linked
//! and executed. B4 has no phase but execution. Each of the four takes more than 25 s of CPU time. The
//! King Size Program references its pages one after the other at a constant rate, and begins again after
//! the last. The numbers of pages and the lengths of phases are ours.

use crate::model::{Slrum, SlrumRuns};
use vellum_workset::Page;

/// The way a phase references its pages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Behaviour {
    /// By the stack model.
    Stack(Slrum),
    /// One page after the other, each for `stay` instructions, and again from the first.
    Walk {
        /// Number of pages.
        pages: u64,
        /// Instructions on each page.
        stay: u64,
    },
}

/// A part of a program with one behaviour.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramPhase {
    /// The way it references its pages, which no other phase uses.
    pub(crate) behaviour: Behaviour,
    /// Instructions.
    pub(crate) length: u64,
    /// Mean instructions between file operations; 0 for none.
    pub(super) io_every: u64,
}

/// A program of a simulated job: a list of phases.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    /// Its name.
    pub(super) name: &'static str,
    /// Its phases, in order; at least one.
    pub(crate) phases: Vec<ProgramPhase>,
}

/// A stretch of references to one page.
#[derive(Debug, Clone)]
pub(crate) enum Stretches {
    Stack(SlrumRuns),
    Walk { pages: u64, stay: u64, next: u64 },
}

impl Behaviour {
    pub(crate) fn stretches(&self, seed: u64) -> Stretches {
        match self {
            Self::Stack(program) => Stretches::Stack(program.runs(seed)),
            Self::Walk { pages, stay } => {
                Stretches::Walk { pages: (*pages).max(1), stay: (*stay).max(1), next: 0 }
            }
        }
    }
}

impl Iterator for Stretches {
    type Item = (Page, u64);

    fn next(&mut self) -> Option<(Page, u64)> {
        match self {
            Self::Stack(runs) => runs.next().map(|run| (run.page, run.length)),
            Self::Walk { pages, stay, next } => {
                let page = *next;
                *next = (page + 1) % *pages;
                Some((Page(page), *stay))
            }
        }
    }
}

/// A stack-model program from groups of pages: `(pages, rate)`, where `rate` is the share of instructions
/// that reference a page deeper than the group.
///
/// The program always needs the first group. The smaller a group's rate, the longer it can run without the
/// deeper pages.
fn locality(groups: &[(usize, f64)]) -> Behaviour {
    let mut tails = Vec::new();
    let mut from = LEAVE;
    for (pages, to) in groups {
        // Within a group the tail falls evenly on a logarithmic scale.
        let step = (to / from).powf(1.0 / *pages as f64);
        for _ in 0..*pages {
            from *= step;
            tails.push(from);
        }
    }
    Behaviour::Stack(Slrum::from_tails(&tails).expect("rates fall from group to group"))
}

/// The share of instructions that reference another page than the instruction before.
const LEAVE: f64 = 2e-3;

fn phase(groups: &[(usize, f64)], millions: u64, io_every: u64) -> ProgramPhase {
    ProgramPhase { behaviour: locality(groups), length: millions * 1_000_000, io_every }
}

/// Four programs like the paper's B1 to B4.
///
/// Each needs some tens of pages always, as many more within a second of CPU time, and the rest seldom. Their
/// knees lie at different windows: no single window suits every program.
pub(crate) fn benchmark_programs() -> Vec<Program> {
    let compile = |size: usize| phase(&[(size, 2e-5), (24, 1.5e-6), (40, 3e-7)], 20, 60_000);
    let link = phase(&[(30, 2e-5), (24, 3e-6), (30, 4e-7)], 10, 40_000);
    vec![
        // A tight loop nest over few pages: a small window suffices.
        Program {
            name: "B1",
            phases: vec![
                compile(44),
                link.clone(),
                phase(&[(50, 4e-5), (60, 5e-7), (40, 2e-7)], 60, 150_000),
            ],
        },
        // Larger; its second part is referenced again within two million instructions.
        Program {
            name: "B2",
            phases: vec![
                compile(50),
                link.clone(),
                phase(&[(40, 6e-5), (50, 3e-6), (40, 2e-7)], 70, 150_000),
            ],
        },
        // Long intervals between references: with a window of a million instructions it faults on pages it
        // still needs.
        Program {
            name: "B3",
            phases: vec![compile(44), link, phase(&[(30, 4e-5), (60, 2e-6), (30, 2e-7)], 60, 120_000)],
        },
        // Executed without being compiled and linked.
        Program { name: "B4", phases: vec![phase(&[(60, 4e-5), (30, 1e-6), (60, 2e-7)], 90, 200_000)] },
    ]
}

/// The King Size Program: more pages than frames, one after the other, each for `stay` instructions.
pub(crate) fn king_size_program(pages: u64, stay: u64) -> Program {
    Program {
        name: "King",
        phases: vec![ProgramPhase {
            behaviour: Behaviour::Walk { pages, stay },
            length: u64::MAX / 4,
            io_every: 0,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_begins_again_after_its_last_page() {
        let walk = Behaviour::Walk { pages: 3, stay: 7 };
        let pages: Vec<_> = walk.stretches(1).take(4).collect();
        assert_eq!(pages, [(Page(0), 7), (Page(1), 7), (Page(2), 7), (Page(0), 7)]);
    }

    #[test]
    fn groups_become_tails() {
        let Behaviour::Stack(program) = locality(&[(4, 1e-4), (6, 1e-6)]) else { panic!() };
        assert_eq!(program.pages(), 11);
        assert!((program.tail(4) / 1e-4 - 1.0).abs() < 1e-9 && (program.tail(10) / 1e-6 - 1.0).abs() < 1e-9);
    }
}
