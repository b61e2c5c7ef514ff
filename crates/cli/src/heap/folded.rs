//! Writes folded stacks for flame graph tools: each line has a stack's functions, outermost first, and a sum.

use super::args::When;
use super::observed::{Stacked, names};
use std::collections::BTreeMap;

/// The folded lines of the memory that stacks hold.
pub(super) fn render(stacks: &[Stacked], when: When) -> String {
    let held = stacks.iter().filter(|stack| when.of(&stack.holding).bytes > 0);
    folded(held.map(|stack| (names(stack).into_iter(), when.of(&stack.holding).bytes as f64)))
}

/// The folded lines of stacks with numbers. Equal stacks are summed.
pub(crate) fn folded<N: AsRef<str>>(stacks: impl Iterator<Item = (impl Iterator<Item = N>, f64)>) -> String {
    let mut lines: BTreeMap<String, f64> = BTreeMap::new();
    for (names, number) in stacks {
        let names: Vec<String> = names.map(|name| name.as_ref().replace([';', '\n'], ":")).collect();
        *lines.entry(names.join(";")).or_default() += number;
    }
    lines.iter().map(|(stack, number)| format!("{stack} {number:.0}\n")).collect()
}
