//! The three benchmark programs (clients) of Cooper et al. 1992, with their memory and work.
//!
//! The paper had 11 MB free for the heap. Here the memory is an option, given to each client as the
//! argument `memory=` (MiB), from which it computes the size of its live data.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Its file in `clients/`, and its name in the paper's tables.
    pub(super) name: &'static str,
    /// The paper's figures: live size, results, original without copy-back, modified with it.
    pub(super) figures: [u32; 4],
    /// Approximate KiB that it allocates for each MiB of memory.
    pub(super) allocated_kib: u64,
    /// Whether its heap should exceed the memory.
    pub(super) pages: bool,
    /// Whether it keeps the same live data with less work.
    pub(super) scales: bool,
}

/// All clients, in the paper's order.
pub(super) const CLIENTS: [Client; 3] = [
    Client { name: "compiler", figures: [1, 2, 3, 4], allocated_kib: 33_000, pages: true, scales: true },
    // With less work it would have fewer items to sort.
    Client { name: "sort", figures: [5, 6, 7, 8], allocated_kib: 7_700, pages: true, scales: false },
    Client { name: "primes", figures: [9, 10, 11, 12], allocated_kib: 80_000, pages: false, scales: true },
];

/// The memory and the amount of work of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// The counterpart of the paper's 11 MB.
    pub(super) memory_mib: u32,
    /// Percent of the clients' work.
    pub(super) work: u32,
}

impl Size {
    /// The memory in bytes.
    pub(super) fn memory(self) -> u64 {
        u64::from(self.memory_mib) << 20
    }
}

impl Client {
    /// Percent of its work.
    pub(super) fn work(&self, size: Size) -> u32 {
        if self.scales { size.work } else { 100 }
    }

    pub(super) fn words(&self, size: Size) -> Vec<String> {
        vec![format!("memory={}", size.memory_mib), format!("scale={}", self.work(size))]
    }
}
