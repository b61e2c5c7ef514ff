//! The ordinary case of a trace without moves, in one loop with its state in registers: small objects, one
//! after the other.
//!
//! ```text
//!      ┌─────────── the last object found, or the newest on the stack ───────────┐
//!      ▼ prefetched                                                              │
//! queue (full) ──▶ object: two words at a time ──▶ block, mark ──▶ others found ─▶ stack
//! ```
//!
//! The order of objects is that of the file `order`, which also handles all other cases: an empty stack, a
//! queue that is not full, parts of long objects, objects without a map, a budget that is used up.
//!
//! Words of an object are tested in pairs. The smallest address of the heap is above most other values: if
//! the bitwise OR of a pair is below it, neither word is a pointer.

use super::{ADDRESS, MAP_SHIFT, Marker, QUEUE};
use crate::space::block::{Index, Scan};
use crate::space::size_class::{BLOCK_SHIFT, WORD};
use crate::trace::movement::Movement;
use vellum_sys::Addr;

/// Words by which the mark of the deepest stack goes up at a time.
const STEP: usize = 512;

/// The state that is kept in registers.
struct Run {
    top: *mut usize,
    /// The stack's end, or nearer: how deep it ever was.
    limit: *mut usize,
    marked: u64,
    low: Addr,
}

impl<M: Movement> Marker<'_, M> {
    /// Returns whether [`run`](Self::run) has something to do.
    #[inline(always)]
    pub(super) fn can_run(&self) -> bool {
        !M::MOVES && self.depth > 0 && (self.near || self.queued == QUEUE)
    }

    /// Traces as long as the case is the ordinary one and `go_on`, which is called before each object,
    /// returns true.
    #[inline(always)]
    pub(super) fn run(&mut self, go_on: &mut impl FnMut() -> bool) {
        if self.near { self.run_as::<true>(go_on) } else { self.run_as::<false>(go_on) }
    }

    #[inline(always)]
    fn run_as<const NEAR: bool>(&mut self, go_on: &mut impl FnMut() -> bool) {
        let bottom = self.stack.start;
        let limit = bottom.wrapping_add(self.deepest.max(self.depth).min(self.stack.room));
        let mut run = Run { top: bottom.wrapping_add(self.depth), limit, marked: 0, low: self.bounds.start };
        let mut head = self.head;
        // The object found last, which is not on the stack; 0: none.
        let mut found = 0;
        loop {
            if found == 0 {
                if run.top == bottom {
                    break;
                }
                // SAFETY: above the bottom, so written.
                found = unsafe { run.top.sub(1).read() };
                if found >> MAP_SHIFT == 0 {
                    found = 0;
                    break;
                }
                run.top = run.top.wrapping_sub(1);
            }
            let mut entry = core::mem::take(&mut found);
            if !NEAR {
                vellum_sys::prefetch((entry & ADDRESS) as *const u8);
                debug_assert!(head < QUEUE);
                // SAFETY: below the queue's length.
                entry = core::mem::replace(unsafe { self.queue.get_unchecked_mut(head) }, entry);
                head = (head + 1) % QUEUE;
                if entry >> MAP_SHIFT == 0 {
                    // It lay in the queue.
                    self.keep(&run, head);
                    self.dispatch(entry);
                    run.top = bottom.wrapping_add(self.depth);
                    run.limit = run.limit.max(run.top);
                    run.marked = 0;
                    continue;
                }
            }
            found = self.look_through_small::<NEAR>(entry, &mut run);
            if !go_on() {
                break;
            }
        }
        self.keep(&run, head);
        if found != 0 {
            self.push(found);
        }
    }

    /// Stores the state.
    #[inline(always)]
    fn keep(&mut self, run: &Run, head: usize) {
        // SAFETY: both are within the stack.
        let words = |end: *mut usize| unsafe { end.offset_from_unsigned(self.stack.start) };
        (self.depth, self.deepest) = (words(run.top), self.deepest.max(words(run.limit)));
        self.marked += run.marked;
        self.head = head;
    }

    /// Scans a small object, and pushes the objects found but the last, which it returns; 0 if none was
    /// found.
    #[inline(always)]
    fn look_through_small<const NEAR: bool>(&mut self, entry: usize, run: &mut Run) -> usize {
        let (object, map) = (Addr::new(entry & ADDRESS), entry >> MAP_SHIFT);
        let mut found = 0;
        // SAFETY: words of an object that is alive.
        let read = |at: Addr| unsafe { at.ptr::<Addr>().read_volatile() };
        // The bit behind the last word of an object of 2, 4, ... words that may all be pointers.
        const EVEN: usize = 0x1_5554;
        let end_bit = map + 1;
        if map & end_bit != 0 || end_bit & EVEN == 0 {
            return self.look_through_some::<NEAR>(object, map, run);
        }
        let end = object + end_bit.trailing_zeros() as usize * WORD;
        let mut at = object;
        loop {
            let (first, second) = (read(at), read(at + WORD));
            at += 2 * WORD;
            if first.get() | second.get() >= run.low.get() {
                self.meet::<NEAR>(first, &mut found, run);
                self.meet::<NEAR>(second, &mut found, run);
            }
            if at == end {
                return found;
            }
        }
    }

    /// Scans a small object of which only some words may be pointers.
    #[inline(never)]
    fn look_through_some<const NEAR: bool>(&mut self, object: Addr, mut map: usize, run: &mut Run) -> usize {
        let mut found = 0;
        while map != 0 {
            let at = object + map.trailing_zeros() as usize * WORD;
            // SAFETY: a word of an object that is alive.
            let word = unsafe { at.ptr::<Addr>().read_volatile() };
            map &= map - 1;
            self.meet::<NEAR>(word, &mut found, run);
        }
        found
    }

    /// Marks the object that `word` points into, if any. If it is to be scanned it becomes `found`, and what
    /// that was before is pushed.
    #[inline(always)]
    fn meet<const NEAR: bool>(&mut self, word: Addr, found: &mut usize, run: &mut Run) {
        let above = word.since(run.low);
        if above >= self.bounds.bytes {
            return;
        }
        // SAFETY: within the bounds; entries are null or lead to descriptors, which are never unmapped.
        let Some(block) = (unsafe { (*self.table.add(above >> BLOCK_SHIFT)).as_ref() }) else { return };
        let offset = (word - block.base.get()) as u64;
        let reciprocal = block.reciprocal.get();
        let product = offset.wrapping_mul(u64::from(reciprocal));
        let index = Index((product >> 32) as u32);
        let mut start = word;
        // The product's lower half is below the reciprocal for the first byte of a small object, and for no
        // other.
        if product as u32 >= reciprocal {
            // So it is for every byte of a large one, whose reciprocal is 0.
            if self.only_starts && offset != 0 {
                return;
            }
            start = inside(block.address(index));
        }
        if !self.mark(block, index) {
            return;
        }
        if NEAR {
            // From the second-level cache to the first.
            vellum_sys::prefetch(start.ptr());
        }
        run.marked += 1;
        let map = usize::from(block.map.get());
        if map == 0 {
            if block.scan.get() != Scan::Nothing {
                self.push_on(start.get(), run);
            }
            return;
        }
        let before = core::mem::replace(found, start.get() | map << MAP_SHIFT);
        if before != 0 {
            self.push_on(before, run);
        }
    }

    #[inline(always)]
    fn push_on(&mut self, entry: usize, run: &mut Run) {
        if run.top == run.limit && !self.rise(run) {
            return self.overflow(Addr::new(entry & ADDRESS));
        }
        // SAFETY: below the limit, which is within the stack.
        unsafe { run.top.write(entry) };
        run.top = run.top.wrapping_add(1);
    }

    /// Moves the limit up; false if that is the end.
    #[cold]
    #[inline(never)]
    fn rise(&self, run: &mut Run) -> bool {
        let end = self.stack.start.wrapping_add(self.stack.room);
        // SAFETY: both are within the stack.
        let left = unsafe { end.offset_from_unsigned(run.limit) };
        run.limit = run.limit.wrapping_add(left.min(STEP));
        left > 0
    }
}

/// The start of an object that a word points into: seldom, and so away from the ordinary case.
#[cold]
#[inline(never)]
fn inside(start: Addr) -> Addr {
    start
}

#[cfg(test)]
mod tests {
    use crate::space::size_class::{BLOCK, GRANULE, SMALL_MAX};

    /// The test for the first byte of an object, for every byte of a block of every size.
    #[test]
    fn the_lower_half_tells_the_first_byte() {
        for size in (GRANULE..=SMALL_MAX).step_by(GRANULE) {
            let reciprocal = (1u64 << 32).div_ceil(size as u64);
            for offset in 0..BLOCK {
                let is_first = u64::from((offset as u64 * reciprocal) as u32) >= reciprocal;
                assert_eq!(!is_first, offset.is_multiple_of(size), "{size}, {offset}");
            }
        }
    }
}
