//! How many frames the control groups of this process leave it, and what of its memory is not paged.
//!
//! Frames beyond a group's limit are no frames: the kernel kills the process that takes them. So the pager
//! works with fewer than it was asked for where a group allows no more, and with more again when there is
//! room. It looks when it starts, twenty times a second while pages arrive, and every second otherwise.
//!
//! Of what the group leaves to this process, its resident frames and what may still be taken, frames get
//! three quarters. The last quarter is for what is not paged and grows beside them, between two looks: small
//! blocks, stacks, the program's own mappings, the pager's records (some twenty bytes a page of an object)
//! and the kernel's page tables. Of several paged processes in one group each leaves a quarter of what it
//! sees, so that together they leave some room, however many they are.
//!
//! Where all memory of a process is paged, frames are to be the bound of all of it. Then memory that
//! cannot be paged (the program's code, stacks, mappings that are not private or not anonymous, the
//! pager's records) is taken out of the frames as far as it is more than [`BESIDE`], which every process
//! has. A quarter of the frames that were asked for stay in any case: with none, nothing would go on.

use crate::units::{FRAMES_MIN, PAGE};
use vellum_sys::limits::{Limits, SCRATCH};
use vellum_sys::{map, usage};

/// Memory beside the frames that is taken out of nothing: what a small program has.
const BESIDE: u64 = 8 << 20;
/// The part of the frames that stay, whatever is beside them.
const LEAST_PART: u32 = 4;

/// Of this many parts of the remaining memory, frames get all but one.
const PARTS: u64 = 4;

/// The groups that limit this process, as they were when it was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    limits: Limits,
}

impl Share {
    /// Looks up the groups. What has no room to look is not limited.
    pub(crate) fn discover() -> Share {
        let Ok(scratch) = map::reserve_writable(SCRATCH) else { return Share { limits: Limits::unknown() } };
        // SAFETY: zeros that this function has mapped, and whose address no other code has.
        let limits = Limits::discover(unsafe { &mut *scratch.start.ptr::<[u8; SCRATCH]>() });
        // SAFETY: mapped by this function, which uses it no more.
        let _ = unsafe { map::release(scratch) };
        Share { limits }
    }

    /// How many of `asked` frames may be used, of which `resident` are in memory already.
    ///
    /// They are pages of a file, so that a group may count them as available, in part: never are they counted
    /// twice.
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

/// What of the process's memory is not paged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// Pages, when they were looked at last.
    pages: u64,
    /// What they may have grown by until the next look: the most that they have lately.
    growth: u64,
    /// The most there were.
    most: u64,
}

impl Beside {
    pub(crate) const fn none() -> Beside {
        Beside { pages: 0, growth: 0, most: 0 }
    }

    /// What there is when a pager with `asked` frames starts, which a process does that still loads its
    /// libraries, more often than not.
    pub(crate) fn at_start(asked: u32) -> Beside {
        const PART: u64 = 4;
        Beside { growth: u64::from(asked) / PART, ..Beside::none().measure(0) }
    }

    /// What there is now, when `resident` frames are in memory.
    pub(crate) fn measure(self, resident: u32) -> Beside {
        let Some(all) = usage::resident() else { return Beside::none() };
        self.follow(all.saturating_sub(u64::from(resident)))
    }

    fn follow(self, pages: u64) -> Beside {
        let grown = if self.pages == 0 { 0 } else { pages.saturating_sub(self.pages) };
        Beside { pages, growth: grown.max(self.growth / 8 * 7), most: self.most.max(pages) }
    }

    /// How many of `asked` frames that leaves.
    pub(crate) fn leaves(self, asked: u32) -> u32 {
        left_of(asked, self.pages + self.growth)
    }

    /// The most pages there were.
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
