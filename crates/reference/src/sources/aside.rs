//! Counts that only `smaps` has: memory shared with other processes, and memory in huge pages. Read now and
//! then, since it costs a walk over all pages, and changes little.

use super::accessed::AccessedBits;
use crate::source::{Count, PerProcess, SourceError};
use std::collections::HashMap;
use vellum_process::Pid;

/// It is read once in this many looks.
const EVERY: u32 = 64;

/// What was looked up last.
#[derive(Debug, Default)]
pub(super) struct Aside {
    smaps: AccessedBits,
    /// The counts of each process, and for how many more looks they are used.
    known: HashMap<Pid, (Count, u32)>,
}

impl Aside {
    /// The process as `smaps` had it at the last look-up.
    pub(super) fn of(&mut self, pid: Pid) -> Result<Count, SourceError> {
        if let Some((count, looks)) = self.known.get_mut(&pid)
            && *looks > 0
        {
            *looks -= 1;
            return Ok(*count);
        }
        self.smaps.begin();
        let count = self.smaps.count(pid)?.0;
        self.known.insert(pid, (count, EVERY - 1));
        Ok(count)
    }

    pub(super) fn forget(&mut self, pid: Pid) {
        self.smaps.forget(pid);
        self.known.remove(&pid);
    }
}
