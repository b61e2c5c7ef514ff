//! Block descriptors: where a block lies, its objects' size, and which of them are allocated and marked.
//!
//! Descriptors lie apart from the blocks they describe. Headers inside the blocks would share a few cache
//! sets, and a mark would touch the object's page.
//!
//! ```text
//! Block | marks 0, 1, ... | allocated 0, 1, ... | pins 0, 1, ...      one bit an object, 64 objects a word
//! ```
//!
//! Only a heap whose objects may move has pins.
//!
//! A trace touches marks only: when it begins, everything that is *not* allocated is marked, so that
//! "allocated, and not marked yet" is one test of one bit. The fields that a trace reads lie together, beside
//! the marks.
//!
//! # Invariants
//! * Marks are valid during a collection only, unless they are kept (`sticky`).
//! * An object is allocated if its bit is set. The free objects that a thread is handed at once (a run) all
//!   count as allocated; the part that the thread did not use is taken back when a collection begins.
//! * Pins are valid only in blocks that are being evacuated. An allocated object of such a block that is
//!   marked and not pinned has moved: its first word is its new address.
//! * Bits beyond `count` are never set, so that an address in the tail of a block is no object.
//! * With generations (`appel`), every object in an old block is marked between collections, so that a minor
//!   collection need not touch the block.
//!
//! Objects are found by multiplication: `index = offset * reciprocal / 2^32` is exact for all offsets in a
//! block, whatever the size (Smith and Morrisett 1998 took some 100 instructions, section 2.2.2).

use crate::space::layout::Layout;
use crate::space::size_class::{BLOCK, GRANULE, WORD};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use vellum_pages::Plain;
use vellum_sys::{Addr, Span};

/// The parts of an object that the collector scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Scan {
    /// No word: there are no pointers.
    Nothing,
    /// Every word.
    Words,
    /// The words that the layout names.
    Layout,
    /// The words that the layout's callback names.
    Procedure,
}

/// The region that a block belongs to in a heap with generations (`appel`), or that its objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Region {
    /// Its objects were allocated since the last collection, or were pinned then.
    New,
    /// The same, within a minor collection: an untyped object leads into it, and it must be old afterwards.
    NewAndHeld,
    /// Its objects have survived a collection.
    Old,
    /// Writes to it are tracked until the next partial collection (`mark_sweep::partial`).
    Tracked,
    /// All objects in it stay until they are freed (`uncollectable`). The only region without generations.
    Kept,
}

/// A block of small objects, or one large object. Reached under the heap's lock, or by the thread that
/// allocates from it.
#[repr(C)]
pub(crate) struct Block {
    /// The next block of the slot with room, or of the descriptors not in use.
    pub next: Cell<Option<&'static Block>>,
    /// Bytes of pages it takes; 0 when these are given back and only the descriptor is left.
    pub extent: Cell<usize>,
    /// Objects in the block.
    pub count: Cell<u32>,
    /// Words in each bitmap.
    pub pairs: Cell<u32>,
    pub layout: Cell<*const Layout>,
    /// The slot it is cut for.
    pub slot: Cell<u16>,
    pub scan: Cell<Scan>,
    /// Objects in it were marked but not scanned, as the mark stack was full.
    pub overflowed: Cell<bool>,
    /// Objects in it that are not pinned are moved when they are reached. Within a collection.
    pub evacuating: Cell<bool>,
    /// To which region it belongs (`appel`), or is about to.
    pub region: Cell<Region>,
    /// Objects that the last collection found alive in it; 0 in a new block.
    pub survivors: Cell<u16>,
    /// Which words of an object may hold pointers, if it has at most [`MAPPED_WORDS`]; else 0.
    pub map: Cell<u16>,
    /// The last scan of the roots that found one leading into it.
    pub rooted_at: Cell<u16>,
    /// `2^32 / size`, rounded up; 0 for a large object, so that every offset is in object 0.
    pub reciprocal: Cell<u32>,
    /// Bytes of an object.
    pub size: Cell<usize>,
    /// The first object's address.
    pub base: Cell<Addr>,
}

/// Words of the largest object whose pointers a block's map has.
pub(crate) const MAPPED_WORDS: usize = 16;

/// Descriptors begin with a cache line, which has all of [`Block`].
pub(crate) const LINE: usize = 64;
const _: () = assert!(size_of::<Block>() <= LINE);

/// The place of an object in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Index(pub u32);

/// Objects of `size` bytes in a block.
pub(crate) const fn count_of(size: usize) -> u32 {
    (BLOCK / size) as u32
}

/// Pairs of bitmap words for `count` objects, with at least one bit over.
pub(crate) const fn pairs_of(count: u32) -> u32 {
    count / 64 + 1
}

/// The most pairs any block needs.
pub(crate) const PAIRS_MAX: usize = pairs_of(count_of(GRANULE)) as usize;

/// Bitmaps of a descriptor where nothing moves.
pub(crate) const BITMAPS: u32 = 2;
/// Bitmaps of a descriptor where objects may move.
pub(crate) const BITMAPS_MAX: u32 = 3;

/// Bytes of a descriptor with `bitmaps` bitmaps of `words` words.
pub(crate) const fn descriptor_bytes(words: u32, bitmaps: u32) -> usize {
    (size_of::<Block>() + (words * bitmaps) as usize * size_of::<u64>()).next_multiple_of(LINE)
}

// SAFETY: a reference to a descriptor, which is never unmapped: any copy of its bits is the same reference.
unsafe impl Plain for &'static Block {}

impl Block {
    /// Makes a zeroed or used descriptor with room for the bitmaps one for `count` objects of `size` bytes
    /// from `base`.
    pub(crate) fn begin(
        &self,
        base: Addr,
        size: usize,
        count: u32,
        slot: u16,
        scan: Scan,
        layout: *const Layout,
    ) {
        self.base.set(base);
        self.size.set(size);
        self.count.set(count);
        self.pairs.set(pairs_of(count));
        self.reciprocal.set(if count == 1 { 0 } else { (1u64 << 32).div_ceil(size as u64) as u32 });
        self.slot.set(slot);
        self.scan.set(scan);
        self.layout.set(layout);
        self.map.set(map_of(size / WORD, scan, layout));
        self.overflowed.set(false);
        self.evacuating.set(false);
        self.region.set(Region::New);
        self.survivors.set(0);
        self.rooted_at.set(0);
        self.next.set(None);
        self.extent.set(BLOCK);
        for pair in 0..self.pairs.get() {
            self.marks(pair).set(0);
            self.allocated(pair).set(0);
        }
    }

    /// # Panics
    /// In debug builds, if there is no such pair.
    #[inline(always)]
    fn word(&self, index: u32) -> &Cell<u64> {
        debug_assert!(index < self.pairs.get() * BITMAPS_MAX);
        // SAFETY: descriptors are allocated with their bitmaps behind them (`descriptor_bytes`), and reached
        // by pointers to the whole; every caller's index is that of an object of the block, or below `pairs`.
        unsafe { &*core::ptr::from_ref(self).add(1).cast::<Cell<u64>>().add(index as usize) }
    }

    /// The marks of objects `64 * pair` and up.
    #[inline(always)]
    pub(crate) fn marks(&self, pair: u32) -> &Cell<u64> {
        self.word(pair)
    }

    /// The allocation bits of objects `64 * pair` and up.
    #[inline(always)]
    pub(crate) fn allocated(&self, pair: u32) -> &Cell<u64> {
        self.word(self.pairs.get() + pair)
    }

    /// The pins of objects `64 * pair` and up. Where objects may move only.
    #[inline(always)]
    pub(crate) fn pins(&self, pair: u32) -> &Cell<u64> {
        self.word(self.pairs.get() * 2 + pair)
    }

    /// The object that holds the byte `offset` bytes behind the base; it may lie in the tail that holds none.
    #[inline(always)]
    pub(crate) fn index_at(&self, offset: usize) -> Index {
        Index(((offset as u64).wrapping_mul(u64::from(self.reciprocal.get())) >> 32) as u32)
    }

    #[inline(always)]
    pub(crate) fn address(&self, index: Index) -> Addr {
        self.base.get() + index.0 as usize * self.size.get()
    }

    /// The pages that it takes.
    pub(crate) fn span(&self) -> Span {
        Span::new(self.base.get(), self.extent.get())
    }

    /// Returns whether an object is allocated, or is part of a run in a thread's hands.
    #[inline]
    pub(crate) fn is_allocated(&self, index: Index) -> bool {
        self.allocated(index.0 / 64).get() >> (index.0 % 64) & 1 != 0
    }

    /// Returns whether an object is allocated and marked.
    #[inline]
    pub(crate) fn is_marked(&self, index: Index) -> bool {
        self.is_allocated(index) && self.marks(index.0 / 64).get() >> (index.0 % 64) & 1 != 0
    }

    /// Begins a trace: marks everything that is not allocated.
    pub(crate) fn begin_trace(&self) {
        for pair in 0..self.pairs.get() {
            self.marks(pair).set(!self.allocated(pair).get());
        }
    }

    /// Begins a trace that keeps the marks of the last one.
    pub(crate) fn begin_again(&self) {
        for pair in 0..self.pairs.get() {
            self.marks(pair).set(self.marks(pair).get() | !self.allocated(pair).get());
        }
    }

    /// Returns whether all objects in it stay until they are freed.
    #[inline(always)]
    pub(crate) fn is_kept(&self) -> bool {
        self.region.get() == Region::Kept
    }

    /// Returns whether it is of the old region.
    #[inline(always)]
    pub(crate) fn is_old(&self) -> bool {
        self.region.get() == Region::Old
    }

    pub(crate) fn is_tracked(&self) -> bool {
        self.region.get() == Region::Tracked
    }

    /// The block is part of the old region from now on: all its objects count as marked.
    pub(crate) fn become_old(&self) {
        self.region.set(Region::Old);
        for pair in 0..self.pairs.get() {
            self.marks(pair).set(!0);
        }
    }

    /// Marks an object; false if it was marked already or is not allocated. Within a trace.
    #[inline(always)]
    pub(crate) fn mark(&self, index: Index) -> bool {
        let (marks, bit) = (self.marks(index.0 / 64), 1 << (index.0 % 64));
        let before = marks.get();
        if before & bit != 0 {
            return false;
        }
        marks.set(before | bit);
        true
    }

    /// Records that objects in it were marked but not scanned. Other threads may do so, too.
    pub(crate) fn note_overflow(&self) {
        // SAFETY: the flag lives as long as the descriptor; while several threads mark, it is accessed only
        // here, atomically.
        unsafe { AtomicBool::from_ptr(self.overflowed.as_ptr()) }.store(true, Ordering::Relaxed);
    }

    /// From now on objects leave the block when they are reached, except for pinned ones.
    pub(crate) fn begin_evacuation(&self) {
        self.evacuating.set(true);
        for pair in 0..self.pairs.get() {
            self.pins(pair).set(0);
        }
    }

    /// Pins an object: it stays where it is. In a block that is being evacuated; it has not moved yet.
    #[inline(always)]
    pub(crate) fn pin(&self, index: Index) {
        debug_assert!(!self.has_moved(index), "an object moved before it was pinned");
        let pins = self.pins(index.0 / 64);
        pins.set(pins.get() | 1 << (index.0 % 64));
    }

    /// Returns whether an object has a pin. In a block that is being evacuated.
    #[inline(always)]
    pub(crate) fn is_pinned(&self, index: Index) -> bool {
        self.pins(index.0 / 64).get() >> (index.0 % 64) & 1 != 0
    }

    /// Returns whether an object has left its block.
    #[inline]
    pub(crate) fn has_moved(&self, index: Index) -> bool {
        self.evacuating.get() && self.is_marked(index) && !self.is_pinned(index)
    }

    /// Makes a free object of a block that copies go to an allocated and marked one.
    #[inline(always)]
    pub(crate) fn settle_copy(&self, index: Index) {
        let allocated = self.allocated(index.0 / 64);
        allocated.set(allocated.get() | 1 << (index.0 % 64));
    }

    /// Copies are about to fill the block's holes; none is recorded yet.
    pub(crate) fn begin_filling(&self) {
        for pair in 0..self.pairs.get() {
            self.pins(pair).set(0);
        }
    }

    /// Records that a copy has come to a block that was there before. Pins have this meaning in blocks that
    /// are not being evacuated.
    #[inline(always)]
    pub(crate) fn note_copy(&self, index: Index) {
        let pins = self.pins(index.0 / 64);
        pins.set(pins.get() | 1 << (index.0 % 64));
    }

    /// Calls `visit` for every copy that [`Block::note_copy`] has recorded.
    pub(crate) fn each_copy(&self, mut visit: impl FnMut(Index)) {
        for pair in 0..self.pairs.get() {
            let mut word = self.allocated(pair).get() & self.pins(pair).get();
            while word != 0 {
                visit(Index(pair * 64 + word.trailing_zeros()));
                word &= word - 1;
            }
        }
    }

    /// Takes the marks from objects `from..to`: they are new, and nothing has led to them yet.
    pub(crate) fn clear_marks(&self, from: u32, to: u32) {
        for_bits(from, to, |pair, bits| self.marks(pair).set(self.marks(pair).get() & !bits));
    }

    /// Takes objects `from..to` back: they are free.
    pub(crate) fn clear_allocated(&self, from: u32, to: u32) {
        for_bits(from, to, |pair, bits| self.allocated(pair).set(self.allocated(pair).get() & !bits));
    }

    #[inline]
    pub(crate) fn set_allocated(&self, from: u32, to: u32) {
        for_bits(from, to, |pair, bits| self.allocated(pair).set(self.allocated(pair).get() | bits));
    }

    /// Finds the first run of free objects from object `from` on, and allocates of it what fits into `most`
    /// bytes, one object at least.
    #[inline]
    pub(crate) fn take_run(&self, from: u32, most: usize) -> Option<(u32, u32)> {
        let (start, mut end) = self.find_run(from)?;
        if (end - start) as usize * self.size.get() > most {
            end = start + (most / self.size.get()).max(1) as u32;
        }
        self.set_allocated(start, end);
        Some((start, end))
    }

    /// Finds the first run of free objects from object `from` on.
    #[inline]
    pub(crate) fn find_run(&self, from: u32) -> Option<(u32, u32)> {
        let count = self.count.get();
        if from >= count {
            return None;
        }
        let mut pair = from / 64;
        let mut free = !self.allocated(pair).get() & (!0 << (from % 64));
        while free == 0 {
            pair += 1;
            if pair * 64 >= count {
                return None;
            }
            free = !self.allocated(pair).get();
        }
        let first = free.trailing_zeros();
        let start = pair * 64 + first;
        if start >= count {
            return None;
        }
        let length = (!(free >> first)).trailing_zeros();
        let mut end = start + length;
        if first + length == 64 {
            // The run goes on in the next word, or ends with this one.
            end = self.next_allocated(end).unwrap_or(count);
        }
        Some((start, end.min(count)))
    }

    /// The first allocated object from object `from` on.
    fn next_allocated(&self, from: u32) -> Option<u32> {
        let mut pair = from / 64;
        let mut rest = !0 << (from % 64);
        while pair < self.pairs.get() {
            let found = self.allocated(pair).get() & rest;
            if found != 0 {
                return Some(pair * 64 + found.trailing_zeros());
            }
            pair += 1;
            rest = !0;
        }
        None
    }

    pub(crate) fn allocated_count(&self) -> u32 {
        (0..self.pairs.get()).map(|pair| self.allocated(pair).get().count_ones()).sum()
    }

    /// Calls `visit` for every object that is allocated and, if `marked`, marked and still here.
    pub(crate) fn each(&self, marked: bool, mut visit: impl FnMut(Index)) {
        for pair in 0..self.pairs.get() {
            let all = self.allocated(pair).get();
            let mut word = if marked { all & self.marks(pair).get() } else { all };
            if marked && self.evacuating.get() {
                word &= self.pins(pair).get();
            }
            while word != 0 {
                visit(Index(pair * 64 + word.trailing_zeros()));
                word &= word - 1;
            }
        }
    }

    /// Calls `visit` with runs of allocated objects: the first of each, and the one behind its last.
    pub(crate) fn each_run(&self, mut visit: impl FnMut(u32, u32)) {
        for pair in 0..self.pairs.get() {
            let mut word = self.allocated(pair).get();
            while word != 0 {
                let first = word.trailing_zeros();
                let end = first + (!(word >> first)).trailing_zeros();
                visit(pair * 64 + first, pair * 64 + end);
                word = if end == 64 { 0 } else { word & !0 << end };
            }
        }
    }

    /// Calls `visit` for those of objects `from..to` that are allocated and marked. No object has moved.
    pub(crate) fn each_marked(&self, from: u32, to: u32, mut visit: impl FnMut(Index)) {
        for_bits(from, to, |pair, bits| {
            let mut word = self.allocated(pair).get() & self.marks(pair).get() & bits;
            while word != 0 {
                visit(Index(pair * 64 + word.trailing_zeros()));
                word &= word - 1;
            }
        });
    }
}

/// Which words of objects of `words` words may hold pointers, if they have at most [`MAPPED_WORDS`]; else 0.
fn map_of(words: usize, scan: Scan, layout: *const Layout) -> u16 {
    match scan {
        Scan::Words if words <= MAPPED_WORDS => u16::MAX >> (MAPPED_WORDS - words),
        // SAFETY: a block with layout has one, which lives for ever.
        Scan::Layout if words <= MAPPED_WORDS => unsafe { (*layout).map(words) as u16 },
        _ => 0,
    }
}

/// Calls `change` with each bitmap pair that objects `from..to` touch, and their bits in it.
#[inline]
fn for_bits(from: u32, to: u32, mut change: impl FnMut(u32, u64)) {
    let mut at = from;
    while at < to {
        let pair = at / 64;
        let end = to.min(pair * 64 + 64);
        let bits = (!0u64 >> (64 - (end - at))) << (at % 64);
        change(pair, bits);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::size_class::{CLASS_LAST, bytes_of};

    /// Zeroed memory for a descriptor.
    #[repr(C, align(64))]
    struct Room(core::cell::UnsafeCell<[u64; WORDS]>);

    const WORDS: usize = descriptor_bytes(PAIRS_MAX as u32, BITMAPS_MAX) / size_of::<u64>();

    impl Room {
        fn new() -> Room {
            Room(core::cell::UnsafeCell::new([0; WORDS]))
        }
    }

    fn block(room: &Room, size: usize) -> &Block {
        // SAFETY: the room is zeroed, aligned, and as large as the largest descriptor.
        let block = unsafe { &*room.0.get().cast::<Block>() };
        block.begin(Addr::new(BLOCK), size, count_of(size), 1, Scan::Words, core::ptr::null());
        block
    }

    #[test]
    fn every_byte_finds_its_object() {
        // Interpreted, each tenth class does.
        let step = if cfg!(miri) { 10 } else { 1 };
        let room = Room::new();
        for class in (1..=CLASS_LAST).step_by(step) {
            let size = bytes_of(class);
            let block = block(&room, size);
            for offset in (0..BLOCK).step_by(step) {
                assert_eq!(block.index_at(offset).0 as usize, offset / size, "offset {offset} size {size}");
            }
        }
    }

    #[test]
    fn runs_cover_exactly_the_free_objects() {
        let room = Room::new();
        let block = block(&room, 48);
        for taken in [3, 63, 64, 65, 200] {
            for_bits(taken, taken + 1, |pair, bits| {
                block.allocated(pair).set(block.allocated(pair).get() | bits);
            });
        }
        let mut free = Vec::new();
        let mut from = 0;
        while let Some((start, end)) = block.take_run(from, BLOCK) {
            free.extend(start..end);
            from = end;
        }
        let expected: Vec<u32> =
            (0..count_of(48)).filter(|index| ![3, 63, 64, 65, 200].contains(index)).collect();
        assert_eq!(free, expected);
        assert_eq!(block.find_run(0), None);
        block.clear_allocated(10, 140);
        assert_eq!((block.find_run(0), block.find_run(20)), (Some((10, 140)), Some((20, 140))));
        let mut runs = Vec::new();
        block.each_run(|from, to| runs.push((from, to)));
        assert_eq!(runs.iter().map(|(from, to)| to - from).sum::<u32>(), block.allocated_count());
        assert!(
            runs.first() == Some(&(0, 10)) && runs.contains(&(140, 192)),
            "runs end with a word: {runs:?}"
        );
        assert_eq!(block.allocated_count(), count_of(48) - 130);
        assert_eq!(block.take_run(20, 100), Some((20, 22)), "two of 48 bytes");
        assert_eq!(block.take_run(20, 40), Some((22, 23)), "one at least");
        block.clear_allocated(20, 23);
        block.begin_trace();
        assert!(!block.mark(Index(20)) && block.mark(Index(5)) && !block.mark(Index(5)));
        assert!(block.is_marked(Index(5)) && !block.is_marked(Index(20)) && !block.is_marked(Index(6)));
    }
}
