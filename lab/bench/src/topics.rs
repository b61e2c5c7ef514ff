//! The sections that can be run, and the option `--only NAME`, which chooses one of them, or the cells
//! (workloads) whose names contain NAME.
//!
//! Some sections run only if named. Invariant: the names of their cells begin with the section's name and
//! a dash, so that the name of a cell also names its section.

use crate::timing::{self, Found};
use crate::{Missing, Plan, Section, gc, heap, programs, suite};

/// A section, before its cells are made.
pub struct Topic {
    /// Its name.
    pub name: &'static str,
    /// Whether it also runs if none is named.
    pub is_usual: bool,
    /// Rounds of a full and of a quick run.
    pub rounds: [usize; 2],
    /// The allocators it compares.
    pub peers: Peers,
    make: Make,
}

/// The allocators that a section compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peers {
    /// No allocators.
    None,
    /// All allocators, or some of them.
    Usual,
    /// Also those that are made for hardening.
    Hardened,
}

enum Make {
    /// The section needs no files of its own.
    Cells(fn(&Plan) -> Section),
    /// Names all cells, and makes the chosen ones with their files.
    Files(fn() -> Vec<String>, fn(&Plan, Option<&str>) -> anyhow::Result<Prepared>),
}

/// A section that is ready to run.
pub struct Prepared {
    /// The cells and tables.
    pub section: Section,
    /// Tools and programs that are missing.
    pub missing: Vec<Missing>,
    /// Makes the measurements without a cell, after the cells: otherwise the memory used for them would count
    /// in the cells' peaks. It owns the section's files and removes them.
    pub finish: Box<dyn FnOnce() -> anyhow::Result<Found>>,
}

const fn usual(name: &'static str, section: fn(&Plan) -> Section) -> Topic {
    Topic { name, is_usual: true, rounds: [5, 3], peers: Peers::Usual, make: Make::Cells(section) }
}

const fn named(name: &'static str, rounds: [usize; 2], peers: Peers, make: Make) -> Topic {
    Topic { name, is_usual: false, rounds, peers, make }
}

/// All sections with cells, in the order of the tables.
pub const TOPICS: [Topic; 14] = [
    usual("large", suite::large::section),
    usual("growth", suite::growth::section),
    usual("idle", suite::idle::section),
    usual(suite::small::SMALL, suite::small::section),
    named(timing::SECTION, [10, 3], Peers::None, Make::Cells(timing::section)),
    // Enough pairs to distinguish 1 % from zero.
    named(suite::watch::WATCH, [10, 3], Peers::Usual, Make::Cells(suite::watch::section)),
    named(suite::govern::GOVERN, [10, 3], Peers::Usual, Make::Cells(suite::govern::section)),
    named(suite::pager::PAGER, [5, 3], Peers::Usual, Make::Cells(suite::pager::section)),
    named(suite::numpy::NUMPY, [5, 3], Peers::Usual, Make::Cells(suite::numpy::section)),
    named(suite::lent::LENT, [5, 3], Peers::Usual, Make::Cells(suite::lent::section)),
    named(suite::hardened::HARDENED, [5, 3], Peers::Hardened, Make::Cells(suite::hardened::section)),
    named(gc::SECTION, [9, 3], Peers::None, Make::Files(gc::names, gc::prepare)),
    named(heap::SECTION, [5, 2], Peers::None, Make::Files(heap::names, heap::prepare)),
    named(programs::SECTION, [9, 2], Peers::Usual, Make::Files(programs::names, programs::prepare)),
];

impl Topic {
    /// The sections that `only` chooses: the one it names, or the usual ones.
    #[must_use]
    pub fn chosen(only: Option<&str>) -> Vec<Topic> {
        let is_named = |topic: &Topic| only.is_some_and(|only| names_section(only, topic.name));
        let any = TOPICS.iter().any(is_named);
        TOPICS.into_iter().filter(|topic| if any { is_named(topic) } else { topic.is_usual }).collect()
    }

    /// The names of all its cells.
    #[must_use]
    pub fn names(&self, plan: &Plan) -> Vec<String> {
        match self.make {
            Make::Cells(section) => section(plan).cells.into_iter().map(|cell| cell.name).collect(),
            Make::Files(names, _) => names(),
        }
    }

    /// Makes the cells that `only` chooses, and what they need.
    ///
    /// # Errors
    /// If its files cannot be made. A missing program or tool is no error.
    pub fn prepare(&self, plan: &Plan, only: Option<&str>) -> anyhow::Result<Prepared> {
        match self.make {
            Make::Cells(section) => {
                let mut section = section(plan);
                section.cells.retain(|cell| chooses(only, self.name, &cell.name));
                let missing = timing::prepare(&plan.worker, &mut section.cells);
                Ok(Prepared { section, missing, finish: Box::new(|| Ok(Found::default())) })
            }
            Make::Files(_, prepare) => prepare(plan, only),
        }
    }
}

/// Whether `only` names this section or cells of it.
#[must_use]
pub fn names_section(only: &str, section: &str) -> bool {
    only.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether `only` chooses this cell of the section. Without `only` every cell is chosen.
#[must_use]
pub fn chooses(only: Option<&str>, section: &str, cell: &str) -> bool {
    only.is_none_or(|only| only == section || cell.contains(only))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{advice, suite::tests::plan};

    #[test]
    fn cell_names_are_unique_and_those_of_unusual_sections_begin_with_it() {
        for quick in [false, true] {
            let named = |topic: &Topic| (topic.name, topic.is_usual, topic.names(&plan(quick)));
            let mut all = std::collections::BTreeSet::new();
            for (section, is_usual, names) in
                TOPICS.iter().map(named).chain([(advice::SECTION, false, advice::names())])
            {
                for name in names {
                    assert!(is_usual || names_section(&name, section), "{section}: {name}");
                    assert!(chooses(Some(&name), section, &name));
                    assert!(all.insert(name.clone()), "two cells are named {name}");
                }
            }
        }
        assert!(names_section("gc", "gc") && names_section("gc-short", "gc"));
        assert!(
            !names_section("gcbench", "gc") && !names_section("large", "gc") && !names_section("g", "gc")
        );
        assert!(chooses(None, "gc", "gc-short") && chooses(Some("short"), "gc", "gc-short"));
        assert!(!chooses(Some("long"), "gc", "gc-short"));
    }

    #[test]
    fn only_selects_sections_and_cells() {
        let chosen = |only| Topic::chosen(only).iter().map(|topic| topic.name).collect::<Vec<_>>();
        assert_eq!((chosen(Some("large")), chosen(Some("gc-short"))), (vec!["large"], vec!["gc"]));
        assert_eq!(chosen(None), chosen(Some("1M")));
        let prepared = TOPICS[0].prepare(&plan(true), Some("1M")).unwrap();
        assert!(!prepared.section.cells.is_empty());
        assert!(prepared.section.cells.iter().all(|cell| cell.name.contains("1M")));
    }
}
