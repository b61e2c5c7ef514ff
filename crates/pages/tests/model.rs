//! The page layer against a plain model: a map from addresses to lengths and fill bytes.
//!
//! After each operation every live block still holds what was written to it, no two blocks overlap, memory that was asked to
//! be zero is, and the layer's own invariants hold. proptest prints the failing case and its seed.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use vellum_pages::{Config, Extent, HugePolicy, Misuse, PAGE, Pages, Request, Severity, UNIT};

#[derive(Clone, Debug)]
enum Op {
    Alloc { pages: usize, align_log2: u32, zero: bool },
    Free { which: usize },
    FreePart { which: usize, from: usize, pages: usize },
    Resize { which: usize, pages: usize, zero: bool },
    ResizeInPlace { which: usize, pages: usize },
    Relocate { which: usize },
    Swap { a: usize, b: usize },
    Units { count: usize },
    Batch { pages: usize, count: usize },
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
        1 => (any::<usize>(), any::<usize>(), any::<usize>()).prop_map(|(which, from, pages)| Op::FreePart { which, from, pages }),
        4 => (any::<usize>(), pages(), any::<bool>()).prop_map(|(which, pages, zero)| Op::Resize { which, pages, zero }),
        2 => (any::<usize>(), pages()).prop_map(|(which, pages)| Op::ResizeInPlace { which, pages }),
        1 => any::<usize>().prop_map(|which| Op::Relocate { which }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Op::Swap { a, b }),
        1 => (1usize..20).prop_map(|count| Op::Units { count }),
        1 => (1usize..9, 1usize..12).prop_map(|(pages, count)| Op::Batch { pages, count }),
        1 => (0u8..3).prop_map(|severity| Op::Trim { severity }),
        1 => (0u64..(8 << 20)).prop_map(|headroom| Op::Respect { headroom }),
        1 => Just(Op::Decay),
        1 => any::<usize>().prop_map(|which| Op::FreeTwice { which }),
        1 => any::<usize>().prop_map(|which| Op::FreeInside { which }),
    ]
}

/// What the model knows of a block.
#[derive(Clone, Copy)]
struct Block {
    bytes: usize,
    fill: u8,
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

    /// Writes the block's fill to the ends of each of its pages.
    fn fill(&mut self, start: usize, bytes: usize) -> Block {
        self.next_fill = self.next_fill.checked_add(1).unwrap_or(1);
        let block = Block { bytes, fill: self.next_fill };
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

    fn admit(&mut self, extent: Extent, asked: usize, align: usize) -> Result<(), TestCaseError> {
        let start = extent.addr.as_ptr() as usize;
        prop_assert!(start.is_multiple_of(align) && extent.bytes >= asked && extent.bytes < asked + PAGE);
        let (base, span) = self.layer.span();
        prop_assert!(start >= base && start + extent.bytes <= base + span);
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
        self.blocks.insert(now, block);
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
                    // SAFETY: a live block that the model forgets.
                    prop_assert_eq!(unsafe { self.layer.free(pointer(start)) }, Ok(block.bytes));
                    self.blocks.remove(&start);
                }
            }
            Op::FreePart { which, from, pages } => {
                if let Some((start, block)) = self.pick(which) {
                    let count = block.bytes / PAGE;
                    let from = from % count;
                    let pages = 1 + pages % (count - from);
                    let (low, high) = (start + from * PAGE, start + (from + pages) * PAGE);
                    if which % 2 == 0 {
                        self.layer.taint(low as *const u8, 1);
                    }
                    // SAFETY: a part of a live block that the model forgets.
                    let freed = unsafe { self.layer.free_range(pointer(low), high - low) };
                    prop_assert_eq!(freed, Ok(()));
                    self.blocks.remove(&start);
                    if low > start {
                        self.blocks.insert(start, Block { bytes: low - start, ..block });
                    }
                    if high < start + block.bytes {
                        self.blocks.insert(high, Block { bytes: start + block.bytes - high, ..block });
                    }
                }
            }
            Op::Resize { which, pages, zero } => {
                if let Some((start, block)) = self.pick(which) {
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
                if let Some((start, block)) = self.pick(which) {
                    // SAFETY: as above.
                    if let Some(extent) = unsafe { self.layer.resize_in_place(pointer(start), pages * PAGE) }
                    {
                        prop_assert_eq!(extent.addr.as_ptr() as usize, start);
                        self.resized(start, block, extent, pages * PAGE)?;
                    }
                }
            }
            Op::Relocate { which } => {
                if let Some((start, block)) = self.pick(which) {
                    // SAFETY: as above.
                    let extent = unsafe { self.layer.relocate(pointer(start), PAGE) }.expect("memory");
                    self.resized(start, block, extent, block.bytes)?;
                }
            }
            Op::Swap { a, b } => {
                if let (Some((a, first)), Some((b, second))) = (self.pick(a), self.pick(b)) {
                    // SAFETY: live blocks.
                    let swapped = unsafe { self.layer.swap(pointer(a), pointer(b)) };
                    prop_assert_eq!(swapped.is_ok(), first.bytes == second.bytes);
                    if swapped.is_ok() {
                        self.blocks.insert(a, second);
                        self.blocks.insert(b, first);
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
            Op::Batch { pages, count } => {
                let mut blocks = vec![std::ptr::null_mut(); count];
                prop_assert_eq!(self.layer.alloc_batch(pages * PAGE, &mut blocks), count);
                for block in blocks {
                    let extent = self.layer.extent_at(block).expect("a batched block is a block");
                    self.admit(extent, pages * PAGE, PAGE)?;
                }
            }
            Op::Trim { severity } => {
                let severity = [Severity::Mark, Severity::Flush, Severity::Everything][usize::from(severity)];
                self.layer.trim(severity);
            }
            Op::Respect { headroom } => self.layer.respect(headroom),
            Op::Decay => {
                self.layer.decay();
            }
            Op::FreeTwice { which } => {
                if let Some((start, _)) = self.pick(which) {
                    // SAFETY: a live block that the model forgets; the second call is the misuse under test.
                    let (first, second) =
                        unsafe { (self.layer.free(pointer(start)), self.layer.free(pointer(start))) };
                    prop_assert!(first.is_ok());
                    prop_assert_eq!(second, Err(Misuse::AlreadyFree));
                    self.blocks.remove(&start);
                }
            }
            Op::FreeInside { which } => {
                if let Some((start, block)) = self.pick(which) {
                    let inside = start + block.bytes / 2 / 16 * 16;
                    if inside != start {
                        // SAFETY: the misuse under test changes nothing.
                        let refused = unsafe { self.layer.free(pointer(inside)) };
                        prop_assert_eq!(refused, Err(Misuse::InsideBlock { start }));
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
    model.layer.seat_anew(slot);
    for op in ops {
        model.apply(op)?;
        model.check()?;
    }
    let starts: Vec<usize> = model.blocks.keys().copied().collect();
    for start in starts {
        // SAFETY: the last use of each block.
        let freed = unsafe { model.layer.free(NonNull::new(start as *mut u8).expect("not null")) };
        prop_assert!(freed.is_ok());
    }
    model.layer.trim(Severity::Everything);
    prop_assert_eq!(model.layer.validate(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

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
