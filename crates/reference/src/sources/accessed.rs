//! The default source: accessed bits of page tables, through two files of `/proc`.
//!
//! The processor sets a bit in a page's table entry when the page is touched. Writing 1 to
//! `/proc/PID/clear_refs` clears these bits of a whole process. `smaps_rollup` then adds up, as `Referenced`,
//! the pages whose bit is set again. Both files work for processes of the same user, from any thread, without
//! stopping the processes.
//!
//! Pages of files also have flags that any process sets, so the C library's pages count as referenced even
//! if only other processes use them. That is an error of one MiB and more. `smaps` has the counts for each
//! mapping, so the shared part of a program's text and libraries can be left out. Reading `smaps` costs more
//! for each mapping; this is done only if shared pages exceed [`SHARED_PART`] of resident memory.
//!
//! Costs per 4 KiB page: 60 to 100 ns to clear, 60 to 100 ns to count, and [`REARM`] of the process's own
//! user time to set a bit again. During the clearing, the process waits if it changes its mappings, which
//! are locked (the *stall*).
//!
//! References that are not counted:
//! - On kernels with soft-dirty bits, hot pages for some time after a clearing: their translations stay in
//!   the TLB, and accesses through those set no bit ([`stale`](super::stale)). Δ, the smallest window, is
//!   therefore at least 50 ms ([`crate::DELTA_MIN`]).
//! - `read` and `write` of files that are not mapped.
//! - Parts of huge pages: one bit stands for 2 MiB.
//! - Other processes' accesses to a shared page: each process has its own bits. Memory that processes of a
//!   job share counts once ([`super::pools`]).
//!
//! Source: proc(5); Nishigaki 1981 (see `vellum_workset`), section 3, for sampling accessed bits.

use super::clearing::Clearing;
use super::pools::{Pools, Shared};
use crate::source::{Count, PerProcess, SourceError, SourceKind, Spent};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::time::Duration;
use vellum_kernel::mapping::{Mapping, Sizes, smaps};
use vellum_kernel::{Bytes, Pid};

/// The cost to the process of setting an accessed bit again, per page: 170 to 210 ns on one machine, 300 to
/// 480 ns on another, a virtual machine with nested page tables. This is near the larger, to keep within the
/// budget.
pub(crate) const REARM: Duration = Duration::from_nanos(400);
/// The cost of counting a page by `smaps`, until it is measured.
const COUNT: Duration = Duration::from_nanos(70);
const ROLLUP_BYTES: usize = 4096;
const SMAPS_BYTES_MAX: u64 = 256 << 20;
/// Shared pages that are a smaller part than this of the resident memory are not left out.
const SHARED_PART: f64 = 0.01;

/// Accessed bits by `clear_refs` and `smaps_rollup`.
#[derive(Debug)]
pub struct AccessedBits {
    clearing: Clearing,
    /// Processes that share so little that the sum over all mappings will do.
    by_sum: HashSet<Pid>,
    pools: Pools,
    text: Vec<u8>,
}

impl Default for AccessedBits {
    fn default() -> AccessedBits {
        AccessedBits {
            clearing: Clearing::new(),
            by_sum: HashSet::new(),
            pools: Pools::default(),
            text: Vec::new(),
        }
    }
}

impl PerProcess for AccessedBits {
    fn kind(&self) -> SourceKind {
        SourceKind::AccessedBits
    }

    fn clear(&mut self, pid: Pid) -> Result<Spent, SourceError> {
        self.clearing.clear(pid)
    }

    fn count(&mut self, pid: Pid) -> Result<(Count, Spent), SourceError> {
        let by_sum = self.by_sum.contains(&pid);
        let (name, operation) =
            if by_sum { ("smaps_rollup", "read smaps_rollup") } else { ("smaps", "read smaps") };
        let failed = |source| SourceError::of(operation, pid, source);
        let cpu = thread_cpu();
        self.text.clear();
        self.text.reserve(ROLLUP_BYTES);
        // Opened anew each time: an open one stays with the memory of before an execve.
        let file = File::open(pid.file(name)).map_err(failed)?;
        file.take(SMAPS_BYTES_MAX).read_to_end(&mut self.text).map_err(failed)?;
        // A process that is ending has no memory left and an empty file.
        let pools = &mut self.pools;
        let (count, shared) = each(&self.text, |shared| pools.add(shared)).ok_or(SourceError::Ended(pid))?;
        if shared.0 as f64 > count.resident.0 as f64 * SHARED_PART {
            self.by_sum.remove(&pid);
        } else {
            self.by_sum.insert(pid);
        }
        // The kernel lets go of its lock for reading when somebody waits for it.
        Ok((count, Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() }))
    }

    fn begin(&mut self, _: &[Pid]) {
        self.pools = Pools::default();
    }

    fn twice(&mut self, _: &Count) -> Count {
        self.pools.twice()
    }

    fn discard(&mut self, pid: Pid) {
        self.clearing.discard(pid);
        self.by_sum.remove(&pid);
    }

    fn caveat(&self) -> Option<&'static str> {
        self.clearing.caveat()
    }

    fn count_a_page(&self) -> Duration {
        COUNT
    }

    fn penalty_a_page(&self) -> Duration {
        REARM
    }
}

/// The counts in `smaps` or `smaps_rollup`, and all shared memory; `None` of an empty file.
pub(crate) fn parse(text: &[u8]) -> Option<(Count, Bytes)> {
    each(text, |_| {})
}

/// The same. Calls `tell` with each mapping that processes may share with each other.
fn each(text: &[u8], mut tell: impl FnMut(&Shared<'_>)) -> Option<(Count, Bytes)> {
    let (mut count, mut shared, mut any) = (Count::default(), Bytes(0), false);
    for (mapping, sizes) in smaps(text) {
        count += counted(mapping, &sizes, &mut tell);
        shared += sizes.shared;
        any = true;
    }
    any.then_some((count, shared))
}

fn counted(mapping: Mapping<'_>, sizes: &Sizes, tell: &mut impl FnMut(&Shared<'_>)) -> Count {
    let shared = sizes.shared.min(sizes.resident);
    // A program's text and data, and its libraries'.
    let is_of_program = mapping.is_private() && mapping.is_of_file();
    let own = Bytes(sizes.resident.0 - shared.0);
    if shared > Bytes(0) {
        tell(&Shared {
            mapping,
            resident: shared,
            referenced: part(sizes.referenced, shared, sizes.resident),
            part: Bytes(sizes.proportional.0.saturating_sub(own.0)),
            is_of_program,
        });
    }
    let left_out = if is_of_program { shared } else { Bytes(0) };
    // Which of its pages were referenced is not known: they are taken to be spread evenly.
    let referenced =
        if left_out == Bytes(0) { sizes.referenced } else { part(sizes.referenced, own, sizes.resident) };
    Count {
        referenced,
        resident: sizes.resident,
        huge: sizes.huge,
        swapped: sizes.swapped,
        shared: left_out,
        twice: Bytes(0),
    }
}

fn part(all: Bytes, of: Bytes, whole: Bytes) -> Bytes {
    let part = u128::from(all.0) * u128::from(of.0) / u128::from(whole.0);
    Bytes(u64::try_from(part).unwrap_or(u64::MAX))
}

pub(crate) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP: &[u8] = b"55d0-7ffe ---p 00000000 00:00 0                          [rollup]\n\
        Rss:                5000 kB\nPss:                 306 kB\nReferenced:         4000 kB\n\
        Anonymous:           112 kB\nAnonHugePages:      2048 kB\nShmemPmdMapped:        0 kB\n\
        FilePmdMapped:         0 kB\nShared_Clean:        40 kB\nSwap:                 12 kB\n";
    const SMAPS: &[u8] = b"55d0-55e0 r-xp 00001000 fe:00 77     /usr/bin/x\n\
        Size:   200 kB\nRss:     100 kB\nShared_Clean:   75 kB\nReferenced:  80 kB\nVmFlags: rd ex mr\n\
        7f00-7f10 rw-p 00000000 00:00 0 \n\
        Rss:     1000 kB\nShared_Dirty:   500 kB\nReferenced:  900 kB\nVmFlags: rd wr mr\n\
        7f20-7f30 rw-s 00000000 00:01 9      /dev/shm/a b\n\
        Rss:     10 kB\nShared_Dirty:   10 kB\nReferenced:  10 kB\nVmFlags: rd wr sh\n";

    #[test]
    fn the_lines_that_matter_are_found() {
        let (count, shared) = parse(ROLLUP).unwrap();
        assert_eq!((count.resident, count.referenced), (Bytes(5000 << 10), Bytes(4000 << 10)));
        assert_eq!((count.huge, count.swapped), (Bytes(2048 << 10), Bytes(12 << 10)));
        assert_eq!((count.shared, shared), (Bytes(0), Bytes(40 << 10)));
        assert_eq!(parse(b""), None, "an ending process has nothing");
    }

    #[test]
    fn what_libraries_share_is_left_out_and_what_a_job_shares_is_not() {
        let (count, shared) = parse(SMAPS).unwrap();
        assert_eq!((count.resident, count.shared), (Bytes(1110 << 10), Bytes(75 << 10)));
        // A quarter of the program's 80 KiB, all of its heap (forked or not) and of the memory it shares on
        // purpose.
        assert_eq!(count.referenced, Bytes((20 + 900 + 10) << 10));
        assert_eq!(shared, Bytes(585 << 10));
    }

    #[test]
    fn what_processes_share_with_each_other_counts_once() {
        let mut source = AccessedBits::default();
        for _ in 0..2 {
            each(SMAPS, |shared| source.pools.add(shared)).unwrap();
        }
        // Both have all 10 KiB of the shared mapping, and used all of it; of the 500 KiB that they have of a
        // forked heap, nine tenths each, which leaves a hundredth that neither used. The program's text is 75
        // KiB.
        let twice = source.twice(&Count::default());
        assert_eq!((twice.resident, twice.shared), (Bytes(585 << 10), Bytes(75 << 10)));
        assert_eq!(twice.referenced, Bytes((10 + 900 - 495) << 10));
        source.begin(&[]);
        assert_eq!(source.twice(&Count::default()), Count::default());
    }
}
