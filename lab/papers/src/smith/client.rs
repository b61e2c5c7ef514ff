//! The eight benchmark programs (clients) of Table 1 of Smith 1998.

/// A client: a benchmark program.
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

const fn client(name: &'static str, title: &'static str, heap_mib: u64) -> Client {
    Client { name, title, heap_mib, quick_percent: QUARTER }
}

/// All clients, in the paper's order.
pub const CLIENTS: [Client; 8] = [
    client("checksum", "Checksum", 8),
    client("kb", "Knuth-Bendix", 16),
    client("lexgen", "Lexgen", 8),
    client("life", "Life", 8),
    client("logic", "Logic", 8),
    client("mergesort", "Mergesort", 8),
    client("pia", "Pia", 8),
    Client { quick_percent: GROWN, ..client("groebner", "Groebner", 32) },
];
