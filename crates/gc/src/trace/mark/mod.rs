//! Tracing: from the roots to every live object.
//!
//! Objects that were marked but not scanned yet wait on a stack of addresses. From there they pass a short
//! queue: an object is prefetched when it enters, and scanned when it leaves, some thirty objects later. The
//! misses of many objects overlap in this way (Cher, Hosking and Vitek 2004 put such a queue in front of the
//! stack).
//!
//! An object that may move ([`Movement`]) does so when a *field* leads to it: a pointer that may be changed.
//! Fields whose objects have not moved yet wait on the same stack and pass the same queue: the object is in
//! the cache when it is copied.
//!
//! This file has the state of a trace and follows one pointer. The file `order` has the order of scanning,
//! and `run` its fast path; `objects` scans objects, and `hand_over` gives entries to other threads.
//!
//! # Invariants
//! * Every object on the stack or in the queue is marked.
//! * An ambiguous pointer never leads to a moved object: everything that it may lead to was pinned before.
//! * The stack is bounded. An object that no longer fits stays marked, and its block is recorded. When the
//!   stack is empty, all marked objects of recorded blocks are scanned again, until no block is recorded.
//!   This ends: each time a block is recorded again, at least one object was marked.
//! * The code here takes no lock and allocates no memory: other threads may have been stopped anywhere.

mod hand_over;
mod objects;
mod order;
mod run;

use crate::config::STACK_KEPT;
use crate::space::address_table::AddressTable;
use crate::space::block::{Block, Index, MAPPED_WORDS, Region, Scan};
use crate::space::size_class::WORD;
use crate::trace::movement::Movement;
use crate::trace::root_statistics::Rooted;
use vellum_sys::{Addr, PAGE, Span, map, round_up};

/// Objects between their prefetch and their turn.
const QUEUE: usize = 32;
/// Words that are passed over at a time if no word is an address in the heap.
const AT_ONCE: usize = 4;
/// Flags a stack entry that is followed by the address at which the scan of a long object goes on.
const PART: usize = 1;
/// Flags a stack entry that is the address of a field whose object may have to move.
const FIELD: usize = 2;
/// Stack entries have the map of a small object above this bit, so that a scan needs no descriptor. If the
/// bits are 0, the descriptor must be read.
const MAP_SHIFT: u32 = 48;
const ADDRESS: usize = (1 << MAP_SHIFT) - 1;

const _: () = assert!(MAPPED_WORDS as u32 == usize::BITS - MAP_SHIFT && MAPPED_WORDS <= objects::STRETCH);

#[derive(Clone, Copy, Debug)]
pub(crate) struct StackMemory {
    pub start: *mut usize,
    /// Words.
    pub room: usize,
}

/// The object of `block` that `word` points to: to its first byte or, unless `only_starts`, anywhere into it.
#[inline(always)]
fn within(block: &Block, word: Addr, only_starts: bool) -> Option<Index> {
    let offset = word - block.base.get();
    let index = block.index_at(offset);
    (!only_starts || index.0 as usize * block.size.get() == offset).then_some(index)
}

/// The first byte of the object that `word` points into. Mostly that is the word itself: then there is no
/// wait for the block's descriptor.
#[inline(always)]
fn start(block: &Block, index: Index, word: Addr) -> Addr {
    #[cold]
    #[inline(never)]
    fn inside(start: Addr) -> Addr {
        start
    }
    let start = block.address(index);
    if start == word { word } else { inside(start) }
}

/// [`within`] for the block that `word` points into.
pub(crate) fn find(space: &AddressTable, word: Addr, only_starts: bool) -> Option<(&'static Block, Index)> {
    let block = space.block_of(word)?;
    within(block, word, only_starts).map(|index| (block, index))
}

/// The state of a trace that goes on later: the objects to be scanned are on the mark stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paused {
    depth: usize,
    /// Some blocks have objects that found no room on the stack.
    pub overflowed: bool,
    /// Objects marked.
    marked: u64,
    deepest: usize,
    overflows: u64,
}

impl Paused {
    /// The state after helpers have traced, too: they marked `marked` objects, and `overflowed` is set if
    /// some objects found no room on their stacks.
    pub(crate) fn and(self, marked: u64, overflowed: bool) -> Paused {
        Paused { marked: self.marked + marked, overflowed: self.overflowed || overflowed, ..self }
    }

    /// Gives back the pages that the empty stack has touched, but for [`STACK_KEPT`] bytes.
    pub(crate) fn give_back(&self, stack: StackMemory) {
        give_back_stack(stack, self.deepest);
    }
}

/// Gives back the pages that `words` words on the stack, now empty, have touched, but for [`STACK_KEPT`]
/// bytes.
pub(crate) fn give_back_stack(stack: StackMemory, words: usize) {
    let touched = words * WORD;
    if touched > STACK_KEPT {
        let start = stack.start.wrapping_byte_add(STACK_KEPT);
        // SAFETY: the stack is empty: nobody reads these bytes before they are written. A refusal only leaves
        // the pages resident.
        let _ = unsafe { map::flush(Span::at(start, round_up(touched - STACK_KEPT, PAGE))) };
    }
}

pub(crate) struct Marker<'h, M> {
    space: &'h AddressTable,
    bounds: Span,
    /// The entry of the lowest block.
    table: *const *const Block,
    only_starts: bool,
    /// Live objects are in the cache: nothing need be prefetched.
    near: bool,
    /// The words being scanned are roots, which the next collection scans, too.
    pub in_roots: bool,
    /// Counts of ambiguous roots that lead to objects.
    pub rooted: Rooted,
    stack: StackMemory,
    depth: usize,
    queue: [usize; QUEUE],
    head: usize,
    queued: usize,
    overflowed: bool,
    movement: M,
    /// Objects marked.
    pub marked: u64,
    /// The most words the stack held.
    pub deepest: usize,
    /// Times the stack was full.
    pub overflows: u64,
}

impl<'h, M: Movement> Marker<'h, M> {
    /// A trace that has found nothing yet. With `only_starts`, a word in an object counts only if it points
    /// to an object's first byte.
    pub(crate) fn new(
        space: &'h AddressTable,
        stack: StackMemory,
        only_starts: bool,
        movement: M,
    ) -> Marker<'h, M> {
        Marker {
            space,
            bounds: space.bounds,
            table: space.lowest_entry(),
            only_starts,
            near: false,
            in_roots: false,
            rooted: Rooted::default(),
            stack,
            depth: 0,
            queue: [0; QUEUE],
            head: 0,
            queued: 0,
            overflowed: false,
            movement,
            marked: 0,
            deepest: 0,
            overflows: 0,
        }
    }

    /// Sets whether live objects should be in the cache.
    pub(crate) fn when_near(self, near: bool) -> Marker<'h, M> {
        Marker { near, ..self }
    }

    /// Goes on with a trace.
    pub(crate) fn resume(
        space: &'h AddressTable,
        stack: StackMemory,
        only_starts: bool,
        movement: M,
        left: Paused,
    ) -> Marker<'h, M> {
        let Paused { depth, overflowed, marked, deepest, overflows } = left;
        let new = Marker::new(space, stack, only_starts, movement);
        Marker { depth, overflowed, marked, deepest, overflows, ..new }
    }

    /// Leaves the rest of the trace for later. The queue is empty.
    pub(crate) fn pause(self) -> Paused {
        debug_assert_eq!(self.queued, 0);
        let Marker { depth, overflowed, marked, deepest, overflows, .. } = self;
        Paused { depth, overflowed, marked, deepest, overflows }
    }

    /// The object that `word` points into, if it is allocated or may be.
    #[inline(always)]
    fn find(&self, word: Addr, only_starts: bool) -> Option<(&'static Block, Index)> {
        if !self.bounds.contains(word) {
            return None;
        }
        // SAFETY: the word is within the bounds; entries are null or lead to descriptors, which are never
        // unmapped.
        let block = unsafe { self.space.within_bounds(word).as_ref() }?;
        within(block, word, only_starts).map(|index| (block, index))
    }

    /// Follows a word of a stack, of thread-local or of static data, and counts it if it leads to an object.
    /// Few do: the loop over the rest is faster with this out of line.
    #[inline(never)]
    fn consider_root(&mut self, word: Addr) {
        if let Some((block, index)) = self.find(word, false) {
            self.rooted.note(block, index);
            self.reach_pinned(block, index, word);
        }
    }

    /// Follows an ambiguous pointer.
    #[inline(always)]
    fn consider(&mut self, word: Addr, only_starts: bool) {
        if let Some((block, index)) = self.find(word, only_starts) {
            self.reach_pinned(block, index, word);
        }
    }

    /// Marks the object that an ambiguous pointer leads to, and pins it.
    #[inline(always)]
    fn reach_pinned(&mut self, block: &'static Block, index: Index, word: Addr) {
        if M::MOVES && block.evacuating.get() {
            block.pin(index);
            if !self.in_roots && block.region.get() == Region::New {
                block.region.set(Region::NewAndHeld);
            }
        }
        self.reach(block, index, word);
    }

    /// Marks an object; false if it was marked already or is not allocated.
    #[inline(always)]
    fn mark(&self, block: &Block, index: Index) -> bool {
        self.movement.mark(block, index)
    }

    /// Marks the object that `word` points into where it is.
    #[inline(always)]
    fn reach(&mut self, block: &'static Block, index: Index, word: Addr) {
        if self.mark(block, index) {
            self.marked += 1;
            if block.scan.get() != Scan::Nothing {
                self.push(self.entry(block, start(block, index, word)));
            }
        }
    }

    /// The stack entry of the object of `block` at `address`, which may be a copy elsewhere.
    #[inline(always)]
    fn entry(&self, block: &Block, address: Addr) -> usize {
        address.get() | self.map(block) << MAP_SHIFT
    }

    /// The words of a block's objects that are fields, as bits; 0 where the descriptor must be read.
    #[inline(always)]
    fn map(&self, block: &Block) -> usize {
        // Words of untyped objects are ambiguous: their objects may not move, so that the words are no
        // fields.
        if M::MOVES && block.scan.get() == Scan::Words {
            return 0;
        }
        usize::from(block.map.get())
    }

    /// Follows the pointer at `at`, which may be changed.
    #[inline(always)]
    fn field(&mut self, at: Addr) {
        if let Some((object, map)) = self.follow(at) {
            self.push(object.get() | map << MAP_SHIFT);
        }
    }

    /// The same. If an object is found that has a map, the caller scans it.
    #[inline(always)]
    fn follow(&mut self, at: Addr) -> Option<(Addr, usize)> {
        // SAFETY: the caller's word, which may be read.
        let word = unsafe { at.ptr::<Addr>().read_volatile() };
        let (block, index) = self.find(word, self.only_starts)?;
        if M::MOVES && block.evacuating.get() {
            self.wait(at);
            return None;
        }
        if !self.mark(block, index) {
            return None;
        }
        self.marked += 1;
        let object = start(block, index, word);
        let map = self.map(block);
        if map == 0 {
            if block.scan.get() != Scan::Nothing {
                self.push(object.get());
            }
            return None;
        }
        Some((object, map))
    }

    /// Pushes a field whose object may have to move.
    #[inline(always)]
    fn wait(&mut self, at: Addr) {
        if self.depth < self.stack.room {
            self.push(at.get() | FIELD);
        } else if let Some(entry) = self.settle(at) {
            self.push(entry);
        }
    }

    /// Makes the pointer at `at` lead to where its object stays, moving the object if it is to move. Returns
    /// the entry to be scanned then, if any.
    #[inline(always)]
    fn settle(&mut self, at: Addr) -> Option<usize> {
        // SAFETY: a field that `follow` has read before: it lies in memory that stays mapped during the
        // trace.
        let word = unsafe { at.ptr::<Addr>().read_volatile() };
        let (block, index) = self.find(word, self.only_starts)?;
        let object = block.address(index);
        let is_new = block.mark(index);
        self.marked += u64::from(is_new);
        if !block.evacuating.get() {
            // The field was pushed twice: it leads to where the object is now.
            return (is_new && block.scan.get() != Scan::Nothing).then(|| self.entry(block, object));
        }
        let place = if block.is_pinned(index) {
            self.movement.note_pinned(at);
            object
        } else if is_new {
            match self.movement.copy(block, index) {
                Some(copy) => copy,
                None => {
                    self.movement.note_pinned(at);
                    block.pins(index.0 / 64).set(block.pins(index.0 / 64).get() | 1 << (index.0 % 64));
                    object
                }
            }
        } else if block.is_allocated(index) {
            // SAFETY: the object has moved: the first word of its old place is its new address.
            unsafe { object.ptr::<Addr>().read_volatile() }
        } else {
            return None;
        };
        if place != object {
            // SAFETY: a field of an object that stays where it is, or a word that the program declared as
            // precise.
            unsafe { at.ptr::<Addr>().write_volatile(place + (word - object)) };
        }
        (is_new && block.scan.get() != Scan::Nothing).then(|| self.entry(block, place))
    }

    /// Marks what the words of `span` may point to: the contents of an object.
    ///
    /// # Safety
    /// The words may be read.
    pub(crate) unsafe fn words(&mut self, span: Span, only_starts: bool) {
        // SAFETY: the caller guarantees that the words may be read.
        unsafe { self.each_within(span, |marker, word| marker.consider(word, only_starts)) };
    }

    /// Marks the objects that the words of `span` may point to, also to their inside:
    /// registers, stacks, static data. Counts the words that lead to an object.
    ///
    /// # Safety
    /// The words may be read.
    pub(crate) unsafe fn root_words(&mut self, span: Span) {
        // SAFETY: the caller guarantees that the words may be read.
        unsafe { self.each_within(span, Self::consider_root) };
    }

    /// Calls `consider` with the words of `span` that may be addresses in the heap, and others.
    ///
    /// # Safety
    /// The words may be read.
    #[inline(always)]
    unsafe fn each_within(&mut self, span: Span, consider: impl Fn(&mut Self, Addr)) {
        // Volatile: a root may belong to a thread stopped in the middle of anything.
        // SAFETY: the words of the span may be read; `at` is always before its end.
        let read = |at: Addr| unsafe { at.ptr::<Addr>().read_volatile() };
        let bounds = self.bounds;
        let (mut at, end) = (span.start, span.end());
        // Most words of roots are no addresses in the heap: four are tested at a time.
        while at + AT_ONCE * WORD <= end {
            let words: [Addr; AT_ONCE] = core::array::from_fn(|index| read(at + index * WORD));
            if words.iter().fold(false, |any, &word| any | bounds.contains(word)) {
                words.iter().for_each(|&word| consider(self, word));
            }
            at += AT_ONCE * WORD;
        }
        while at + WORD <= end {
            consider(self, read(at));
            at += WORD;
        }
    }

    /// Marks what the pointers in `span` lead to, and changes those whose objects move.
    ///
    /// # Safety
    /// The words may be read and written, and hold pointers or values that are no address in the heap.
    pub(crate) unsafe fn fields(&mut self, span: Span) {
        let starts = (0..(span.bytes + 1).saturating_sub(WORD)).step_by(WORD);
        starts.for_each(|offset| self.field(span.start + offset));
    }

    /// Marks the object that `address` points into.
    #[inline(never)]
    pub(crate) fn root(&mut self, address: Addr) {
        self.consider(address, false);
    }

    /// Marks every object of a block that is allocated.
    #[inline(never)]
    pub(crate) fn whole(&mut self, block: &'static Block) {
        block.each(false, |index| self.reach(block, index, block.address(index)));
    }

    /// Marks the object that a table's value points into, and changes the value if it moves. The value stays
    /// where it is until the trace has ended.
    pub(crate) fn value(&mut self, value: &mut Addr) {
        match self.find(*value, true) {
            Some(_) => self.field(Addr::of(core::ptr::from_mut(value))),
            // A pointer into the middle of an object counts in a table even where it does not in objects.
            None => self.root(*value),
        }
    }

    /// The new address of the byte at `address` if its object has moved; `None` if not. After the trace.
    pub(crate) fn moved_to(&self, address: Addr) -> Option<Addr> {
        if !M::MOVES {
            return None;
        }
        let (block, index) = self.find(address, false)?;
        if !block.has_moved(index) {
            return None;
        }
        let before = block.address(index);
        // SAFETY: an object that has moved left its new address in its first word.
        let now = unsafe { before.ptr::<Addr>().read_volatile() };
        Some(now + (address - before))
    }

    /// Returns whether the object at `address` is marked; true if no object is there.
    pub(crate) fn is_marked(&self, address: Addr) -> bool {
        self.find(address, false).is_none_or(|(block, index)| block.is_marked(index))
    }
}
