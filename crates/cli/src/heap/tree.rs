//! Merges stacks into a tree: the boxes of a flame graph, and the callers below each line of a table.
//!
//! Branches with few bytes are left out. A function and its only significant caller share a line:
//!
//! ```text
//! site            30.0 MiB     the source line that allocated
//!   ← a ← b                    a called it, and b called a; each is the only caller, so 30.0 MiB too
//!     ← c         20.0 MiB     c and d called b
//!     ← d ← main  10.0 MiB
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use vellum_report::table::columns;
use vellum_wire::held::Amount;

/// If a node's heaviest branch has this share, in percent, the other branches get no line.
const SOLE_PERCENT: u128 = 95;
/// Columns of an indent.
const INDENT: usize = 2;

/// A function, the memory allocated through it, and the functions one step further.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    pub(super) amount: Amount,
    pub(super) next: BTreeMap<&'a str, Node<'a>>,
}

/// A line of the tree: a chain of functions, each one step further than the last.
#[derive(Debug)]
pub(super) struct Line<'a> {
    depth: usize,
    names: Vec<&'a str>,
    /// `None` if it equals the amount in the line above.
    pub(super) amount: Option<Amount>,
}

impl<'a> Node<'a> {
    pub(super) fn add(&mut self, names: impl IntoIterator<Item = &'a str>, amount: Amount) {
        self.amount = self.amount.plus(amount);
        let mut at = self;
        for name in names {
            at = at.next.entry(name).or_default();
            at.amount = at.amount.plus(amount);
        }
    }

    /// The next functions with at least `least` bytes, the largest first.
    pub(super) fn heaviest(&self, least: u64) -> Vec<(&'a str, &Node<'a>)> {
        let next = self.next.iter().map(|(name, node)| (*name, node));
        let mut next: Vec<_> = next.filter(|(_, node)| node.amount.bytes >= least).collect();
        next.sort_by_key(|(_, node)| Reverse(node.amount.bytes));
        next
    }

    /// The chain of functions from here on without significant siblings, and its last node.
    fn chain(&self, least: u64) -> (Vec<&'a str>, &Node<'a>) {
        let (mut names, mut at) = (Vec::new(), self);
        while let [(name, next)] = at.heaviest(least)[..]
            && u128::from(next.amount.bytes) * 100 >= u128::from(at.amount.bytes) * SOLE_PERCENT
        {
            names.push(name);
            at = next;
        }
        (names, at)
    }

    pub(super) fn below(&self, depth: usize, least: u64, lines: &mut Vec<Line<'a>>) {
        let (names, end) = self.chain(least);
        let is_sole = !names.is_empty();
        if is_sole {
            lines.push(Line { depth, names, amount: None });
        }
        for (name, node) in end.heaviest(least) {
            let (chain, end) = node.chain(least);
            let depth = depth + usize::from(is_sole);
            lines.push(Line { depth, names: [vec![name], chain].concat(), amount: Some(node.amount) });
            // From here on there are several branches, each with figures.
            end.below(depth + 1, least, lines);
        }
    }
}

impl Line<'_> {
    /// The functions after arrows, as many as fit into `room` columns.
    pub(super) fn text(&self, arrow: char, room: usize) -> String {
        let mut text = " ".repeat(INDENT * self.depth);
        for (at, name) in self.names.iter().enumerate() {
            let step = format!("{}{arrow} {name}", if at == 0 { "" } else { " " });
            let more = if at + 1 < self.names.len() { INDENT + 2 } else { 0 };
            if at > 0 && columns(&text) + columns(&step) + more > room {
                return format!("{text} {arrow} …");
            }
            text += &step;
        }
        text
    }
}
