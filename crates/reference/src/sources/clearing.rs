//! Clears the accessed bits of a process, for the sources that count these bits afterwards.
//!
//! Writing 1 to `/proc/PID/clear_refs` clears the bits of a whole process of the same user, and locks its
//! mappings: the process waits if it changes them meanwhile (the *stall*). The TLB is flushed afterwards if
//! the kernel permits that without side effects ([`stale`](super::stale)).
//!
//! Invariant: an open file belongs to the process that it was opened for, never to its pid's next owner.

use super::accessed::thread_cpu;
use super::stale::{LEFT, has_soft_dirty};
use crate::source::{SourceError, Spent};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Instant;
use vellum_kernel::Pid;

const FILES_HELD_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Clearing {
    /// True if translations are flushed, by a walk that changes nothing; false if a flush would, or may, cost
    /// the process its soft-dirty bits.
    flushes: bool,
    held: HashMap<Pid, File>,
}

impl Clearing {
    pub(super) fn new() -> Clearing {
        Clearing { flushes: matches!(has_soft_dirty(), Ok(false)), held: HashMap::new() }
    }

    /// The error of counts due to translations that survive a clearing.
    pub(super) fn caveat(&self) -> Option<&'static str> {
        (!self.flushes).then_some(LEFT)
    }

    pub(super) fn clear(&mut self, pid: Pid) -> Result<Spent, SourceError> {
        let failed = |source| SourceError::of("clear the accessed bits", pid, source);
        let (began, cpu) = (Instant::now(), thread_cpu());
        let opened;
        let file = match self.held.get(&pid) {
            Some(file) => file,
            None => {
                opened = OpenOptions::new().write(true).open(pid.file("clear_refs")).map_err(failed)?;
                if self.held.len() < FILES_HELD_MAX {
                    self.held.entry(pid).or_insert(opened)
                } else {
                    &opened
                }
            }
        };
        file.write_all_at(b"1", 0).map_err(failed)?;
        if self.flushes {
            file.write_all_at(b"4", 0).map_err(failed)?;
        }
        Ok(Spent { cpu: thread_cpu().saturating_sub(cpu), stall: began.elapsed() })
    }

    pub(super) fn discard(&mut self, pid: Pid) {
        self.held.remove(&pid);
    }
}
