//! Tests that each crate, the product (`crates`) and all workspaces have no more lines of Rust than budgeted.
//!
//! `budgets.txt` has a line for each crate. The budgets of the product and of the workspaces may only be
//! lowered. A crate that becomes smaller gets a lower budget; a new feature needs the removal of other code.

use super::{house, read, sources};
use std::collections::BTreeMap;

/// Lines of the product: all that is in `crates`.
const PRODUCT_MAX: usize = 140_000;
/// Lines of the three workspaces.
const ALL_MAX: usize = 178_000;

fn budgets() -> BTreeMap<String, usize> {
    let table = house::root().join("crates/conformance/budgets.txt");
    let row = |line: &str| {
        let (name, lines) = line.split_once(' ').expect("a crate and its lines");
        (name.to_owned(), lines.trim().parse().expect("a number of lines"))
    };
    read(&table).lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

#[test]
fn crates_keep_their_budgets() {
    let budgets = budgets();
    let lines: BTreeMap<String, usize> = sources(&["rs"])
        .into_iter()
        .map(|(name, files)| (name, files.iter().map(|path| read(path).lines().count()).sum()))
        .collect();
    let mut faults = Vec::new();
    for (name, &lines) in &lines {
        match budgets.get(name) {
            Some(&budget) if lines <= budget => {}
            Some(budget) => faults.push(format!("{name} has {lines} lines, {budget} at most")),
            None => faults.push(format!("{name} has no budget in crates/conformance/budgets.txt")),
        }
    }
    faults.extend(
        budgets.keys().filter(|name| !lines.contains_key(*name)).map(|name| format!("no crate {name}")),
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    let product: usize =
        lines.iter().filter(|(name, _)| name.starts_with("crates/")).map(|(_, lines)| lines).sum();
    let all: usize = lines.values().sum();
    assert!(product <= PRODUCT_MAX, "the product has {product} lines, {PRODUCT_MAX} at most");
    assert!(all <= ALL_MAX, "the repository has {all} lines, {ALL_MAX} at most");
}
