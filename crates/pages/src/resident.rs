//! The account of resident memory, and the rule of the peak.
//!
//! **The rule of the peak.** Cached frames must not raise the process's peak. The peak stays within the most
//! memory that the process ever needed at one time, plus a slack of 1/64 of that (at least 2 MiB). *Needed*
//! memory is resident and not cached, whether this layer or another handed it out.
//!
//! The kernel counts resident pages (`/proc/self/statm`, two microseconds). Between two counts the account is
//! an upper bound: memory handed out without frames counts as touched. A warm page is resident, so handing it
//! out adds nothing. When the bound reaches the peak while frames are cached, the kernel's count is read
//! again, and the excess is flushed.
//!
//! The recorded maximum of needed memory is a lower bound: growth of less than [`UNSEEN`] pages before memory
//! is freed may be missed. Without the kernel's count, all memory handed out counts as touched.

use crate::units::PAGE;

/// The slack: the larger of these; near a limit the larger of the last two.
const SLACK_MIN: u64 = (2 << 20) / PAGE as u64;
const SLACK_MIN_TIGHT: u64 = (256 << 10) / PAGE as u64;
const SLACK_SHARE: u64 = 64;
/// A part of the slack that is flushed beyond the excess: so the next pages need no look.
const AHEAD_SHARE: u64 = 4;
/// Growth in pages that the most that was needed may have missed.
const UNSEEN: u64 = (1 << 20) / PAGE as u64;

/// See the head of this file. In pages.
#[derive(Debug)]
pub(crate) struct Resident {
    /// At the last look, less what has been flushed since.
    seen: u64,
    /// Pages that may have become resident since.
    grown: u64,
    needed: u64,
    /// Set where a control group's limit may be reached: see `untouched`.
    pub(crate) is_tight: bool,
}

impl Resident {
    pub(crate) const fn new() -> Resident {
        Resident { seen: 0, grown: 0, needed: 0, is_tight: false }
    }

    /// `pages` pages without frames were handed out.
    pub(crate) fn grow(&mut self, pages: u64) {
        self.grown = self.grown.saturating_add(pages);
    }

    /// `pages` pages that may have been resident are so no more.
    pub(crate) fn shrink(&mut self, pages: u64) {
        self.seen = self.seen.saturating_sub(pages);
    }

    /// `pages` pages that were to become resident are so already: by frames that had been counted as gone.
    pub(crate) fn move_in(&mut self, pages: u64) {
        self.grown = self.grown.saturating_sub(pages);
        self.seen = self.seen.saturating_add(pages);
    }

    pub(crate) fn bound(&self) -> u64 {
        self.seen + self.grown
    }

    /// True if more than `pages` pages may have come since the last count.
    pub(crate) fn has_grown_beyond(&self, pages: u64) -> bool {
        self.grown > pages
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.grown >= UNSEEN
    }

    /// The kernel counts `pages` resident; `None` without its count.
    pub(crate) fn recount(&mut self, pages: Option<u64>) {
        self.seen = pages.unwrap_or(self.seen.saturating_add(self.grown));
        self.grown = 0;
    }

    /// Notes that `kept` pages of the resident ones are free.
    pub(crate) fn note_needed(&mut self, kept: u64) {
        self.needed = self.needed.max(self.seen.saturating_sub(kept));
    }

    /// Pages by which the process's peak would be too high if `more` pages became resident, while `warm`
    /// pages are cached. All marked pages count as resident.
    pub(crate) fn over(&self, more: u64, warm: u64) -> u64 {
        let then = self.seen + self.grown + more;
        let needed = self.needed.max(then.saturating_sub(warm));
        let slack = self.slack(needed);
        let over = then.saturating_sub(needed + slack);
        if over == 0 { 0 } else { (over + slack / AHEAD_SHARE).min(warm) }
    }

    /// The pages by which the peak may exceed `needed` pages.
    pub(crate) fn slack(&self, needed: u64) -> u64 {
        let least = if self.is_tight { SLACK_MIN_TIGHT } else { SLACK_MIN };
        least.max(needed / SLACK_SHARE)
    }
}
