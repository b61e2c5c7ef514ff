//! Folded stacks: a line a stack, its functions outermost first, and its bytes.

use super::args::When;
use super::observed::{Stacked, names};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The lines.
pub(crate) fn render(stacks: &[Stacked], when: When) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks {
        let bytes = when.of(&stack.holding).bytes;
        if bytes > 0 {
            let names: Vec<String> = names(stack).iter().map(|name| name.replace([';', '\n'], ":")).collect();
            *lines.entry(names.join(";")).or_default() += bytes;
        }
    }
    lines.into_iter().fold(String::new(), |mut text, (stack, bytes)| {
        let _ = writeln!(text, "{stack} {bytes}");
        text
    })
}
