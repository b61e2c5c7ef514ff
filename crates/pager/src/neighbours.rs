//! Whether it pays to read a page's neighbours with it, where a program goes on with nothing: learnt by
//! trying.
//!
//! A transfer of sixteen pages takes a device little longer than one of a single page, and what lies together
//! is often used together: a collector's objects are. But each neighbour that nobody asks for costs the frame
//! of a page that somebody may. The use of a mapped page cannot be seen, so of each window one page, the
//! *probe*, is left unmapped: that it is asked for, or given up unasked, stands for its window.
//!
//! Source: the kernel's swap read-ahead, which counts hits among what it brought. There every page of a
//! window costs a fault.

/// Pages of a window; windows are aligned to as many.
const WINDOW: u32 = 16;
/// All probes are asked for.
const ALL: u32 = 1 << 10;
/// From this share of probes asked for on neighbours are brought.
const WORTH: u32 = ALL / 4;
/// What one probe changes of the share: one part of this many.
const WEIGHT: u32 = 16;
/// Where it does not pay, one fault in this many tries again.
const RETRY: u32 = 32;

/// The state learnt so far.
#[derive(Debug)]
pub(crate) struct Neighbours {
    share: u32,
    turn: u32,
}

impl Neighbours {
    /// It is taken not to pay at first, but nearly: that it pays is learnt as soon as probes are asked for,
    /// that it does not only when their turn comes to be given up, and by then much has been brought in vain.
    pub(crate) const fn new() -> Neighbours {
        Neighbours { share: WORTH - ALL / WEIGHT, turn: 0 }
    }

    /// Pages of the window to bring for a fault that goes on with nothing: 1 is the page alone.
    pub(crate) fn window(&mut self) -> u32 {
        self.turn = self.turn.wrapping_add(1);
        if self.share >= WORTH || self.turn.is_multiple_of(RETRY) { WINDOW } else { 1 }
    }

    /// A probe was asked for, or given up without.
    pub(crate) fn learn(&mut self, asked_for: bool) {
        self.share -= self.share / WEIGHT;
        if asked_for {
            self.share += ALL / WEIGHT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_used_is_seldom_brought_and_what_is_always() {
        let mut neighbours = Neighbours::new();
        assert_eq!(neighbours.window(), 1);
        (0..3).for_each(|_| neighbours.learn(true));
        assert_eq!(neighbours.window(), WINDOW);
        (0..4 * WEIGHT).for_each(|_| neighbours.learn(false));
        let brought = (0..10 * RETRY).filter(|_| neighbours.window() == WINDOW).count();
        assert_eq!(brought, 10);
        (0..WEIGHT).for_each(|_| neighbours.learn(true));
        assert!((0..10 * RETRY).all(|_| neighbours.window() == WINDOW));
        // Between the two, what is asked for a third of the time pays.
        (0..10 * WEIGHT).for_each(|turn| neighbours.learn(turn % 3 == 0));
        assert_eq!(neighbours.window(), WINDOW);
    }
}
