//! The observations of one run of `vellum cost`, from which the text, the totals and the JSON are made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use vellum_cost::{ALLOCATOR, Item, Profile, Wrappers};
use vellum_process::Ended;

#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) command: Vec<String>,
    pub(crate) program: PathBuf,
    /// The exit status and the resource usage.
    pub(crate) ended: Ended,
    pub(crate) profile: Profile,
    /// True if the program allocated from Vellum.
    pub(crate) on_vellum: bool,
    /// Source files that were changed after a module was compiled from them, and that module.
    pub(crate) newer: BTreeMap<Arc<str>, PathBuf>,
    pub(crate) notes: Vec<String>,
}

impl Observed {
    /// The total nanoseconds of an item's operations. A page fault costs the time of a fault on fresh memory;
    /// a fault inside a timed operation is already in that operation's time.
    pub(crate) fn cost_ns(&self, item: &Item) -> f64 {
        static WRAPPERS: LazyLock<Wrappers> = LazyLock::new(|| Wrappers::new(Vec::new()));
        let is_inside = |via: &str| via == ALLOCATOR || WRAPPERS.has(via);
        let each = || match item.cause.via.as_deref() {
            Some(via) if is_inside(via) => 0.0,
            _ => self.profile.minor_fault_ns.unwrap_or(0.0),
        };
        item.total_ns().unwrap_or_else(|| item.count as f64 * each())
    }

    /// The total nanoseconds of all items.
    pub(crate) fn all_ns(&self) -> f64 {
        self.profile.items.iter().map(|item| self.cost_ns(item)).sum()
    }
}
