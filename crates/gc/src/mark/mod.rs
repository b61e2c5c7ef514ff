//! Tracing: from the roots to everything that is alive.
//!
//! Objects that were marked but not looked through wait on a stack of addresses. On their way from it they pass a short queue:
//! an object is prefetched when it enters, and looked through when it leaves, some thirty objects later, so that the
//! misses of many objects overlap (Cher, Hosking and Vitek 2004 put such a queue in front of the stack).
//!
//! What may move ([`Movement`]) does so when a pointer that may be changed, a *field*, leads to it. Fields of objects that were not moved
//! yet wait on the same stack and pass the same queue, so that the object is there when it is copied.
//!
//! This file has what a trace knows and how it follows one pointer; `order` what is looked through next, `objects` how, `hand_over` what
//! goes to other threads.
//!
//! # Invariants
//! * Every object on the stack or in the queue is marked.
//! * An ambiguous pointer never leads to an object that has moved: everything that it may lead to was pinned before.
//! * The stack is bounded. An object that finds no room stays marked, and its block is noted; when the stack is empty all marked
//!   objects of noted blocks are looked through again, until no block is noted. This ends: it marks at least one object each time
//!   a block is noted anew.
//! * Nothing here takes a lock or allocates: other threads may have been stopped anywhere.

mod hand_over;
mod objects;
mod order;

use crate::block::MAPPED_WORDS;
use crate::block::{Block, Index, Region, Scan};
use crate::bytes::Bytes;
use crate::class::WORD;
use crate::config::STACK_KEPT;
use crate::movement::Movement;
use crate::rooted::Rooted;
use crate::space::Space;
use vellum_sys::{PAGE, map, round_up};

/// Objects between their prefetch and their turn.
const QUEUE: usize = 32;
/// Words that are passed over at a time if none of them is an address in the heap.
const AT_ONCE: usize = 4;
/// Flags a stack entry that is followed by where a stretch goes on.
const PART: usize = 1;
/// Flags a stack entry that is the address of a field whose object may have to move.
const FIELD: usize = 2;
/// Stack entries have the map of a small object above this bit, so that looking it through needs no descriptor; 0 there:
/// the descriptor says.
const MAP_SHIFT: u32 = 48;
const ADDRESS: usize = (1 << MAP_SHIFT) - 1;

const _: () = assert!(MAPPED_WORDS as u32 == usize::BITS - MAP_SHIFT && MAPPED_WORDS <= objects::STRETCH);

/// The memory of the mark stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackMemory {
    pub start: *mut usize,
    /// Words.
    pub room: usize,
}

/// The object of `block` that `word` points into, be it to its first byte or, unless `only_starts`, anywhere.
#[inline(always)]
fn within(block: &Block, word: usize, only_starts: bool) -> Option<Index> {
    let offset = word - block.base.get();
    let index = block.index_at(offset);
    (!only_starts || index.0 as usize * block.size.get() == offset).then_some(index)
}

/// The first byte of the object that `word` points into. Mostly that is the word itself: then it is known at once, where the block's say
/// would have to be waited for.
#[inline(always)]
fn start(block: &Block, index: Index, word: usize) -> usize {
    #[cold]
    #[inline(never)]
    fn inside(start: usize) -> usize {
        start
    }
    let start = block.address(index);
    if start == word { word } else { inside(start) }
}

/// What [`within`] finds in whichever block it is.
pub(crate) fn find(space: &Space, word: usize, only_starts: bool) -> Option<(&'static Block, Index)> {
    let block = space.block_of(word)?;
    within(block, word, only_starts).map(|index| (block, index))
}

/// What a trace that goes on later leaves: the rest is on the mark stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paused {
    depth: usize,
    /// Blocks were noted whose objects found no room on the stack.
    pub overflowed: bool,
    /// Objects marked.
    marked: u64,
    deepest: usize,
    overflows: u64,
}

impl Paused {
    /// The same after others have traced, too: they marked so many objects, and some found no room on their stacks.
    pub(crate) fn and(self, marked: u64, overflowed: bool) -> Paused {
        Paused { marked: self.marked + marked, overflowed: self.overflowed || overflowed, ..self }
    }

    /// Gives back what the empty stack has touched beyond what is kept.
    pub(crate) fn give_back(&self, stack: StackMemory) {
        give_back_stack(stack, self.deepest);
    }
}

/// Gives back what `words` words on the stack, which is empty, have touched beyond what is kept.
pub(crate) fn give_back_stack(stack: StackMemory, words: usize) {
    let touched = words * WORD;
    if touched > STACK_KEPT {
        let start = stack.start as usize + STACK_KEPT;
        // SAFETY: the stack is empty. A refusal only means that the pages stay.
        let _ = unsafe { map::flush(start, round_up(touched - STACK_KEPT, PAGE)) };
    }
}

/// One trace.
pub(crate) struct Marker<'h, M> {
    space: &'h Space,
    low: usize,
    span: usize,
    only_starts: bool,
    /// What lives is in the cache: nothing need be fetched ahead.
    near: bool,
    /// What is looked through are roots, which will be looked through the next time, too.
    pub in_roots: bool,
    /// What ambiguous roots have led to.
    pub rooted: Rooted,
    stack: StackMemory,
    depth: usize,
    queue: [usize; QUEUE],
    head: usize,
    queued: usize,
    overflowed: bool,
    movement: M,
    /// Where marks are set while several threads mark.
    bytes: Bytes,
    /// Objects marked.
    pub marked: u64,
    /// The most words the stack held.
    pub deepest: usize,
    /// Times the stack was full.
    pub overflows: u64,
}

impl<'h, M: Movement> Marker<'h, M> {
    /// A trace that has found nothing yet. With `only_starts`, words in objects count only if they lead to a first byte.
    pub(crate) fn new(space: &'h Space, stack: StackMemory, only_starts: bool, movement: M) -> Marker<'h, M> {
        let (low, high) = space.bounds();
        Marker {
            space,
            low,
            span: high.saturating_sub(low),
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
            bytes: Bytes::get(),
            marked: 0,
            deepest: 0,
            overflows: 0,
        }
    }

    /// The same; if `near`, what lives should be in the cache.
    pub(crate) fn when_near(self, near: bool) -> Marker<'h, M> {
        Marker { near, ..self }
    }

    /// Goes on with a trace.
    pub(crate) fn resume(
        space: &'h Space,
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
    fn find(&self, word: usize, only_starts: bool) -> Option<(&'static Block, Index)> {
        if word.wrapping_sub(self.low) >= self.span {
            return None;
        }
        // SAFETY: the word is within the bounds; entries are null or lead to descriptors, which are never unmapped.
        let block = unsafe { self.space.within_bounds(word).as_ref() }?;
        within(block, word, only_starts).map(|index| (block, index))
    }

    /// Follows a word of a stack, of thread-local or of static data, and counts it if it leads to an object. Few do: the loop over the rest is
    /// faster without this in the middle of it.
    #[inline(never)]
    fn consider_root(&mut self, word: usize) {
        if let Some((block, index)) = self.find(word, false) {
            self.rooted.note(block, index);
            self.reach_pinned(block, index, word);
        }
    }

    /// Follows an ambiguous pointer.
    #[inline(always)]
    fn consider(&mut self, word: usize, only_starts: bool) {
        if let Some((block, index)) = self.find(word, only_starts) {
            self.reach_pinned(block, index, word);
        }
    }

    /// Marks the object that an ambiguous pointer leads to, and has it stay where it is.
    #[inline(always)]
    fn reach_pinned(&mut self, block: &'static Block, index: Index, word: usize) {
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
        if M::SHARES { self.bytes.mark(block, index) } else { block.mark(index) }
    }

    /// Marks the object that `word` points into where it is.
    #[inline(always)]
    fn reach(&mut self, block: &'static Block, index: Index, word: usize) {
        if self.mark(block, index) {
            self.marked += 1;
            if block.scan.get() != Scan::Nothing {
                self.push(self.entry(block, start(block, index, word)));
            }
        }
    }

    /// What stands on the stack for the object of `block` at `address`, which may be a copy elsewhere.
    #[inline(always)]
    fn entry(&self, block: &Block, address: usize) -> usize {
        address | self.map(block) << MAP_SHIFT
    }

    /// Which words of a block's objects are fields; 0 where the descriptor must be asked.
    #[inline(always)]
    fn map(&self, block: &Block) -> usize {
        // What an untyped object's words lead to may not move: where anything does, they are not looked at as fields.
        if M::MOVES && block.scan.get() == Scan::Words {
            return 0;
        }
        usize::from(block.map.get())
    }

    /// Follows the pointer at `at`, which may be changed.
    #[inline(always)]
    fn field(&mut self, at: usize) {
        if let Some((object, map)) = self.follow(at) {
            self.push(object | map << MAP_SHIFT);
        }
    }

    /// The same; an object that is found and has a map is the caller's to look through.
    #[inline(always)]
    fn follow(&mut self, at: usize) -> Option<(usize, usize)> {
        // SAFETY: the caller's word, which may be read.
        let word = unsafe { (at as *const usize).read_volatile() };
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
                self.push(object);
            }
            return None;
        }
        Some((object, map))
    }

    /// Has a field whose object may have to move wait for its turn.
    #[inline(always)]
    fn wait(&mut self, at: usize) {
        if self.depth < self.stack.room {
            self.push(at | FIELD);
        } else if let Some(entry) = self.settle(at) {
            self.push(entry);
        }
    }

    /// Has the pointer at `at` lead to where its object stays, moving that if it is to move. What must be looked through then.
    #[inline(always)]
    fn settle(&mut self, at: usize) -> Option<usize> {
        // SAFETY: a field that `field` was asked to follow.
        let word = unsafe { (at as *const usize).read_volatile() };
        let (block, index) = self.find(word, self.only_starts)?;
        let object = block.address(index);
        let is_new = block.mark(index);
        self.marked += u64::from(is_new);
        if !block.evacuating.get() {
            // The field has waited twice: it leads to where the object is now.
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
            // SAFETY: the object has moved, and left its new address.
            unsafe { (object as *const usize).read_volatile() }
        } else {
            return None;
        };
        if place != object {
            // SAFETY: a field of an object that stays where it is, or a word that the program gave for this.
            unsafe { (at as *mut usize).write_volatile(place + (word - object)) };
        }
        (is_new && block.scan.get() != Scan::Nothing).then(|| self.entry(block, place))
    }

    /// Marks what the words from `start` up to `end` may point to: an object's contents.
    ///
    /// # Safety
    /// The words may be read.
    pub(crate) unsafe fn words(&mut self, start: usize, end: usize, only_starts: bool) {
        // SAFETY: by this function's condition.
        unsafe { self.each_within(start, end, |marker, word| marker.consider(word, only_starts)) };
    }

    /// Marks what the words from `start` up to `end` may point to, into an object too, and counts them: registers, stacks, static data.
    ///
    /// # Safety
    /// The words may be read.
    pub(crate) unsafe fn root_words(&mut self, start: usize, end: usize) {
        // SAFETY: by this function's condition.
        unsafe { self.each_within(start, end, Self::consider_root) };
    }

    /// Calls `consider` with the words from `start` up to `end` that may be addresses in the heap, and some more.
    ///
    /// # Safety
    /// The words may be read.
    #[inline(always)]
    unsafe fn each_within(&mut self, start: usize, end: usize, consider: impl Fn(&mut Self, usize)) {
        // Volatile: a root may belong to a thread stopped in the middle of anything.
        // SAFETY: by this function's condition, for words before `end`.
        let read = |at: usize| unsafe { (at as *const usize).read_volatile() };
        let (low, span) = (self.low, self.span);
        let is_within = |word: usize| word.wrapping_sub(low) < span;
        let mut at = start;
        // Most words of roots are no addresses in the heap: four are passed over at a time.
        while at + AT_ONCE * WORD <= end {
            let words: [usize; AT_ONCE] = core::array::from_fn(|index| read(at + index * WORD));
            if words.iter().fold(false, |any, &word| any | is_within(word)) {
                words.iter().for_each(|&word| consider(self, word));
            }
            at += AT_ONCE * WORD;
        }
        while at + WORD <= end {
            consider(self, read(at));
            at += WORD;
        }
    }

    /// Marks what the pointers from `start` up to `end` lead to, and changes those whose objects move.
    ///
    /// # Safety
    /// The words may be read and written, and hold pointers or what is no address in the heap.
    pub(crate) unsafe fn fields(&mut self, start: usize, end: usize) {
        (start..(end + 1).saturating_sub(WORD)).step_by(WORD).for_each(|at| self.field(at));
    }

    /// Marks the object that `address` points into.
    #[inline(never)]
    pub(crate) fn root(&mut self, address: usize) {
        self.consider(address, false);
    }

    /// Marks every object of a block that is allocated.
    #[inline(never)]
    pub(crate) fn whole(&mut self, block: &'static Block) {
        block.each(false, |index| self.reach(block, index, block.address(index)));
    }

    /// Marks what a table's value points into. The value, which stays where it is until the trace is at its end, is changed if the object moves.
    pub(crate) fn value(&mut self, value: &mut usize) {
        match self.find(*value, true) {
            Some(_) => self.field(core::ptr::from_mut(value).expose_provenance()),
            // Into the middle of an object, which counts in a table even where it does not in objects.
            None => self.root(*value),
        }
    }

    /// Where the object that `address` points into has moved to, and in it; `None` if it is where it was. When all is traced.
    pub(crate) fn moved_to(&self, address: usize) -> Option<usize> {
        if !M::MOVES {
            return None;
        }
        let (block, index) = self.find(address, false)?;
        if !block.has_moved(index) {
            return None;
        }
        let before = block.address(index);
        // SAFETY: an object that has moved left its new address in its first word.
        let now = unsafe { (before as *const usize).read_volatile() };
        Some(now + (address - before))
    }

    /// Whether the object at `address` is marked; true where there is none.
    pub(crate) fn is_marked(&self, address: usize) -> bool {
        self.find(address, false).is_none_or(|(block, index)| block.is_marked(index))
    }
}
