//! Reads the counts that only `smaps` has: memory shared with other processes, and memory in huge pages.
//! These are read rarely, because `smaps` walks over all pages, and the counts change little.

use super::accessed::Smaps;
use crate::source::{Count, SourceError};
use std::collections::{HashMap, HashSet};
use vellum_kernel::{Bytes, Pid};

/// Looks between two readings.
const EVERY: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Aside {
    smaps: Smaps,
    known: HashMap<Pid, Count>,
    /// For how many more looks the counts are used.
    looks: u32,
}

impl Aside {
    /// A look at a whole job begins. The shared memory of a process that has ended cannot be subtracted from
    /// the others' counts, so all are read again then.
    pub(super) fn begin(&mut self, job: &[Pid]) {
        let there: HashSet<&Pid> = job.iter().collect();
        if self.looks == 0 || self.known.keys().any(|pid| !there.contains(pid)) {
            self.known.clear();
            self.smaps.begin();
            self.looks = EVERY;
        }
        self.looks -= 1;
    }

    /// The process as `smaps` had it at the last look-up.
    pub(super) fn of(&mut self, pid: Pid) -> Result<Count, SourceError> {
        if let Some(count) = self.known.get(&pid) {
            return Ok(*count);
        }
        let count = self.smaps.count(pid)?;
        self.known.insert(pid, count);
        Ok(count)
    }

    /// Memory that the processes, `all` in sum, have counted more than once. References were read at one
    /// moment of a cycle; the part counted more than once is assumed to be the same at other moments.
    pub(super) fn twice(&mut self, all: &Count) -> Count {
        let mut then = Count::default();
        self.known.values().for_each(|count| then += *count);
        let twice = self.smaps.twice();
        let part = |of: Bytes, twice: Bytes, then: Bytes| {
            Bytes((of.0 as f64 * (twice.0 as f64 / then.0.max(1) as f64).min(1.0)) as u64)
        };
        Count {
            referenced: part(all.referenced, twice.referenced, then.referenced),
            resident: part(all.resident, twice.resident, then.resident),
            shared: part(all.shared, twice.shared, then.shared),
            ..Count::default()
        }
    }

    pub(super) fn discard(&mut self, pid: Pid) {
        self.smaps.discard(pid);
        if self.known.remove(&pid).is_some() {
            self.looks = 0;
        }
    }
}
