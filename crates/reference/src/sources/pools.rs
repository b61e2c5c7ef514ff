//! Corrects the counts of a job for memory that its processes share, so that this memory counts only once.
//!
//! Each process has its own accessed bits, so a page that eight processes have mapped is in eight counts.
//! `smaps` has, for each mapping, the part that other processes have also mapped. Two processes of the job
//! are assumed to share a mapping in these cases:
//! - the same shared object (shared memory, a file);
//! - the same offset in the same program or library;
//! - private memory at the same addresses, which they share since a fork.
//!
//! ```text
//! resident    U = Σ of each process's proportional part (Pss), at least the largest resident size of one
//! referenced  U · (1 − Π (1 − rᵢ / U))      rᵢ: referenced by process i, independently of the others
//! ```
//!
//! The referenced part is exact if each process uses all shared memory, or if only one uses it. References
//! to a program's text are not counted ([`Count::shared`]); only the resident size of text is counted here.
//!
//! Limit: unrelated processes may have private memory at the same addresses by chance. Address-space
//! randomisation makes that unlikely; if it happens, a little memory is wrongly counted as shared.

use crate::source::Count;
use std::collections::HashMap;
use vellum_kernel::Bytes;
use vellum_kernel::mapping::Mapping;

#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) mapping: Mapping<'a>,
    pub(super) resident: Bytes,
    pub(super) referenced: Bytes,
    /// That part, with each page divided by the number of its mappings.
    pub(super) part: Bytes,
    /// True for a program or a library: no page of it counts as referenced.
    pub(super) is_of_program: bool,
}

#[derive(Debug, Default)]
pub(super) struct Pools(HashMap<Key, Pool>);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The offset in a file, its device and its inode.
    File(u64, Vec<u8>, Vec<u8>),
    /// The addresses.
    Place(u64, u64),
}

#[derive(Debug, Default)]
struct Pool {
    resident: Bytes,
    parts: Bytes,
    most: Bytes,
    referenced: Vec<Bytes>,
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

    pub(super) fn twice(&self) -> Count {
        let mut twice = Count::default();
        for pool in self.0.values().filter(|pool| pool.referenced.len() > 1) {
            let once = pool.parts.max(pool.most).min(pool.resident).max(Bytes(1));
            let resident = Bytes(pool.resident.0.saturating_sub(once.0));
            if pool.is_of_program {
                twice += Count { resident, shared: resident, ..Count::default() };
                continue;
            }
            let unused = |of: &Bytes| 1.0 - (of.0 as f64 / once.0 as f64).min(1.0);
            let used = once.0 as f64 * (1.0 - pool.referenced.iter().map(unused).product::<f64>());
            let sum: Bytes = pool.referenced.iter().copied().sum();
            let referenced = Bytes(sum.0.saturating_sub(used.round() as u64));
            twice += Count { resident, referenced, ..Count::default() };
        }
        twice
    }
}

fn key(shared: &Shared<'_>) -> Key {
    let Mapping { start, end, offset, device, inode, .. } = shared.mapping;
    match shared.is_of_program || !shared.mapping.is_private() {
        true => Key::File(offset, device.to_vec(), inode.to_vec()),
        false => Key::Place(start, end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(line: &str, resident: u64, referenced: u64, part: u64) -> Shared<'_> {
        let [resident, referenced, part] = [resident, referenced, part].map(Bytes::from_kib);
        let mapping = Mapping::parse(line.as_bytes()).unwrap();
        Shared { mapping, resident, referenced, part, is_of_program: false }
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
