//! Tests of the allocator against a model, a plain map of the blocks in use.
//!
//! Random sequences of every operation run on a thread with a heap of its own. After each operation, blocks
//! do not overlap, are aligned, are at least as large as requested, read zero where promised, and keep their
//! contents. From time to time every invariant of the heap is checked.

use proptest::prelude::*;
use std::collections::BTreeMap;
use vellum_malloc as front;

#[derive(Clone, Debug)]
enum Step {
    Malloc(usize),
    Calloc(usize, usize),
    Aligned(u32, usize),
    Free(usize),
    Realloc(usize, usize),
    Batch(usize, usize),
    Sizes(Vec<usize>),
    FreeBatch(usize, usize),
    /// Blocks of one size, of which one in `every` stays; the others are freed, by this thread or another.
    Sparse {
        bytes: usize,
        count: usize,
        every: usize,
        elsewhere: bool,
    },
    Validate,
    Trim,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0usize..300,
        4 => 0usize..5_000,
        2 => 5_000usize..40_000,
        1 => 40_000usize..700_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => size().prop_map(Step::Malloc),
        2 => (1usize..20, 0usize..400).prop_map(|(count, bytes)| Step::Calloc(count, bytes)),
        1 => size().prop_map(|bytes| Step::Calloc(1, bytes)),
        2 => (4u32..14, size()).prop_map(|(shift, bytes)| Step::Aligned(shift, bytes)),
        10 => any::<usize>().prop_map(Step::Free),
        4 => (any::<usize>(), size()).prop_map(|(which, bytes)| Step::Realloc(which, bytes)),
        1 => (1usize..600, 1usize..6_000).prop_map(|(bytes, count)| Step::Batch(bytes, count)),
        1 => prop::collection::vec(size(), 1..40).prop_map(Step::Sizes),
        2 => (any::<usize>(), 1usize..5_000).prop_map(|(from, count)| Step::FreeBatch(from, count)),
        2 => (1usize..6_000, 1usize..2_000, 2usize..400, any::<bool>())
            .prop_map(|(bytes, count, every, elsewhere)| Step::Sparse { bytes, count, every, elsewhere }),
        1 => Just(Step::Validate),
        2 => Just(Step::Trim),
    ]
}

struct Block {
    bytes: usize,
    mark: u8,
}

/// Bytes marked at either end of a block.
const MARKED: usize = 32;

#[derive(Default)]
struct Model {
    blocks: BTreeMap<usize, Block>,
    marks: u8,
}

impl Model {
    fn add(&mut self, address: *mut u8, bytes: usize) {
        assert!(!address.is_null(), "{bytes} bytes");
        let start = address as usize;
        assert_eq!(start % 16, 0);
        // SAFETY: the block was just handed out.
        let usable = unsafe { front::usable_size(address) };
        assert!(usable >= bytes, "{usable} of {bytes} bytes");
        if let Some((other, block)) = self.blocks.range(..=start).next_back() {
            assert!(other + block.bytes.max(1) <= start, "{start:#x} overlaps {other:#x}");
        }
        if let Some((other, _)) = self.blocks.range(start + 1..).next() {
            assert!(start + bytes <= *other, "{start:#x} overlaps {other:#x}");
        }
        self.marks = self.marks.wrapping_add(1);
        let block = Block { bytes, mark: self.marks };
        for place in marked(start, &block) {
            // SAFETY: within the block.
            unsafe { (place as *mut u8).write(block.mark) };
        }
        self.blocks.insert(start, block);
    }

    fn take(&mut self, which: usize) -> Option<(*mut u8, Block)> {
        let index = which % self.blocks.len().max(1);
        let start = *self.blocks.keys().nth(index)?;
        let block = self.blocks.remove(&start)?;
        check(start, &block, block.bytes);
        Some((start as *mut u8, block))
    }
}

fn marked(start: usize, block: &Block) -> impl Iterator<Item = usize> + use<> {
    let bytes = block.bytes;
    (0..bytes.min(MARKED)).chain(bytes.saturating_sub(MARKED)..bytes).map(move |offset| start + offset)
}

fn check(start: usize, block: &Block, limit: usize) {
    for place in marked(start, block).filter(|place| place - start < limit) {
        // SAFETY: within the block.
        let found = unsafe { (place as *const u8).read() };
        assert_eq!(found, block.mark, "{place:#x} in the block at {start:#x}");
    }
}

fn run(steps: &[Step]) {
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Malloc(bytes) => model.add(front::malloc(*bytes), *bytes),
            Step::Calloc(count, bytes) => {
                let block = front::calloc(*count, *bytes);
                for offset in 0..count * bytes {
                    // SAFETY: within the block.
                    assert_eq!(unsafe { block.add(offset).read() }, 0, "byte {offset} of {count} x {bytes}");
                }
                model.add(block, count * bytes);
            }
            Step::Aligned(shift, bytes) => {
                let block = front::aligned(1 << shift, *bytes);
                assert_eq!(block as usize % (1 << shift), 0);
                model.add(block, *bytes);
            }
            Step::Free(which) => {
                if let Some((block, _)) = model.take(*which) {
                    // SAFETY: the block is in use, and forgotten by the model.
                    unsafe { front::free(block) };
                }
            }
            Step::Realloc(which, bytes) => {
                if let Some((old, block)) = model.take(*which) {
                    // SAFETY: the block is in use, and the model no longer has it.
                    let new = unsafe { front::realloc(old, *bytes) };
                    if *bytes == 0 {
                        assert!(new.is_null());
                    } else {
                        let kept = (*bytes).min(block.bytes);
                        let head = Block { bytes: kept.min(MARKED), ..block };
                        check(new as usize, &head, kept);
                        model.add(new, *bytes);
                    }
                }
            }
            Step::Batch(bytes, count) => {
                let mut blocks = vec![std::ptr::null_mut(); *count];
                assert_eq!(front::malloc_batch(*bytes, &mut blocks), *count);
                blocks.iter().for_each(|&block| model.add(block, *bytes));
            }
            Step::Sizes(sizes) => {
                let mut blocks = vec![std::ptr::null_mut(); sizes.len()];
                assert_eq!(front::malloc_sizes(sizes, &mut blocks), sizes.len());
                blocks.iter().zip(sizes).for_each(|(&block, &bytes)| model.add(block, bytes));
            }
            Step::FreeBatch(from, count) => {
                let mut blocks = vec![std::ptr::null_mut()];
                let first = from % model.blocks.len().max(1);
                let starts: Vec<usize> = model.blocks.keys().skip(first).take(*count).copied().collect();
                for start in starts {
                    let block = model.blocks.remove(&start).expect("a key of the map");
                    check(start, &block, block.bytes);
                    blocks.push(start as *mut u8);
                }
                // SAFETY: the blocks are in use, and forgotten by the model.
                unsafe { front::free_batch(&blocks) };
            }
            Step::Sparse { bytes, count, every, elsewhere } => {
                let blocks: Vec<usize> = (0..*count).map(|_| front::malloc(*bytes) as usize).collect();
                let (kept, freed): (Vec<_>, Vec<_>) =
                    blocks.into_iter().enumerate().partition(|(index, _)| index % every == 0);
                kept.into_iter().for_each(|(_, block)| model.add(block as *mut u8, *bytes));
                // SAFETY: each block is in use, and freed once.
                let free =
                    move || freed.into_iter().for_each(|(_, block)| unsafe { front::free(block as *mut u8) });
                if *elsewhere { std::thread::spawn(free).join().expect("the thread ends") } else { free() }
            }
            Step::Validate => assert_eq!(front::validate(), Ok(())),
            Step::Trim => {
                front::trim();
            }
        }
    }
    assert_eq!(front::validate(), Ok(()));
    while let Some((block, _)) = model.take(0) {
        // SAFETY: the block is in use, and forgotten by the model.
        unsafe { front::free(block) };
    }
    assert_eq!(front::validate(), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48 * vellum_skip::scale() as u32, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_map(steps in prop::collection::vec(step(), 1..400)) {
        run(&steps);
    }
}

#[test]
fn everything_freed_is_everything_returned() {
    let blocks: Vec<_> = (0..100_000usize).map(|index| front::malloc(index % 3000)).collect();
    // SAFETY: each block is in use and freed once.
    blocks.iter().for_each(|&block| unsafe { front::free(block) });
    front::trim();
    // Other tests of this process may hold blocks; what this one held were 150 MB.
    let slot = vellum_pages::Pages::global().slot();
    let held = slot.get(vellum_wire::Counter::NowLive) + slot.get(vellum_wire::Counter::NowCached);
    assert!(held < 60 << 20, "{held} bytes still held");
}

#[test]
fn impossible_requests_are_refused() {
    assert!(front::malloc(usize::MAX).is_null());
    assert!(front::malloc(isize::MAX as usize).is_null());
    assert!(front::calloc(usize::MAX / 2, 3).is_null());
    assert!(front::aligned(1 << 40, 1).is_null());
    let block = front::malloc(10);
    // SAFETY: the block is in use, and a refused resize leaves it so.
    unsafe {
        assert!(front::realloc(block, usize::MAX).is_null());
        assert!(front::reallocarray(block, usize::MAX, 2).is_null());
        front::free(block);
    }
}
