//! Work packets: buffers by which the threads of `trace::parallel` share objects to scan, without locks.
//!
//! ```text
//!  blank ──claim──▶ being filled ──share──▶ full ──take──▶ being emptied onto a stack ──give back──▶ blank
//!
//!  idle ◀──rest── busy            closed: all members are idle, no packet is full. Only the leader closes.
//!       ──resume─▶
//! ```
//!
//! The first line has the states of a packet. Below are those of a *member* (one of the threads that trace
//! together) and of the *crew* (all members). The *leader* is the thread that collects. One word has the
//! trace's number, whether the trace is over, and two counts: of members and of idle members. One load thus
//! shows whether a given trace is over. A late thread cannot join, as its compare-and-swap fails if the word
//! has changed. The leader does not wait for threads that have not joined.
//!
//! # Invariants
//! * A busy member may hold packets, and entries on its own stack; an idle one holds nothing.
//! * A member becomes busy *before* it takes a packet, and idle only after it has found none. When all are
//!   idle, no packet is full: the member that was the last to share a packet found no full one when it became
//!   idle.
//! * No trace ends while a member is busy. A busy member therefore need not compare trace numbers.
//!
//! Under `--cfg loom` the module uses `loom`'s atomics, and its tests explore all interleavings.
//!
//! Source: work packets as in Ossia, Ben-Yitzhak, Goft, Kolodner, Leikehman and Owshanko 2002. This
//! collector has few packets, so two bitmaps of one word each replace the lists of packets.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

pub(crate) const PACKETS: u32 = 64;
/// Members there may be.
pub(crate) const MEMBERS_MAX: u32 = 16;

const IDLE: u64 = 1;
const MEMBER: u64 = 1 << 8;
const COUNT: u64 = 0xff;
const CLOSED: u64 = 1 << 16;
const TRACE_SHIFT: u32 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace(u32);

#[derive(Debug)]
pub(crate) struct Crew {
    word: AtomicU64,
    full: AtomicU64,
    blank: AtomicU64,
}

fn idle(word: u64) -> u64 {
    word & COUNT
}

fn members(word: u64) -> u64 {
    (word / MEMBER) & COUNT
}

fn trace(word: u64) -> Trace {
    Trace((word >> TRACE_SHIFT) as u32)
}

/// Takes a bit out of a set.
fn take_bit(bits: &AtomicU64) -> Option<u32> {
    let mut seen = bits.load(Ordering::SeqCst);
    while seen != 0 {
        let bit = seen & seen.wrapping_neg();
        let before = bits.fetch_and(!bit, Ordering::SeqCst);
        if before & bit != 0 {
            return Some(bit.trailing_zeros());
        }
        seen = before;
    }
    None
}

impl Crew {
    /// A crew without members.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Crew {
        Crew { word: AtomicU64::new(CLOSED), full: AtomicU64::new(0), blank: AtomicU64::new(!0) }
    }

    /// A crew without members.
    #[cfg(loom)]
    pub(crate) fn new() -> Crew {
        Crew { word: AtomicU64::new(CLOSED), full: AtomicU64::new(0), blank: AtomicU64::new(!0) }
    }

    /// Begins a trace with the caller, its leader, as its one member.
    pub(crate) fn open(&self) -> Trace {
        let before = self.word.load(Ordering::Relaxed);
        let next = trace(before).0.wrapping_add(1);
        self.word.store(u64::from(next) << TRACE_SHIFT | MEMBER, Ordering::SeqCst);
        Trace(next)
    }

    /// Takes part in the trace that is under way, busy at first.
    pub(crate) fn join(&self) -> Option<Trace> {
        let mut word = self.word.load(Ordering::SeqCst);
        while word & CLOSED == 0 && members(word) < u64::from(MEMBERS_MAX) {
            match self.word.compare_exchange(word, word + MEMBER, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Some(trace(word)),
                Err(now) => word = now,
            }
        }
        None
    }

    /// Makes a busy member idle: it has found nothing, and holds nothing.
    pub(crate) fn rest(&self) {
        self.word.fetch_add(IDLE, Ordering::SeqCst);
    }

    /// Makes an idle member of `this` busy; false if the trace is over.
    pub(crate) fn resume(&self, this: Trace) -> bool {
        let mut word = self.word.load(Ordering::SeqCst);
        while word & CLOSED == 0 && trace(word) == this {
            match self.word.compare_exchange(word, word - IDLE, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Ends the trace if every member is idle. By its leader, which is idle too.
    pub(crate) fn close(&self) -> bool {
        let word = self.word.load(Ordering::SeqCst);
        idle(word) == members(word)
            && self.word.compare_exchange(word, word | CLOSED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn is_over(&self, this: Trace) -> bool {
        let word = self.word.load(Ordering::SeqCst);
        word & CLOSED != 0 || trace(word) != this
    }

    /// Returns whether a member waits for something to do.
    pub(crate) fn is_anybody_idle(&self) -> bool {
        idle(self.word.load(Ordering::Relaxed)) != 0
    }

    /// Returns whether there is something to take.
    pub(crate) fn has_work(&self) -> bool {
        self.full.load(Ordering::SeqCst) != 0
    }

    /// A packet to be filled, by a busy member; `None` if all are full.
    pub(crate) fn claim(&self) -> Option<u32> {
        take_bit(&self.blank)
    }

    /// Shares a packet that was claimed and filled.
    pub(crate) fn share(&self, packet: u32) {
        self.full.fetch_or(1 << packet, Ordering::SeqCst);
    }

    /// A full packet, for a busy member.
    pub(crate) fn take(&self) -> Option<u32> {
        take_bit(&self.full)
    }

    /// Gives back a packet that was emptied, or claimed in vain.
    pub(crate) fn give_back(&self, packet: u32) {
        self.blank.fetch_or(1 << packet, Ordering::SeqCst);
    }

    /// A full packet for a busy member that has nothing left. Waits as long as there may be one, calling
    /// `wait` with the number of tests so far. `None`: the trace is over, and the member is idle. The leader
    /// ends the trace.
    pub(crate) fn next(&self, this: Trace, is_leader: bool, mut wait: impl FnMut(u32)) -> Option<u32> {
        if let Some(packet) = self.take() {
            return Some(packet);
        }
        self.rest();
        let mut looks = 0;
        loop {
            if self.has_work() {
                if !self.resume(this) {
                    return None;
                }
                if let Some(packet) = self.take() {
                    return Some(packet);
                }
                self.rest();
                looks = 0;
            }
            if is_leader && self.close() || self.is_over(this) {
                return None;
            }
            wait(looks);
            looks = looks.saturating_add(1);
        }
    }
}

const _: () = assert!(PACKETS <= u64::BITS && (MEMBERS_MAX as u64) < COUNT);
