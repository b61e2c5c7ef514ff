//! The page layer compared with a plain model: a map from addresses to lengths and fill bytes.
//!
//! After each operation every live block still holds the bytes written to it, no two blocks overlap, zeroed
//! memory is zero, and the layer's invariants hold. A failure prints the case and its seed.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use vellum_pages::{Config, Extent, HugePolicy, Misuse, PAGE, Pages, Request, Severity, UNIT, Unclaimed};
use vellum_sys::{Addr, Span};

#[derive(Clone, Debug)]
enum Op {
    Alloc { pages: usize, align_log2: u32, zero: bool },
    Free { which: usize },
    Map { pages: usize },
    Unmap { which: usize, from: usize, pages: usize },
    Claim { which: usize, before: usize, pages: usize, replace: bool, fails: bool },
    Resize { which: usize, pages: usize, zero: bool },
    ResizeInPlace { which: usize, pages: usize },
    Relocate { which: usize },
    Swap { a: usize, b: usize },
    Units { count: usize },
    Trim { severity: u8 },
    Respect { headroom: u64 },
    Decay,
    FreeTwice { which: usize },
    FreeInside { which: usize },
}

fn pages() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1usize..40, 3 => 40usize..700, 1 => 700usize..3000]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (pages(), prop_oneof![4 => Just(12u32), 1 => 13u32..23], any::<bool>())
            .prop_map(|(pages, align_log2, zero)| Op::Alloc { pages, align_log2, zero }),
        5 => any::<usize>().prop_map(|which| Op::Free { which }),
        4 => pages().prop_map(|pages| Op::Map { pages }),
        4 => (any::<usize>(), 0usize..800, 0usize..800).prop_map(|(which, from, pages)| Op::Unmap { which, from, pages }),
        3 => (any::<usize>(), 0usize..60, 1usize..120, any::<bool>(), any::<bool>())
            .prop_map(|(which, before, pages, replace, fails)| Op::Claim { which, before, pages, replace, fails }),
        4 => (any::<usize>(), pages(), any::<bool>()).prop_map(|(which, pages, zero)| Op::Resize { which, pages, zero }),
        2 => (any::<usize>(), pages()).prop_map(|(which, pages)| Op::ResizeInPlace { which, pages }),
        1 => any::<usize>().prop_map(|which| Op::Relocate { which }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Op::Swap { a, b }),
        1 => (1usize..20).prop_map(|count| Op::Units { count }),
        1 => (0u8..3).prop_map(|severity| Op::Trim { severity }),
        1 => (0u64..(8 << 20)).prop_map(|headroom| Op::Respect { headroom }),
        1 => Just(Op::Decay),
        1 => any::<usize>().prop_map(|which| Op::FreeTwice { which }),
        1 => any::<usize>().prop_map(|which| Op::FreeInside { which }),
    ]
}

#[derive(Clone, Copy)]
struct Block {
    bytes: usize,
    fill: u8,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Block,
    /// A mapping of the program's, as it was handed out.
    Mapping,
    /// A part of one, or one that the kernel made where the layer had free memory.
    Piece,
}

fn span(low: usize, high: usize) -> Span {
    Span::between(Addr::new(low), Addr::new(high))
}

struct Model {
    layer: Pages,
    blocks: BTreeMap<usize, Block>,
    next_fill: u8,
}

impl Model {
    fn new(config: Config) -> Model {
        let layer = Pages::new();
        layer.configure(config);
        Model { layer, blocks: BTreeMap::new(), next_fill: 0 }
    }

    fn pick(&self, which: usize) -> Option<(usize, Block)> {
        let index = which.checked_rem(self.blocks.len())?;
        self.blocks.iter().nth(index).map(|(&start, &block)| (start, block))
    }

    /// A block that is one extent of the layer's.
    fn pick_whole(&self, which: usize) -> Option<(usize, Block)> {
        self.pick(which).filter(|(_, block)| block.kind != Kind::Piece)
    }

    /// Writes the block's fill to the ends of each of its pages.
    fn fill(&mut self, start: usize, bytes: usize) -> Block {
        self.next_fill = self.next_fill.checked_add(1).unwrap_or(1);
        let block = Block { bytes, fill: self.next_fill, kind: Kind::Block };
        for page in (start..start + bytes).step_by(PAGE) {
            // SAFETY: the pages of a live block.
            unsafe {
                (page as *mut u8).write(block.fill);
                ((page + PAGE - 1) as *mut u8).write(block.fill);
            }
        }
        block
    }

    fn holds(start: usize, block: Block, bytes: usize) -> bool {
        (start..start + bytes).step_by(PAGE).all(|page| {
            // SAFETY: the pages of a live block.
            unsafe { *(page as *const u8) == block.fill && *((page + PAGE - 1) as *const u8) == block.fill }
        })
    }

    /// Unmaps as `munmap` does: all that is mapped in the range.
    fn unmap(&mut self, low: usize, high: usize) {
        let mut rest = span(low, high);
        while !rest.is_empty() {
            // SAFETY: the model drops the blocks there.
            rest = rest.from(unsafe { self.layer.unmap(rest) }.1.end());
        }
    }

    fn overlapping(&self, low: usize, high: usize) -> Vec<(usize, Block)> {
        self.blocks
            .range(..high)
            .filter(|&(&start, block)| start + block.bytes > low)
            .map(|(&start, &block)| (start, block))
            .collect()
    }

    /// Has the kernel make a mapping at a place, as `MAP_FIXED` does.
    fn claim(&mut self, low: usize, high: usize, replace: bool, fails: bool) -> Result<(), TestCaseError> {
        let base = self.layer.span().start.get();
        // Below the layer, or in address space that it has only reserved, mappings are the kernel's affair.
        if low < base || (low - base) % (1 << 40) > 1 << 30 {
            return Ok(());
        }
        let met = self.overlapping(low, high);
        let is_mapped = {
            let arena = |at: usize| at.wrapping_sub(base) >> 40;
            self.blocks
                .keys()
                .any(|&start| start > high && arena(start) == arena(low) && arena(start) == arena(high))
        };
        match self.layer.claim(span(low, high), replace) {
            Err(refused) => {
                prop_assert_eq!(refused, Unclaimed::Occupied);
                prop_assert!(!replace && (!met.is_empty() || !is_mapped), "free memory was refused");
                return Ok(());
            }
            Ok(false) => {
                prop_assert!(met.is_empty());
                return Ok(());
            }
            Ok(true) => prop_assert!(replace || met.is_empty()),
        }
        if fails {
            self.layer.withdraw_claim(span(low, high));
            return Ok(());
        }
        // SAFETY: the place was claimed, and what the model has there is replaced.
        let made = unsafe { vellum_sys::map::renew(span(low, high)) }.is_ok();
        prop_assert!(made);
        self.layer.confirm_claim(span(low, high));
        let mut gap = low;
        for (start, block) in met {
            if start > gap {
                let piece = self.fill(gap, start - gap);
                self.blocks.insert(gap, Block { kind: Kind::Piece, ..piece });
            }
            gap = start + block.bytes;
            let (from, to) = (start.max(low), gap.min(high));
            // SAFETY: pages of the mapping just made.
            let is_new = unsafe { *(from as *const u8) == 0 && *((to - 1) as *const u8) == 0 };
            prop_assert!(is_new, "a fixed mapping shows what was there before");
            let kind = if block.kind == Kind::Block { Kind::Block } else { Kind::Piece };
            let filled = self.fill(start, block.bytes);
            self.blocks.insert(start, Block { kind, ..filled });
        }
        if gap < high {
            let piece = self.fill(gap, high - gap);
            self.blocks.insert(gap, Block { kind: Kind::Piece, ..piece });
        }
        Ok(())
    }

    fn admit(&mut self, extent: Extent, asked: usize, align: usize) -> Result<(), TestCaseError> {
        let start = extent.addr.as_ptr() as usize;
        prop_assert!(start.is_multiple_of(align) && extent.bytes >= asked && extent.bytes < asked + PAGE);
        prop_assert_eq!(self.layer.span().intersect(extent.span()), extent.span());
        if let Some((&before, block)) = self.blocks.range(..start + extent.bytes).next_back() {
            prop_assert!(before + block.bytes <= start, "blocks overlap");
        }
        if extent.zeroed {
            for page in (start..start + extent.bytes).step_by(PAGE) {
                // SAFETY: the pages of a live block.
                let all_zero = unsafe { std::slice::from_raw_parts(page as *const u64, PAGE / 8) }
                    .iter()
                    .all(|&word| word == 0);
                prop_assert!(all_zero, "memory said to be zero is not");
            }
        }
        let block = self.fill(start, extent.bytes);
        self.blocks.insert(start, block);
        Ok(())
    }

    fn resized(
        &mut self,
        start: usize,
        old: Block,
        extent: Extent,
        bytes: usize,
    ) -> Result<(), TestCaseError> {
        let now = extent.addr.as_ptr() as usize;
        prop_assert!(extent.bytes == bytes);
        prop_assert!(Model::holds(now, old, old.bytes.min(bytes)), "contents lost by a resize");
        self.blocks.remove(&start);
        let block = self.fill(now, extent.bytes);
        self.blocks.insert(now, Block { kind: old.kind, ..block });
        if old.kind == Kind::Mapping {
            self.layer.make_mapping(extent.addr);
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let pointer = |start: usize| NonNull::new(start as *mut u8).expect("not null");
        match *op {
            Op::Alloc { pages, align_log2, zero } => {
                let request = Request { bytes: pages * PAGE, align: 1 << align_log2, zero };
                let extent = self.layer.alloc(request).expect("memory for a small test");
                prop_assert!(!zero || extent.zeroed);
                self.admit(extent, request.bytes, request.align)?;
            }
            Op::Free { which } => {
                if let Some((start, block)) = self.pick(which) {
                    // SAFETY: a live block that the model forgets; a mapping is refused.
                    let freed = unsafe { self.layer.free(pointer(start)) };
                    if block.kind == Kind::Block {
                        prop_assert_eq!(freed, Ok(block.bytes));
                        self.blocks.remove(&start);
                    } else {
                        prop_assert_eq!(freed, Err(Misuse::Mapping));
                    }
                }
            }
            Op::Map { pages } => {
                let extent = self.layer.map(pages * PAGE).expect("memory for a small test");
                prop_assert!(extent.zeroed);
                self.admit(extent, pages * PAGE, PAGE)?;
                let start = extent.addr.as_ptr() as usize;
                prop_assert!(self.layer.separate_mapping(extent.addr, extent.bytes));
                self.blocks.get_mut(&start).expect("admitted").kind = Kind::Mapping;
            }
            // From within a mapping, over free memory and mappings behind it, up to the first block.
            Op::Unmap { which, from, pages } => {
                if let Some((start, block)) = self.pick(which).filter(|(_, block)| block.kind != Kind::Block)
                {
                    let low = start + from % (block.bytes / PAGE) * PAGE;
                    let mut high = low + (1 + pages) * PAGE;
                    let met = self.overlapping(low, high);
                    if let Some((stop, _)) = met.iter().find(|(_, block)| block.kind == Kind::Block) {
                        high = *stop;
                    }
                    if which % 2 == 0 {
                        self.layer.taint(low as *const u8, 1);
                    }
                    self.unmap(low, high);
                    for (start, block) in met.into_iter().filter(|&(start, _)| start < high) {
                        self.blocks.remove(&start);
                        let end = start + block.bytes;
                        if low > start {
                            self.blocks
                                .insert(start, Block { bytes: low - start, kind: Kind::Piece, ..block });
                        }
                        if high < end {
                            self.blocks.insert(high, Block { bytes: end - high, kind: Kind::Piece, ..block });
                        }
                    }
                }
            }
            Op::Claim { which, before, pages, replace, fails } => {
                if let Some((start, block)) = self.pick(which) {
                    let end = start + block.bytes;
                    let low = if which % 2 == 0 { end } else { start.saturating_sub(before * PAGE) };
                    self.claim(low, low + pages * PAGE, replace, fails)?;
                }
            }
            Op::Resize { which, pages, zero } => {
                if let Some((start, block)) = self.pick_whole(which) {
                    let (address, bytes) = (pointer(start), pages * PAGE);
                    // SAFETY: a live block; the model follows it.
                    let extent = unsafe {
                        if zero {
                            self.layer.resize_zeroed(address, bytes)
                        } else {
                            self.layer.resize(address, bytes)
                        }
                    };
                    let extent = extent.expect("memory");
                    if zero && bytes > block.bytes {
                        // SAFETY: the new pages of a live block.
                        let new = unsafe {
                            std::slice::from_raw_parts(
                                extent.addr.as_ptr().add(block.bytes),
                                bytes - block.bytes,
                            )
                        };
                        prop_assert!(new.iter().all(|&byte| byte == 0), "new memory said to be zero is not");
                    }
                    self.resized(start, block, extent, pages * PAGE)?;
                }
            }
            Op::ResizeInPlace { which, pages } => {
                if let Some((start, block)) = self.pick_whole(which) {
                    // SAFETY: a live block, which the model uses at its new place only.
                    if let Some(extent) = unsafe { self.layer.resize_in_place(pointer(start), pages * PAGE) }
                    {
                        prop_assert_eq!(extent.addr.as_ptr() as usize, start);
                        self.resized(start, block, extent, pages * PAGE)?;
                    }
                }
            }
            Op::Relocate { which } => {
                if let Some((start, block)) = self.pick_whole(which) {
                    // SAFETY: a live block, which the model uses at its new place only.
                    let extent = unsafe { self.layer.relocate(pointer(start), PAGE) }.expect("memory");
                    self.resized(start, block, extent, block.bytes)?;
                }
            }
            Op::Swap { a, b } => {
                if let (Some((a, first)), Some((b, second))) = (self.pick_whole(a), self.pick_whole(b)) {
                    // SAFETY: live blocks.
                    let swapped = unsafe { self.layer.swap(pointer(a), pointer(b)) };
                    prop_assert_eq!(swapped.is_ok(), first.bytes == second.bytes);
                    if swapped.is_ok() {
                        self.blocks.insert(a, Block { kind: first.kind, ..second });
                        self.blocks.insert(b, Block { kind: second.kind, ..first });
                    }
                }
            }
            Op::Units { count } => {
                let mut units = vec![std::ptr::null_mut(); count];
                prop_assert_eq!(self.layer.alloc_units(&mut units), count);
                for unit in units {
                    let extent = self.layer.extent_at(unit).expect("a unit is a block");
                    self.admit(extent, UNIT, UNIT)?;
                }
            }
            Op::Trim { severity } => {
                let severity = [Severity::Mark, Severity::Flush, Severity::Everything][usize::from(severity)];
                self.layer.trim(severity);
            }
            Op::Respect { headroom } => self.layer.apply_limits(headroom),
            Op::Decay => {
                self.layer.decay();
            }
            Op::FreeTwice { which } => {
                if let Some((start, _)) = self.pick(which).filter(|(_, block)| block.kind == Kind::Block) {
                    // SAFETY: a live block that the model forgets; the second call is the misuse under test.
                    let (first, second) =
                        unsafe { (self.layer.free(pointer(start)), self.layer.free(pointer(start))) };
                    prop_assert!(first.is_ok());
                    prop_assert_eq!(second, Err(Misuse::AlreadyFree));
                    self.blocks.remove(&start);
                }
            }
            Op::FreeInside { which } => {
                if let Some((start, block)) = self.pick_whole(which) {
                    let inside = start + block.bytes / 2 / 16 * 16;
                    if inside != start {
                        // SAFETY: the misuse under test changes nothing.
                        let refused = unsafe { self.layer.free(pointer(inside)) };
                        prop_assert_eq!(refused, Err(Misuse::InsideBlock { start: Addr::new(start) }));
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.layer.validate(), Ok(()));
        for (&start, &block) in &self.blocks {
            prop_assert!(Model::holds(start, block, block.bytes), "a block's contents changed");
        }
        let live: usize = self.blocks.values().map(|block| block.bytes).sum();
        let slot = self.layer.slot();
        prop_assert_eq!(slot.get(vellum_wire::Counter::NowLive), live as u64);
        Ok(())
    }
}

fn run(config: Config, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model::new(config);
    let slot = Box::leak(Box::new(vellum_wire::Slot::new()));
    model.layer.attach_new_slot(slot);
    for op in ops {
        model.apply(op)?;
        model.check()?;
    }
    let starts: Vec<usize> = model.blocks.keys().copied().collect();
    for start in starts {
        let block = model.blocks[&start];
        if block.kind == Kind::Block {
            // SAFETY: the last use of each block.
            let freed = unsafe { model.layer.free(NonNull::new(start as *mut u8).expect("not null")) };
            prop_assert!(freed.is_ok());
        } else {
            model.unmap(start, start + block.bytes);
        }
    }
    model.layer.trim(Severity::Everything);
    prop_assert_eq!(model.layer.validate(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48 * vellum_skip::scale() as u32, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_model(ops in prop::collection::vec(op(), 1..60)) {
        run(Config::DEFAULT, &ops)?;
    }

    #[test]
    fn agrees_with_the_model_without_huge_pages(ops in prop::collection::vec(op(), 1..40)) {
        run(Config { huge: HugePolicy::Never, ..Config::DEFAULT }, &ops)?;
    }

    #[test]
    fn agrees_with_the_model_when_nothing_is_kept(ops in prop::collection::vec(op(), 1..40)) {
        run(Config { decay_ms: 0, huge: HugePolicy::Always, ..Config::DEFAULT }, &ops)?;
    }
}
