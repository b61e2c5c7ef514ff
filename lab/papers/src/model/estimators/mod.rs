//! Two estimators, by accessed bits, of a job's window (how long unused pages stay): Nishigaki's and
//! Vellum's.
//!
//! ```text
//!   accessed bits ─▶ Counters ──▶ w(t, T) ─┬─▶ Estimator ─▶ Owe     the paper's: three intervals of history
//!                   (ages of pages)        └─▶ Control ◀─ Phase     ours: all history since the phase began
//! ```

mod control;
mod counters;
mod estimator;
mod owe;
mod phase;

pub use control::Control;
pub use counters::Counters;
pub use estimator::Estimator;
pub use owe::{Owe, Step};
pub use phase::Phase;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use vellum_workset::{Page, Ticks};

/// A number of sampling intervals Δ: the age of a page, or a window T = m·Δ (equation 3.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quanta(pub u32);

impl Quanta {
    /// This many intervals of `delta`.
    #[must_use]
    pub fn of(self, delta: Ticks) -> Ticks {
        Ticks(u64::from(self.0).saturating_mul(delta.0))
    }
}

/// A table with a value for each page.
pub type PageTable<V> = HashMap<Page, V, BuildHasherDefault<PageHasher>>;

/// A hash that is the same in every process, so that iterations over a table repeat.
#[derive(Debug, Clone, Default)]
pub struct PageHasher(u64);

impl Hasher for PageHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = vellum_random::scatter(self.0 ^ number);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
