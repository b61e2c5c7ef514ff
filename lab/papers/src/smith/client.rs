//! The eight clients of Table 1 of Smith 1998.

use super::published::{CHECKSUM, GROEBNER, KNUTH_BENDIX, LEXGEN, LIFE, LOGIC, MERGESORT, PIA, Published};

/// A client.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Its file in `clients/`, without the ending, and its name in cells.
    pub name: &'static str,
    /// Its name in the paper.
    pub title: &'static str,
    /// The canonical size of its heap (Table 2), MiB.
    pub heap_mib: u64,
    /// Percentage of its work in a quick run.
    pub quick_percent: u32,
    pub(super) published: Published,
}

impl Client {
    /// These heap sizes and the canonical one, in MiB, each once, in order.
    pub(super) fn sizes(&self, heaps: &[u64]) -> Vec<u64> {
        let mut sizes = heaps.to_vec();
        sizes.push(self.heap_mib);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// A quarter of the work is representative if live data do not depend on the work …
const QUARTER: u32 = 25;
/// … and Groebner, whose live data do, needs more.
const GROWN: u32 = 60;

const fn client(name: &'static str, title: &'static str, heap_mib: u64, published: Published) -> Client {
    Client { name, title, heap_mib, quick_percent: QUARTER, published }
}

/// All clients, in the paper's order.
pub const CLIENTS: [Client; 8] = [
    client("checksum", "Checksum", 8, CHECKSUM),
    client("kb", "Knuth-Bendix", 16, KNUTH_BENDIX),
    client("lexgen", "Lexgen", 8, LEXGEN),
    client("life", "Life", 8, LIFE),
    client("logic", "Logic", 8, LOGIC),
    client("mergesort", "Mergesort", 8, MERGESORT),
    client("pia", "Pia", 8, PIA),
    Client { quick_percent: GROWN, ..client("groebner", "Groebner", 32, GROEBNER) },
];
