//! How many frames the control groups of this process leave it, and what of its memory is not paged.
//!
//! Frames beyond a group's limit are no frames: the kernel kills the process that takes them. So the pager
//! works with fewer than it was asked for where a group allows no more, when it starts and, looking every
//! second, whenever a limit or what others in the group hold has changed; and with more again when there is
//! room.
//!
//! Of what the group leaves to this process, its resident frames and what may still be taken, frames get
//! three quarters. The last quarter is for what is not paged and grows beside them, between two looks: small
//! blocks, stacks, the program's own mappings, the pager's records (some sixty bytes a page of an object) and
//! the kernel's page tables. Of several paged processes in one group each leaves a quarter of what it sees,
//! so that together they leave some room, however many they are.

//!
//! Where all memory of a process is paged, frames are to be the bound of all of it. Then memory that cannot be
//! paged (the program's code, stacks, mappings that are not private or not anonymous, the pager's records) is
//! taken out of the frames as far as it is more than [`BESIDE`], which every process has. A quarter of the
//! frames that were asked for stay in any case: with none, nothing would go on.

use crate::units::{FRAMES_MIN, PAGE};
use vellum_sys::limits::{self, Limits, SCRATCH};
use vellum_sys::map;

/// Memory beside the frames that is taken out of nothing: an interpreter's, more or less.
const BESIDE: u64 = 11 << 20;
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
        let Ok(start) = map::reserve_writable(SCRATCH) else { return Share { limits: Limits::unknown() } };
        // SAFETY: zeros reserved a moment ago, which nobody else knows of.
        let limits = Limits::discover(unsafe { &mut *(start as *mut [u8; SCRATCH]) });
        // SAFETY: as above, and used no more.
        let _ = unsafe { map::release(start, SCRATCH) };
        Share { limits }
    }

    /// How many of `asked` frames may be used, of which `resident` are in memory already.
    pub(crate) fn frames(&self, asked: u32, resident: u32) -> u32 {
        let enough = u64::from(asked) * PAGE as u64 * PARTS / (PARTS - 1);
        let available = self.limits.available(enough);
        if available.limit == u64::MAX {
            return asked;
        }
        share_of(asked, resident, available.bytes)
    }
}

fn share_of(asked: u32, resident: u32, available: u64) -> u32 {
    let pages = available / PAGE as u64;
    let share = pages.saturating_add(u64::from(resident)) / PARTS * (PARTS - 1);
    u32::try_from(share).unwrap_or(u32::MAX).clamp(FRAMES_MIN, asked.max(FRAMES_MIN))
}

/// How many of `asked` frames what is not paged leaves, if `resident` are in memory.
pub(crate) fn left_beside(asked: u32, resident: u32) -> u32 {
    match limits::own_resident_pages() {
        Some(all) => left_of(asked, all.saturating_sub(u64::from(resident))),
        None => asked,
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
        assert_eq!(left_of(4096, mib(11)), 4096);
        assert_eq!(left_of(4096, mib(15)), 3072);
        assert_eq!(left_of(4096, mib(100)), 1024, "a quarter stays");
        assert_eq!(left_of(FRAMES_MIN, mib(100)), FRAMES_MIN);
    }

    #[test]
    fn a_quarter_is_left() {
        let mib = |count: u64| count << 20;
        assert_eq!(share_of(4096, 0, mib(1024)), 4096, "what was asked for, where there is room");
        assert_eq!(share_of(4096, 0, mib(16)), 3072);
        // What it has itself counts, so that having taken its share changes nothing.
        assert_eq!(share_of(4096, 3072, mib(4)), 3072);
        assert_eq!(share_of(4096, 3072, 0), 2304, "others have grown");
        assert_eq!(share_of(4096, 0, 0), FRAMES_MIN, "one can do with no fewer");
    }
}
