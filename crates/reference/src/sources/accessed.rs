//! The default source: accessed bits of page tables, through two files of `/proc`.
//!
//! The processor sets a bit in a page's table entry when the page is touched. Writing 1 to
//! `/proc/PID/clear_refs` clears these bits of a whole process. `smaps_rollup` then adds up, as `Referenced`,
//! the pages whose bit is set again. Both files work for processes of the same user, from any thread, without
//! stopping the processes.
//!
//! Pages of files also have flags that any process sets, so the C library's pages count as referenced even
//! if only other processes use them. That is an error of one MiB and more. `smaps` has the counts for each
//! mapping, so the shared part of a program's text and libraries can be left out. Reading `smaps` takes
//! extra time for each mapping, so `smaps` is read only if shared pages exceed [`SHARED_PART`] of resident
//! memory.
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
//! A program in the kernel counts faster ([`super::tables`]).
//!
//! Source: proc(5); Nishigaki 1981 (see `vellum_workset`), section 3, for sampling accessed bits.
//!
//! [`REARM`]: crate::source::REARM

use super::clearing::Clearing;
use super::pools::{Pools, Shared};
use super::tables::PageTables;
use crate::source::{Count, Done, Source, SourceError, SourceKind, Spent, each as each_process};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::time::Duration;
use vellum_kernel::mapping::{Mapping, Sizes, smaps};
use vellum_kernel::{Bytes, Pid};

const ROLLUP_BYTES: usize = 4096;
const SMAPS_BYTES_MAX: u64 = 256 << 20;
/// Shared pages that are a smaller part than this of the resident memory are not left out.
const SHARED_PART: f64 = 0.01;

/// Accessed bits, cleared by `clear_refs`.
#[derive(Debug)]
pub(super) struct AccessedBits {
    clearing: Clearing,
    counter: Counter,
}

#[derive(Debug)]
enum Counter {
    Smaps(Smaps),
    Tables(PageTables),
}

impl AccessedBits {
    /// Counts them by `smaps` and `smaps_rollup`.
    pub(super) fn by_smaps() -> AccessedBits {
        AccessedBits { clearing: Clearing::new(), counter: Counter::Smaps(Smaps::default()) }
    }

    /// Counts them by a program in the kernel.
    pub(super) fn by_tables() -> Result<AccessedBits, String> {
        let counter = Counter::Tables(PageTables::open()?);
        Ok(AccessedBits { clearing: Clearing::new(), counter })
    }
}

impl Source for AccessedBits {
    fn kind(&self) -> SourceKind {
        match &self.counter {
            Counter::Smaps(_) => SourceKind::AccessedBits,
            Counter::Tables(_) => SourceKind::PageTables,
        }
    }

    fn clear(&mut self, job: &[Pid]) -> Result<Done, SourceError> {
        Ok(each_process(job, |pid| self.clearing.clear(pid).map(|spent| (Count::default(), spent))))
    }

    fn count(&mut self, job: &[Pid]) -> Result<Done, SourceError> {
        match &mut self.counter {
            Counter::Smaps(smaps) => smaps.begin(),
            Counter::Tables(tables) => tables.aside.begin(job),
        }
        let mut done = each_process(job, |pid| {
            let cpu = thread_cpu();
            let count = match &mut self.counter {
                Counter::Smaps(smaps) => smaps.count(pid)?,
                Counter::Tables(tables) => tables.count(pid)?,
            };
            // There is no stall: the kernel lets go of its lock for reading when somebody waits for it.
            Ok((count, Spent { cpu: thread_cpu().saturating_sub(cpu), ..Spent::default() }))
        });
        let twice = match &mut self.counter {
            Counter::Smaps(smaps) => smaps.twice(),
            Counter::Tables(tables) => tables.aside.twice(&done.count),
        };
        done.count.take_off(&twice);
        Ok(done)
    }

    fn discard(&mut self, pid: Pid) {
        self.clearing.discard(pid);
        match &mut self.counter {
            Counter::Smaps(smaps) => smaps.discard(pid),
            Counter::Tables(tables) => tables.aside.discard(pid),
        }
    }

    fn caveat(&self) -> Option<&'static str> {
        self.clearing.caveat()
    }
}

/// Counts by `smaps` and `smaps_rollup`.
#[derive(Debug, Default)]
pub(super) struct Smaps {
    /// Processes that share so little that the sum over all mappings will do.
    by_sum: HashSet<Pid>,
    pools: Pools,
    text: Vec<u8>,
}

impl Smaps {
    /// A look at a whole job begins.
    pub(super) fn begin(&mut self) {
        self.pools = Pools::default();
    }

    pub(super) fn count(&mut self, pid: Pid) -> Result<Count, SourceError> {
        let by_sum = self.by_sum.contains(&pid);
        let (name, operation) =
            if by_sum { ("smaps_rollup", "read smaps_rollup") } else { ("smaps", "read smaps") };
        let failed = |source| SourceError::of(operation, pid, source);
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
        Ok(count)
    }

    /// What the processes counted since the beginning of the look have counted more than once, since they
    /// share it: as `referenced`, `resident` and `shared`.
    pub(super) fn twice(&self) -> Count {
        self.pools.twice()
    }

    pub(super) fn discard(&mut self, pid: Pid) {
        self.by_sum.remove(&pid);
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
        let mut source = Smaps::default();
        for _ in 0..2 {
            each(SMAPS, |shared| source.pools.add(shared)).unwrap();
        }
        // Both have all 10 KiB of the shared mapping, and used all of it; of the 500 KiB that they have of a
        // forked heap, nine tenths each, which leaves a hundredth that neither used. The program's text is 75
        // KiB.
        let twice = source.twice();
        assert_eq!((twice.resident, twice.shared), (Bytes(585 << 10), Bytes(75 << 10)));
        assert_eq!(twice.referenced, Bytes((10 + 900 - 495) << 10));
        source.begin();
        assert_eq!(source.twice(), Count::default());
    }
}
