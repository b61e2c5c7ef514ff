//! The number of frames that cgroups leave to this process, after its memory that is not paged.
//!
//! Frames beyond a cgroup's limit are useless: the kernel kills the process that takes them. The pager works
//! with fewer frames than requested where a cgroup allows no more, and with more again when there is room.
//! The limits are read at the start, twenty times a second while pages arrive, and every second otherwise.
//!
//! Frames get three quarters of the memory that the cgroup leaves to this process: its resident frames and
//! the rest of the limit. The last quarter is for unpaged memory, which may grow between two readings: small
//! blocks, stacks, the program's own mappings, the pager's records (some twenty bytes for each page of an
//! object) and the kernel's page tables. If several paged processes are in one cgroup, each leaves a quarter
//! of the rest, so together they always leave some room.
//!
//! If all memory of a process is paged, the requested frames bound the whole process. Unpageable memory is
//! then subtracted from the frames: the program's code, stacks, mappings that are not private or not
//! anonymous, the pager's records. The first [`BESIDE`] bytes of it are not subtracted. A quarter of the
//! requested frames always stays: without frames the program could not go on.

use crate::units::{FRAMES_MIN, PAGE};
use vellum_sys::limits::{Limits, SCRATCH};
use vellum_sys::{map, usage};

/// Memory beside the frames that is taken out of nothing: what a small program has.
const BESIDE: u64 = 8 << 20;
/// The part of the frames that stay, whatever is beside them.
const LEAST_PART: u32 = 4;

/// Frames get all but one of this many parts of the remaining memory.
const PARTS: u64 = 4;

/// The groups that limit this process, as read at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    limits: Limits,
}

impl Share {
    /// Looks up the groups. Without memory for that, the process counts as not limited.
    pub(crate) fn discover() -> Share {
        let Ok(scratch) = map::reserve_writable(SCRATCH) else { return Share { limits: Limits::unknown() } };
        // SAFETY: zeros that this function has mapped, and whose address no other code has.
        let limits = Limits::discover(unsafe { &mut *scratch.start.ptr::<[u8; SCRATCH]>() });
        // SAFETY: mapped by this function, which uses it no more.
        let _ = unsafe { map::release(scratch) };
        Share { limits }
    }

    /// The number of `asked` frames that may be used, of which `resident` are in memory already.
    ///
    /// They are pages of a file, which a group may count as available in part: none is counted twice.
    pub(crate) fn frames(&self, asked: u32, resident: u32) -> u32 {
        let enough = u64::from(asked) * PAGE as u64 * PARTS / (PARTS - 1);
        let available = self.limits.available(enough);
        if available.limit == u64::MAX {
            return asked;
        }
        let below_limit = self.limits.available(0).bytes;
        let own = u64::from(resident) * PAGE as u64;
        share_of(asked, available.bytes.max(below_limit.saturating_add(own)))
    }
}

fn share_of(asked: u32, available: u64) -> u32 {
    let share = available / PAGE as u64 / PARTS * (PARTS - 1);
    u32::try_from(share).unwrap_or(u32::MAX).clamp(FRAMES_MIN, asked.max(FRAMES_MIN))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// Pages, when they were looked at last.
    pages: u64,
    /// The expected growth until the next measurement: the largest recent one.
    growth: u64,
    most: u64,
}

impl Beside {
    pub(crate) const fn none() -> Beside {
        Beside { pages: 0, growth: 0, most: 0 }
    }

    /// The first value, when a pager with `asked` frames starts, mostly while libraries are still loaded.
    pub(crate) fn at_start(asked: u32) -> Beside {
        const PART: u64 = 4;
        Beside { growth: u64::from(asked) / PART, ..Beside::none().measure(0) }
    }

    /// The present value, when `resident` frames are in memory.
    pub(crate) fn measure(self, resident: u32) -> Beside {
        let Some(all) = usage::resident() else { return Beside::none() };
        self.follow(all.saturating_sub(u64::from(resident)))
    }

    fn follow(self, pages: u64) -> Beside {
        let grown = if self.pages == 0 { 0 } else { pages.saturating_sub(self.pages) };
        Beside { pages, growth: grown.max(self.growth / 8 * 7), most: self.most.max(pages) }
    }

    /// The number of `asked` frames that this leaves.
    pub(crate) fn leaves(self, asked: u32) -> u32 {
        left_of(asked, self.pages + self.growth)
    }

    pub(crate) fn most(self) -> u64 {
        self.most
    }
}

fn left_of(asked: u32, beside: u64) -> u32 {
    let more = beside.saturating_sub(BESIDE / PAGE as u64);
    let left = u64::from(asked).saturating_sub(more) as u32;
    left.max(asked / LEAST_PART).max(FRAMES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_paged_is_taken_out_of_the_frames() {
        let mib = |count: u64| (count << 20) / PAGE as u64;
        assert_eq!(left_of(4096, mib(8)), 4096);
        assert_eq!(left_of(4096, mib(12)), 3072);
        assert_eq!(left_of(4096, mib(100)), 1024, "a quarter stays");
        assert_eq!(left_of(FRAMES_MIN, mib(100)), FRAMES_MIN);
        // What grows is met half way.
        let beside = Beside::none().follow(mib(8)).follow(mib(9));
        assert_eq!(beside.leaves(4096), 4096 - 512);
        let later = beside.follow(mib(9));
        assert!((4096 - 512..4096 - 256).contains(&later.leaves(4096)));
    }

    #[test]
    fn a_quarter_is_left() {
        let mib = |count: u64| count << 20;
        assert_eq!(share_of(4096, mib(1024)), 4096, "what was asked for, where there is room");
        assert_eq!(share_of(4096, mib(16)), 3072);
        assert_eq!(share_of(4096, 0), FRAMES_MIN, "one can do with no fewer");
    }
}
