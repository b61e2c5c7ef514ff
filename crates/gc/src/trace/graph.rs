//! A test that traces a graph in plain memory, without threads, pages or a program. Miri can interpret the
//! test, and so checks how the marker and the descriptors use pointers.
//!
//! Blocks of three sorts lie in one piece of memory; objects refer to each other at random, by the addresses
//! of their first bytes or of inner bytes. The trace must mark the objects that a search of the graph finds,
//! with any size of the mark stack.

use crate::space::address_table::AddressTable;
use crate::space::block::{BITMAPS_MAX, Block, Index, PAIRS_MAX, Scan, count_of, descriptor_bytes};
use crate::space::layout::{Layout, Shape};
use crate::space::size_class::{BLOCK, WORD};
use crate::trace::mark::{Marker, StackMemory};
use crate::trace::movement::InPlace;
use core::ptr::null;
use std::cell::UnsafeCell;
use std::collections::HashSet;
use vellum_random::Rng;
use vellum_sys::Addr;

const BLOCKS: usize = 3;
/// Objects used of each block.
const OBJECTS: u32 = if cfg!(miri) { 24 } else { 100 };
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 200 };
/// Sizes and sorts of the blocks' objects. The typed ones have pointers in their first and third words.
const SORTS: [(usize, Scan); BLOCKS] = [(48, Scan::Layout), (64, Scan::Words), (160, Scan::Words)];
const TYPED: u64 = 0b101;

#[repr(C, align(64))]
struct Room(UnsafeCell<[u64; descriptor_bytes(PAIRS_MAX as u32, BITMAPS_MAX) / 8]>);

/// Memory for blocks, aligned as they are.
#[repr(C, align(16384))]
struct Memory(UnsafeCell<[usize; BLOCKS * BLOCK / WORD]>);

/// Times the stack was full.
fn trace(seed: u64, stack_words: usize, only_starts: bool) -> u64 {
    let mut random = Rng::new(seed);
    let mut below = move |end: usize| random.index(end);
    let memory = Box::new(Memory(UnsafeCell::new([0; BLOCKS * BLOCK / WORD])));
    let base = Addr::of(memory.0.get());
    let mut layout = Box::new(std::mem::MaybeUninit::<Layout>::zeroed());
    // SAFETY: a zeroed layout is a valid one.
    let layout = unsafe { layout.assume_init_mut() };
    let shape = Shape::new(SORTS[0].0, |_| TYPED).expect("a size that is served");
    layout.words.set(shape.words);
    layout.pointers.set(shape.pointers);
    layout.has_pointers.set(true);
    let rooms: [Room; BLOCKS] = std::array::from_fn(|_| {
        Room(UnsafeCell::new([0; descriptor_bytes(PAIRS_MAX as u32, BITMAPS_MAX) / 8]))
    });
    let blocks: Vec<&'static Block> = rooms
        .iter()
        .zip(SORTS)
        .enumerate()
        .map(|(index, (room, (size, scan)))| {
            // SAFETY: zeroed memory for the largest descriptor, which outlives the use of the reference.
            let block = unsafe { &*room.0.get().cast::<Block>() };
            let layout = if scan == Scan::Layout { std::ptr::from_ref(&*layout) } else { null() };
            block.begin(base + index * BLOCK, size, count_of(size), 1 + index as u16, scan, layout);
            assert_eq!(block.take_run(0, BLOCK), Some((0, count_of(size))));
            block.clear_allocated(OBJECTS, count_of(size));
            block.begin_trace();
            block
        })
        .collect();
    let table: Vec<*const Block> = blocks.iter().map(|block| std::ptr::from_ref(*block)).collect();
    let space = AddressTable::over(&table, base);

    // Edges, and words that look like some where there are none.
    let objects = BLOCKS * OBJECTS as usize;
    let address = |object: usize| blocks[object / OBJECTS as usize].address(Index(object as u32 % OBJECTS));
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); objects];
    for from in 0..objects {
        let (size, scan) = SORTS[from / OBJECTS as usize];
        for word in 0..size / WORD {
            if below(6) != 0 {
                continue;
            }
            let to = below(objects);
            let offset = below(3) * below(SORTS[to / OBJECTS as usize].0);
            let value = address(to) + offset % SORTS[to / OBJECTS as usize].0;
            // SAFETY: within the memory.
            unsafe {
                (address(from) + word * WORD).ptr::<Addr>().write(value);
            };
            let counts = scan == Scan::Words || TYPED >> word & 1 != 0;
            if counts && (!only_starts || value == address(to)) {
                edges[from].push(to);
            }
        }
    }
    let roots: Vec<usize> = (0..4).map(|_| below(objects)).collect();
    let mut expected = HashSet::new();
    let mut waiting = roots.clone();
    while let Some(object) = waiting.pop() {
        if expected.insert(object) {
            waiting.extend(&edges[object]);
        }
    }

    let mut stack = vec![0usize; stack_words];
    let memory_of_stack = StackMemory { start: stack.as_mut_ptr(), room: stack_words };
    let mut marker =
        Marker::new(&space, memory_of_stack, only_starts, InPlace).when_near(seed.is_multiple_of(2));
    roots.iter().for_each(|&root| marker.root(address(root) + 5));
    marker.drain(&blocks);
    assert_eq!(marker.marked, expected.len() as u64, "seed {seed}, {stack_words} words of stack");
    assert!(marker.overflows == 0 || stack_words < objects, "the stack was full");
    let overflows = marker.overflows;
    for object in 0..objects {
        let (block, index) = (blocks[object / OBJECTS as usize], Index(object as u32 % OBJECTS));
        assert_eq!(block.is_marked(index), expected.contains(&object), "object {object} of seed {seed}");
    }
    overflows
}

#[test]
fn what_is_marked_is_what_a_search_finds() {
    let mut overflows = 0;
    for seed in 0..ROUNDS {
        for stack_words in [2, 4, 16, 1000] {
            overflows += trace(seed, stack_words, seed.is_multiple_of(3));
        }
    }
    assert!(overflows > 0, "small stacks are full now and then");
}
