//! Newtypes of two quantities that must not be mixed: pages and ticks.
//!
//! Fractional quantities (mean working-set sizes in pages, fault rates per tick, the delay S in ticks) are
//! plain `f64`, with the unit documented at each use.

use serde::{Deserialize, Serialize};

/// A page's number: its address divided by the page size, or any other number that identifies the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Page(pub u64);

/// A point in a job's virtual time, or a length of it.
///
/// The source of the references determines the unit: one instruction, one reference, one nanosecond of user
/// CPU time. Time spent in faults, in eviction and in waiting is *not* virtual time. If it counted, every
/// page's window would end early, and the estimate would destroy itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Ticks(pub u64);

impl Ticks {
    /// The time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }

    /// The number as a float, for arithmetic with rates.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}
