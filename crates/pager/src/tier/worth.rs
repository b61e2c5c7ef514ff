//! Whether compressed pages pay: learnt from what becomes of them.
//!
//! A page that is compressed costs the processor some microseconds, also if it turns out that it is as long
//! as before; and the memory of all of them is taken from the frames. What they save are reads: a fault that
//! finds its page compressed costs a fifth of one that goes to a device. Two rules:
//!
//! * If nearly all of a few pages in a row do not compress, the next ones are not tried: the *pause*. It
//!   grows as long as that goes on.
//! * If pages are compressed but seldom asked for, while the memory for them is full or they do not compress,
//!   they are of no use: the *rest*, in which the memory goes back to the frames. That is so for a program
//!   that goes through much more memory than it has, in order. A rest is a multiple of the time in which that
//!   was found out, so that what is lost by finding out has a bound, and grows while nothing changes.
//!
//! Times are counted in pages that leave. Faults are counted, not pages: pages that are read ahead
//! from a device cost no more than those that are decompressed.

/// Pages tried in a row before they are judged.
const TRIES: u32 = 64;
/// Those of them that do not compress for a pause.
const REFUSED: u32 = TRIES / 8 * 7;
/// The fewest pages that leave before it is judged whether they are asked for.
const OUTS_MIN: u32 = 1024;
/// One fault served pays for this many pages that leave.
const PAYS: u32 = 4;
/// A pause or rest is this many times as long as what it was found out in, at first and at most.
const FACTOR: u32 = 4;
const FACTOR_MAX: u32 = 64;

#[derive(Debug)]
pub(super) struct Worth {
    tries: u32,
    refused: u32,
    pause: u32,
    pause_factor: u32,
    outs: u32,
    hits: u32,
    rest: u32,
    rest_factor: u32,
}

impl Worth {
    pub(super) const fn new() -> Worth {
        Worth {
            tries: 0,
            refused: 0,
            pause: 0,
            pause_factor: FACTOR,
            outs: 0,
            hits: 0,
            rest: 0,
            rest_factor: FACTOR,
        }
    }

    /// A page leaves: whether to compress it. There are `entries` compressed ones, and more are taken in
    /// only if others go, if `is_full`.
    pub(super) fn leaves(&mut self, entries: u32, is_full: bool) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        self.outs += 1;
        if self.outs >= entries.max(OUTS_MIN) && (is_full || self.pause > 0) {
            let pays = self.hits.saturating_mul(PAYS) >= self.outs;
            if pays {
                self.rest_factor = FACTOR;
            } else {
                self.rest = self.outs.saturating_mul(self.rest_factor);
                self.rest_factor = (2 * self.rest_factor).min(FACTOR_MAX);
            }
            (self.outs, self.hits) = (0, 0);
        }
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        self.rest == 0
    }

    /// A page was tried.
    pub(super) fn tried(&mut self, is_shorter: bool) {
        self.tries += 1;
        self.refused += u32::from(!is_shorter);
        if self.tries < TRIES {
            return;
        }
        if self.refused >= REFUSED {
            self.pause = TRIES * self.pause_factor;
            self.pause_factor = (2 * self.pause_factor).min(FACTOR_MAX);
        } else {
            self.pause_factor = FACTOR;
        }
        (self.tries, self.refused) = (0, 0);
    }

    /// A fault has found its page compressed.
    pub(super) fn hit(&mut self) {
        self.hits = self.hits.saturating_add(1);
    }

    /// Whether the memory is to go back to the frames.
    pub(super) fn rests(&self) -> bool {
        self.rest > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has `count` pages leave; how many were tried.
    fn leave(worth: &mut Worth, count: u32, is_shorter: bool, hits_each: u32, is_full: bool) -> u32 {
        let mut tried = 0;
        for index in 0..count {
            if worth.leaves(2000, is_full) {
                tried += 1;
                worth.tried(is_shorter);
            }
            if hits_each > 0 && index.is_multiple_of(hits_each) {
                worth.hit();
            }
        }
        tried
    }

    #[test]
    fn pages_that_do_not_compress_are_seldom_tried() {
        let mut worth = Worth::new();
        let tried = leave(&mut worth, 100_000, false, 0, false);
        assert!((TRIES..4000).contains(&tried), "{tried}");
        assert!(worth.rests(), "the memory goes back");
        // What follows does, and is found out by and by.
        assert!(leave(&mut worth, 400_000, true, 2, false) > 100_000);
        assert!(!worth.rests());
    }

    #[test]
    fn pages_that_nobody_asks_for_are_seldom_tried() {
        let mut worth = Worth::new();
        assert_eq!(leave(&mut worth, 5000, true, 0, false), 5000, "while there is room for more");
        let tried = leave(&mut worth, 1_000_000, true, 0, true);
        assert!((1000..100_000).contains(&tried), "{tried}");
        let mut worth = Worth::new();
        assert_eq!(leave(&mut worth, 100_000, true, PAYS - 1, true), 100_000, "what is asked for pays");
    }
}
