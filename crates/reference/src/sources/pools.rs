//! Memory that several processes of a job share: counted once.
//!
//! Each process has accessed bits of its own, so a page that eight of them have mapped is in eight counts.
//! `smaps` says of each mapping how much of it others have mapped too. Two processes of a job share a mapping
//! if it is of the same shared object (shared memory, a file), of the same place in the same program or
//! library, or private memory at the same place, which a fork has left to both.
//!
//! ```text
//! resident    U = Σ of the parts that each counts as its own (Pss), at least what one of them has
//! referenced  U · (1 − Π (1 − rᵢ / U))      processes are taken to use parts of it independently
//! ```
//!
//! That is exact where each uses all of it, or only one of them uses it; in between it is at most the sum,
//! and at least the most that one of them used. References of a program's text are left out of the counts
//! ([`Count::shared`]), so of that only what is resident counts here.
//!
//! Departure: address-space randomisation makes it unlikely, not impossible, that two unrelated processes
//! have forked memory at the same place; then a little is taken for shared that is not.

use crate::source::Count;
use std::collections::HashMap;
use vellum_process::Bytes;

/// A mapping that is shared, in KiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    /// Its first line: `from-to rights offset device inode name`.
    pub(super) line: &'a [u8],
    /// What of it is resident and shared.
    pub(super) resident: u64,
    pub(super) referenced: u64,
    /// That, with each page divided by how often it is mapped.
    pub(super) part: u64,
    /// Of a program or a library: nothing of it counts as referenced.
    pub(super) is_of_program: bool,
}

/// All that is shared at one look.
#[derive(Debug, Default)]
pub(super) struct Pools(HashMap<Vec<u8>, Pool>);

#[derive(Debug, Default)]
struct Pool {
    resident: u64,
    parts: u64,
    most: u64,
    referenced: Vec<u64>,
    is_of_program: bool,
}

impl Pools {
    /// A process has this mapping.
    pub(super) fn add(&mut self, shared: &Shared<'_>) {
        let pool = self.0.entry(key(shared)).or_default();
        pool.is_of_program = shared.is_of_program;
        pool.resident += shared.resident;
        pool.parts += shared.part;
        pool.most = pool.most.max(shared.resident);
        pool.referenced.push(shared.referenced);
    }

    /// What was counted more than once.
    pub(super) fn twice(&self) -> Count {
        let mut twice = Count::default();
        for pool in self.0.values().filter(|pool| pool.referenced.len() > 1) {
            let once = pool.parts.max(pool.most).min(pool.resident).max(1);
            let resident = Bytes::from_kib(pool.resident.saturating_sub(once));
            if pool.is_of_program {
                twice += Count { resident, shared: resident, ..Count::default() };
                continue;
            }
            let unused = |of: &u64| 1.0 - (*of as f64 / once as f64).min(1.0);
            let used = once as f64 * (1.0 - pool.referenced.iter().map(unused).product::<f64>());
            let sum: u64 = pool.referenced.iter().sum();
            twice += Count {
                resident,
                referenced: Bytes::from_kib(sum.saturating_sub(used.round() as u64)),
                ..Count::default()
            };
        }
        twice
    }
}

/// What is the same in two processes that share a mapping.
fn key(shared: &Shared<'_>) -> Vec<u8> {
    let mut words = shared.line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (from, rights) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match shared.is_of_program || rights.ends_with(b"s") {
        // Offset, device and inode.
        true => words.take(3).flat_map(|word| word.iter().copied().chain([b' '])).collect(),
        false => from.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(line: &str, resident: u64, referenced: u64, part: u64) -> Shared<'_> {
        Shared { line: line.as_bytes(), resident, referenced, part, is_of_program: false }
    }

    #[test]
    fn one_that_uses_it_alone_counts_whole_and_halves_overlap_by_chance() {
        let at = "7f00-7f10 rw-s 00000000 00:01 9    /SYSV";
        let elsewhere = "6f00-6f10 rw-s 00000000 00:01 9    /SYSV";
        let mut pools = Pools::default();
        pools.add(&shared(at, 100, 100, 50));
        pools.add(&shared(elsewhere, 100, 0, 50));
        assert_eq!((pools.twice().referenced, pools.twice().resident), (Bytes(0), Bytes(100 << 10)));
        let mut pools = Pools::default();
        pools.add(&shared(at, 100, 50, 50));
        pools.add(&shared(elsewhere, 100, 50, 50));
        assert_eq!(pools.twice().referenced, Bytes(25 << 10));
    }

    #[test]
    fn what_one_process_of_the_job_has_is_its_own() {
        let mut pools = Pools::default();
        pools.add(&shared("7f00-7f10 rw-p 00000000 00:00 0", 100, 60, 50));
        pools.add(&shared("7f20-7f30 rw-p 00000000 00:00 0", 100, 60, 50));
        assert_eq!(pools.twice(), Count::default());
    }

    #[test]
    fn text_that_processes_map_at_different_places_counts_once() {
        let text = |line: &'static str| Shared { is_of_program: true, ..shared(line, 100, 100, 20) };
        let mut pools = Pools::default();
        pools.add(&text("5500-5510 r-xp 00001000 fe:00 77     /usr/bin/x"));
        pools.add(&text("5600-5610 r-xp 00001000 fe:00 77     /usr/bin/x"));
        pools.add(&text("5700-5710 r-xp 00009000 fe:00 77     /usr/bin/x"));
        let twice = Bytes(100 << 10);
        assert_eq!(pools.twice(), Count { resident: twice, shared: twice, ..Count::default() });
    }
}
