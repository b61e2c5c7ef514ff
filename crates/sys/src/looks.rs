//! One thread looks for all, and nobody relies on a look that began before he asked.
//!
//! Many threads find at once that something should be looked at that takes a while. One of them does; the
//! others go on, and it looks again when it is done. A thread that takes too long, as it may be off its
//! processor, is relied on no longer: the next one to ask looks himself.
//!
//! Looks are numbered. Where two overlap, the one with the lower number may have seen less, and must not have
//! the last word: who keeps what was seen compares the numbers.
//!
//! # Invariants
//! * After [`Looks::ask`] a look begins whose number is at least that of the question, by the one who asked
//!   or by another one, unless that one is held up; then the next who asks begins one.
//! * A looker is kept at it by others' questions for a few looks at most (`AGAIN_MAX`).
//!
//! The tests explore the interleavings over `loom`'s atomics (`tests/loom.rs`).

use crate::atomics::{AtomicU32, Ordering};

/// Milliseconds after which a looker is not relied on.
const PATIENCE_MS: u32 = 2;
/// Looks that one thread makes for others.
const AGAIN_MAX: u32 = 4;

/// See the head of this file.
#[derive(Debug)]
pub struct Looks {
    /// Questions so far.
    asked: AtomicU32,
    /// When the look in progress began, in milliseconds with the lowest bit set; 0 if there is none.
    began: AtomicU32,
}

/// A look that is to be made.
#[derive(Debug)]
pub struct Look {
    /// Its number; wraps.
    pub number: u32,
    again: u32,
}

impl Looks {
    /// No looks yet, if both words are 0.
    pub const fn over(asked: AtomicU32, began: AtomicU32) -> Looks {
        Looks { asked, began }
    }

    /// Asks for a look, `now_ms` on any clock. The look that the caller has to make; `None` if another thread
    /// makes it.
    pub fn ask(&self, now_ms: u32) -> Option<Look> {
        // In one order with the other accesses of both words: either the looker sees the question when it is
        // done, or the one who asks sees that it is done.
        self.asked.fetch_add(1, Ordering::SeqCst);
        let began = self.began.load(Ordering::SeqCst);
        if began != 0 && now_ms.wrapping_sub(began) as i32 <= PATIENCE_MS as i32 {
            return None;
        }
        self.begin(now_ms, AGAIN_MAX)
    }

    /// That `look` is over. The next one to make, if somebody asked meanwhile.
    pub fn made(&self, look: &Look, now_ms: u32) -> Option<Look> {
        self.began.store(0, Ordering::SeqCst);
        let asked = self.asked.load(Ordering::SeqCst);
        if asked == look.number || look.again == 0 {
            return None;
        }
        self.begin(now_ms, look.again - 1)
    }

    /// A look that nobody relies on: of a thread that may wait long for a processor.
    pub fn aside(&self) -> Look {
        Look { number: self.asked.load(Ordering::SeqCst), again: 0 }
    }

    /// Whether the look `number` is older than the look `than`.
    pub fn is_older(number: u32, than: u32) -> bool {
        (number.wrapping_sub(than) as i32) < 0
    }

    /// In a forked child: the thread that was looking does not exist there.
    pub fn reset_after_fork(&self) {
        self.began.store(0, Ordering::SeqCst);
    }

    fn begin(&self, now_ms: u32, again: u32) -> Option<Look> {
        self.began.store(now_ms | 1, Ordering::SeqCst);
        Some(Look { number: self.asked.load(Ordering::SeqCst), again })
    }
}
