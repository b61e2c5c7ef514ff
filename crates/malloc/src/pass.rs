//! The progress of a heap's pass over its slabs, which returns unused pages ([`crate::scavenge`]).
//!
//! The helper thread and `malloc_trim` request passes, which run inside the heap's gate (its lock). An
//! *eager* pass returns pages as soon as they are unused. A request for an eager pass is never lost. If a
//! pass is under way, the eager pass replaces it, or follows it if that pass is eager.

use core::cell::Cell;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};
use vellum_pages::Pages;

/// Awake slabs of a heap from which the helper is started, if it was not.
const WORTH_A_HELPER: u32 = 32;
/// Slabs that the heap's thread visits on one of its slow paths.
pub(crate) const OWNERS_SLABS: usize = 4;
/// Slabs that are visited while the thread of an idle heap may have to wait.
pub(crate) const VISITORS_SLABS: usize = 64;

/// The kind of a pass, a bit each: in the upper half of [`Pass::state`] for the pass under way, in the lower
/// half for the next one.
pub(crate) mod bit {
    pub(crate) const ANY: u8 = 1 << 0;
    /// The pass vacates slabs at its first visit, too.
    pub(crate) const EAGER: u8 = 1 << 1;
    /// The pass returns pages once more that were returned before.
    pub(crate) const AGAIN: u8 = 1 << 2;
    /// From the lower half to the upper.
    pub(crate) const SHIFT: u32 = 4;
}

/// The progress of a heap's pass. All zero: no pass is due.
#[derive(Debug)]
pub(crate) struct Pass<S> {
    /// The pass under way and the next one.
    state: AtomicU8,
    /// The class that it has come to, and the next slab there.
    pub(crate) class: Cell<usize>,
    pub(crate) next: Cell<*const S>,
    /// True if it met slabs for the first time.
    pub(crate) has_marked: Cell<bool>,
    pub(crate) began_turns: Cell<u32>,
    /// The turns of the gate when a pass began that left nothing to do.
    pub(crate) idle_turns: AtomicU32,
    awake: AtomicU32,
}

impl<S> Pass<S> {
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.state.load(Relaxed) != 0
    }

    /// Makes a pass due. During a pass, only an eager pass follows.
    pub(crate) fn request(&self, eager: bool) {
        if eager {
            self.state.fetch_or(bit::ANY | bit::EAGER, AcqRel);
        } else if self.state.load(Relaxed) == 0 {
            self.state.fetch_or(bit::ANY, AcqRel);
        }
    }

    /// Makes a pass due that returns pages once more.
    pub(crate) fn request_again(&self) {
        self.state.fetch_or(bit::ANY | bit::AGAIN, AcqRel);
    }

    /// True if a pass begins now, and the kind of the pass under way. Inside the gate.
    pub(crate) fn begin_or_go_on(&self) -> (bool, u8) {
        let begins = |asked: u8, now: u8| now == 0 || asked & bit::EAGER > now & bit::EAGER;
        let change = |state: u8| {
            let (asked, now) = (state & ((1 << bit::SHIFT) - 1), state >> bit::SHIFT);
            // A pass that ends early leaves its work to its successor.
            begins(asked, now).then_some((asked | now | bit::ANY) << bit::SHIFT)
        };
        let begun = self.state.fetch_update(AcqRel, Relaxed, change).is_ok();
        (begun, self.state.load(Relaxed) >> bit::SHIFT)
    }

    pub(crate) fn end(&self) {
        self.state.fetch_and((1 << bit::SHIFT) - 1, AcqRel);
    }

    /// True if the heap has enough awake slabs to start the helper for their pages.
    pub(crate) fn is_sparse(&self) -> bool {
        self.awake.load(Relaxed) >= WORTH_A_HELPER
    }

    /// A slab is on a list. Inside the gate.
    #[inline]
    pub(crate) fn woke(&self) {
        let awake = self.awake.load(Relaxed) + 1;
        self.awake.store(awake, Relaxed);
        if awake == WORTH_A_HELPER {
            Pages::global().ensure_helper();
        }
    }

    /// A slab leaves its list. Inside the gate.
    #[inline]
    pub(crate) fn left(&self, slab: &S, next: *const S) {
        self.awake.store(self.awake.load(Relaxed) - 1, Relaxed);
        if core::ptr::eq(self.next.get(), slab) {
            self.next.set(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null;

    fn pass() -> Pass<()> {
        Pass {
            state: AtomicU8::new(0),
            class: Cell::new(0),
            next: Cell::new(null()),
            has_marked: Cell::new(false),
            began_turns: Cell::new(0),
            idle_turns: AtomicU32::new(0),
            awake: AtomicU32::new(0),
        }
    }

    #[test]
    fn what_is_asked_for_during_a_pass_is_done_after_it() {
        let pass = pass();
        assert!(!pass.is_due());
        pass.request(true);
        assert_eq!(pass.begin_or_go_on(), (true, bit::ANY | bit::EAGER));
        assert_eq!(pass.begin_or_go_on(), (false, bit::ANY | bit::EAGER));
        // An eager one again, which must see what was freed behind the one under way.
        pass.request(true);
        assert_eq!(pass.begin_or_go_on(), (false, bit::ANY | bit::EAGER), "it comes to its end first");
        pass.end();
        assert!(pass.is_due());
        assert_eq!(pass.begin_or_go_on(), (true, bit::ANY | bit::EAGER));
        pass.request(false);
        pass.end();
        assert!(!pass.is_due(), "one that is not eager need not follow");
    }

    #[test]
    fn an_eager_pass_takes_the_place_of_one_that_is_not() {
        let pass = pass();
        pass.request(false);
        assert_eq!(pass.begin_or_go_on(), (true, bit::ANY));
        pass.request_again();
        assert_eq!(pass.begin_or_go_on(), (false, bit::ANY));
        pass.request(true);
        assert_eq!(pass.begin_or_go_on(), (true, bit::ANY | bit::EAGER | bit::AGAIN));
        pass.end();
        assert!(!pass.is_due());
    }
}
