//! A minor collection: what is alive of the new region goes to the end of the old one.
//!
//! ```text
//! prepare    room for copies, by how many lived on the last time        (the world still runs)
//! stop, retire, new blocks begin to be evacuated; blocks with a stopped thread's run stay
//! pin        dead or alive, what new untyped objects lead to; what tables know
//! old        untyped objects that were written to: mark and pin what they lead to
//! roots      ambiguous ones mark and pin, precise ones wait
//! old        typed objects that were written to: copy what they lead to
//! graph      copy what fields lead to, mark the rest where it is; finalizers, links, ephemerons
//! survey     of new blocks only: those with something alive become old, the others go to the warm end of the pool
//! account    nothing old is written: all that was new and lives is old, so that what was written leads to old objects only
//! ```
//!
//! What is done is in proportion to what lives on, to the blocks that were allocated from, and to the roots; only asking the account what was written looks at the whole
//! old region, a few nanoseconds a page.
//!
//! # What is pinned
//! A stack mostly pins the object that was made last, and not for long. Were its block promoted, each minor collection would leave a block with one dead object
//! behind; so a block of which little is alive, and pinned for the first time, stays *new* once more. What is old and leads into it must be
//! looked at again the next time, written or not: such fields are remembered as they are met (*holders*, [`HOLDERS_MAX`](super::promote::HOLDERS_MAX) at most,
//! or else all that is pinned is promoted); where an untyped object leads into it, it is promoted.
//!
//! # Invariants
//! * Nothing moves before the old untyped objects and the ambiguous roots are done.
//! * If the account fails on the way, every old object counts as written.

use crate::block::{Block, Region};
use crate::class::{BLOCK, WORD};
use crate::collect::{self, Reached, Traced};
use crate::dirty::Which;
use crate::evacuate::Evacuation;
use crate::event::{self, Event};
use crate::heap::Heap;
use crate::loader;
use crate::mark::Marker;
use crate::pause::{Kind, Pause};
use crate::procedure;
use crate::sizing::Found;
use crate::survey::{drop_block, settle};
use crate::thread::{self, Thread};
use crate::written::Written;
use vellum_sys::clock;

/// A pinned block of which at most one part of so many is alive stays new once.
const RETAINED_PART: u32 = 8;

/// Makes a minor collection, for `thread`, which is inside and holds the lock. False, and nothing was done, if memory for the lists is out.
pub(crate) fn collect(heap: &mut Heap, thread: &'static Thread) -> bool {
    loader::still(|| collect_with_libraries(heap, thread))
}

fn collect_with_libraries(heap: &mut Heap, thread: &'static Thread) -> bool {
    if !collect::prepare(heap) {
        return false;
    }
    event::tell(Event::Begin, heap);
    procedure::tell_begin();
    heap.plan_promotion();
    let pause = Pause::begin();
    let found = collect::with_world_stopped(heap, thread, |heap| {
        let before = clock::now_ns();
        heap.check_after("the program ran", Heap::validate);
        heap.appel.is_minor = true;
        collect::retire(heap);
        begin(heap);
        heap.pin();
        event::tell(Event::MarkBegin, heap);
        let (rooted, marked) = trace(heap);
        heap.check_after("tracing", Heap::check_traced);
        let met = heap.blocks.len();
        heap.finish_copies();
        let found = collect::told(heap, |heap| survey(heap, met));
        heap.take_for_unwritten();
        heap.appel.is_minor = false;
        heap.stats.root_ns_total += rooted - before;
        heap.stats.mark_ns_total += marked - rooted;
        heap.stats.sweep_ns_total += clock::now_ns() - marked;
        found
    });
    pause.end_as(heap, Kind::Minor);
    heap.stats.partial += 1;
    heap.appel.minors += 1;
    collect::end_minor(heap, found);
    true
}

/// New blocks begin to be emptied, but those that a stopped thread allocates from.
fn begin(heap: &Heap) {
    for &address in &heap.blocks[heap.appel.old_count..] {
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        let block = unsafe { &*(address as *const Block) };
        block.begin_trace();
        if heap.is_sparse(block) {
            block.begin_evacuation();
        }
    }
    for other in thread::known().filter(|other| !other.is_current()) {
        other.keep_runs(heap.slots_in_use());
    }
}

/// Marks everything new that is alive, moving what is to be moved; returns when the roots had been looked through, and when all had.
fn trace(heap: &mut Heap) -> (u64, u64) {
    let Some(mut dirty) = heap.dirty.take() else { unreachable!("a minor collection without an account") };
    let (has_untyped, has_typed) = (heap.appel.old_untyped > 0, heap.appel.old_typed > 0);
    // What is new was in use a moment ago.
    let near = heap.stats.live_bytes <= heap.cache_bytes as u64;
    let Heap { space, slots, stack, config, descriptors, copies, .. } = heap;
    let reached = Reached {
        roots: &heap.roots,
        kept: &heap.kept,
        finalizers: &mut heap.finalizers,
        disclaimers: &mut heap.disclaimers,
        links: &mut heap.links,
        ephemerons: &mut heap.ephemerons,
        blocks: &heap.blocks,
        slots_used: slots.len(),
        precise_stacks: config.precise_stacks,
    };
    let movement = Evacuation { space, slots, copies, descriptors };
    let mut marker = Marker::new(space, *stack, config.only_starts, movement).when_near(near);
    if has_untyped {
        let untyped = Written { which: Which::OldUntyped, drains: false };
        untyped.look_through(&mut marker, &mut dirty, space, reached.blocks);
    }
    let rooted = reached.mark_roots(&mut marker);
    for &at in heap.appel.holders.iter() {
        if space.block_of(at).is_some_and(|block| block.is_old() && block.extent.get() != 0) {
            // SAFETY: a word of an old block may be read and written, and was a field when it was noted.
            unsafe { marker.fields(at, at + WORD) };
        }
    }
    if has_typed {
        let typed = Written { which: Which::OldTyped, drains: true };
        typed.look_through(&mut marker, &mut dirty, space, reached.blocks);
    }
    let traced = Traced { rooted, ..collect::conclude(marker, reached) };
    heap.dirty = Some(dirty);
    let rooted_ns = traced.rooted_ns;
    collect::account(heap, &traced);
    (rooted_ns, clock::now_ns())
}

/// Sorts the new blocks, which are those of the heap's list before the `met`th, by whether something in them is alive; behind them are those that
/// copies went to.
fn survey(heap: &mut Heap, met: usize) -> Found {
    let first = heap.appel.old_count;
    let may_retain = !core::mem::take(&mut heap.copies.lost_holders);
    let mut found = Found { live: heap.appel.old_live + heap.copied_last(), ..Found::default() };
    found.bytes = heap.bytes + (heap.blocks.len() - met) * BLOCK;
    let mut to = first;
    for index in first..heap.blocks.len() {
        let address = heap.blocks[index];
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        let block: &'static Block = unsafe { &*(address as *const Block) };
        if block.extent.get() == 0 {
            heap.descriptors.put(block);
            continue;
        }
        if index < met {
            let may_retain = may_retain
                && block.evacuating.get()
                && block.region.get() == Region::New
                && block.survivors.get() == 0;
            let was_evacuated = block.evacuating.get();
            let census = settle(block, heap.config.poison);
            if was_evacuated && census.live > 0 {
                heap.stats.note_promoted(block, census.live);
            }
            let slot = &mut heap.slots[usize::from(block.slot.get())];
            slot.count_young(block, census);
            if census.live == 0 {
                found.bytes -= block.extent.get();
                drop_block(heap, block);
                continue;
            }
            found.live += census.live as usize * block.size.get();
            if may_retain && census.live * RETAINED_PART <= block.count.get() {
                let pushed = heap.appel.retained.push(address);
                debug_assert!(pushed.is_ok(), "room was made before the world stopped");
                continue;
            }
            if census.live < block.count.get() {
                block.next.set(slot.roomy);
                slot.roomy = block;
            }
        }
        heap.appel.adopt(block);
        heap.blocks[to] = address;
        to += 1;
    }
    heap.blocks.truncate(to);
    heap.appel.old_count = to;
    for index in 0..heap.appel.retained.len() {
        let pushed = heap.blocks.push(heap.appel.retained[index]);
        debug_assert!(pushed.is_ok(), "the list had them before");
    }
    heap.appel.retained.truncate(0);
    heap.appel.holders.swap(&mut heap.copies.holders);
    heap.copies.holders.truncate(0);
    if !may_retain {
        heap.appel.holders.truncate(0);
    }
    for slot in &mut heap.slots[..] {
        let (met, to_copy) = slot.learn_all();
        found.young += met;
        found.young_to_copy += to_copy;
    }
    found
}
