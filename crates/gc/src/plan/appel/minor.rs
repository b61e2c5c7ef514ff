//! A minor collection: live objects of the new region are copied to the end of the old one.
//!
//! ```text
//! prepare  reserve memory for copies, sized by the last collection's survivors (the program still runs)
//! stop     take back unused objects; choose the new blocks to evacuate, except those that threads use
//! pin      what new untyped objects, dead or alive, lead to; objects whose addresses are in tables
//! old      untyped objects that were written to: mark and pin what they lead to
//! roots    ambiguous ones: mark and pin what they lead to; precise ones: put on the stack for later
//! old      typed objects that were written to: copy what they lead to
//! graph    copy what fields lead to, mark the rest where it is; finalizers, links, ephemerons
//! sweep    new blocks only: those with live objects become old, the others go to the pool of free blocks
//! account  clear the record of writes: survivors are old, so written fields lead to old objects only
//! ```
//!
//! The work is in proportion to the survivors, to the blocks that were allocated from, and to the roots.
//! Only one step covers the whole old region: reading the record of written pages, which takes a few
//! nanoseconds for each page.
//!
//! # What is pinned
//! A stack mostly pins the object that was made last, and not for long. If that object's block were promoted
//! (became old), each minor collection would leave a block with one dead object behind. A block that has few
//! live objects, and a pinned one for the first time, therefore stays *new* once more.
//!
//! The next minor collection must scan the old fields that lead into such a block, written or not. These
//! fields (*holders*, at most [`HOLDERS_MAX`](super::promote::HOLDERS_MAX)) are recorded when the scan finds
//! them. If there are more, all blocks with pinned objects are promoted. A block that an untyped object leads
//! into is always promoted.
//!
//! # Invariants
//! * No object moves before the old untyped objects and the ambiguous roots are done.
//! * If the record of writes fails on the way, every old object counts as written.

use crate::heap::Heap;
use crate::plan::appel::Appel;
use crate::plan::collection::{self, Reached, Traced};
use crate::plan::contract::Plan;
use crate::plan::evacuation::Evacuation;
use crate::plan::pause::{Kind, Pause};
use crate::plan::sweep::{drop_block, settle};
use crate::process::hooks;
use crate::sizing::policy::Found;
use crate::space::block::Region;
use crate::space::heap_space::HeapSpace;
use crate::space::size_class::{BLOCK, WORD};
use crate::trace::mark::Marker;
use crate::world::event::Event;
use crate::world::thread::Thread;
use crate::write_tracking::Which;
use crate::write_tracking::rescan::Written;
use vellum_sys::{Span, clock};

/// A pinned block stays new once if at most one in this many of its objects is alive.
const RETAINED_PART: u32 = 8;

/// Makes a minor collection, for `thread`, which is inside and holds the lock. False, and nothing was done,
/// if memory for the lists is out.
pub(super) fn collect(plan: &mut Appel, heap: &mut Heap, thread: &'static Thread) -> bool {
    if !collection::prepare(heap) {
        return false;
    }
    heap.tell(Event::Begin);
    hooks::tell_begin();
    plan.plan_promotion(heap);
    let pause = Pause::begin();
    let found = collection::with_world_stopped(heap, thread, |heap| {
        let before = clock::now_ns();
        heap.check_after("the program ran", |heap| (plan as &dyn Plan).validate(heap));
        plan.is_minor = true;
        collection::retire(heap);
        collection::begin_trace(heap, plan.old_count, Some(&plan.copies));
        // Of old untyped objects only the written parts are scanned, below.
        if plan.copies.any() && plan.has_fields(heap) {
            plan.copies.pin(heap, plan.old_count);
        }
        heap.tell(Event::MarkBegin);
        let (rooted, marked) = trace(plan, heap);
        heap.check_after("tracing", |heap| (plan as &dyn Plan).check_traced(heap));
        let met = heap.space.blocks.len();
        plan.copies.finish(heap);
        let found = collection::told(heap, |heap| sweep(plan, heap, met));
        plan.take_for_unwritten(heap);
        plan.is_minor = false;
        heap.stats.root_ns_total += rooted - before;
        heap.stats.mark_ns_total += marked - rooted;
        heap.stats.sweep_ns_total += clock::now_ns() - marked;
        found
    });
    pause.end(heap, Kind::Minor);
    heap.stats.partial += 1;
    plan.minors += 1;
    collection::end(plan, heap, found, None, false);
    true
}

/// Marks every live new object, and moves the movable ones. Returns two times: when the roots were scanned,
/// and when everything was.
fn trace(plan: &mut Appel, heap: &mut Heap) -> (u64, u64) {
    let Some(mut dirty) = heap.tracking.account.take() else {
        unreachable!("a minor collection without an account")
    };
    let (has_untyped, has_typed) = (plan.old_untyped > 0, plan.old_typed > 0);
    // New objects were in use a moment ago.
    let near = heap.stats.live_bytes <= heap.sizing.cache_bytes as u64;
    let Heap { space, roots, stack, deaths, config, .. } = heap;
    let HeapSpace { table, slots, descriptors, blocks, .. } = space;
    let precise_stacks = config.precise_stacks;
    let reached =
        Reached { roots, deaths, blocks, slots_used: slots.len(), precise_stacks, world: &heap.shared.world };
    let movement = Evacuation { space: table, slots, copies: &mut plan.copies, descriptors };
    let mut marker = Marker::new(table, *stack, config.only_starts, movement).when_near(near);
    if has_untyped {
        let untyped = Written { which: Which::OldUntyped, drains: false };
        untyped.look_through(&mut marker, &mut dirty, table, reached.blocks);
    }
    let rooted = reached.mark_roots(&mut marker);
    for &at in plan.holders.iter() {
        if table.block_of(at).is_some_and(|block| block.is_old() && block.extent.get() != 0) {
            // SAFETY: a word of an old block may be read and written, and was a field when it was noted.
            unsafe { marker.fields(Span::new(at, WORD)) };
        }
    }
    if has_typed {
        let typed = Written { which: Which::OldTyped, drains: true };
        typed.look_through(&mut marker, &mut dirty, table, reached.blocks);
    }
    let traced = Traced { rooted, ..collection::conclude(marker, reached) };
    heap.tracking.account = Some(dirty);
    let rooted_ns = traced.rooted_ns;
    collection::account(heap, &traced);
    (rooted_ns, clock::now_ns())
}

/// Sorts the new blocks by whether they have live objects. They lie before the `met`th of the heap's list;
/// behind them are the targets of copies.
fn sweep(plan: &mut Appel, heap: &mut Heap, met: usize) -> Found {
    let first = plan.old_count;
    let may_retain = !core::mem::take(&mut plan.copies.lost_holders);
    let mut found = Found { live: plan.old_live + plan.copies.copied, ..Found::default() };
    found.bytes = heap.space.bytes + (heap.space.blocks.len() - met) * BLOCK;
    let mut to = first;
    for index in first..heap.space.blocks.len() {
        let block = heap.space.blocks[index];
        if block.extent.get() == 0 {
            heap.space.descriptors.put(block);
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
            let slot = &mut heap.space.slots[usize::from(block.slot.get())];
            slot.count_young(block, census);
            if census.live == 0 {
                found.bytes -= block.extent.get();
                drop_block(heap, block);
                continue;
            }
            found.live += census.live as usize * block.size.get();
            if may_retain && census.live * RETAINED_PART <= block.count.get() {
                let pushed = plan.retained.push(block);
                debug_assert!(pushed.is_ok(), "room was made before the world stopped");
                continue;
            }
            if census.live < block.count.get() {
                slot.put_roomy(block);
            }
        }
        plan.adopt(block);
        heap.space.blocks[to] = block;
        to += 1;
    }
    heap.space.blocks.truncate(to);
    plan.old_count = to;
    for &block in plan.retained.iter() {
        let pushed = heap.space.blocks.push(block);
        debug_assert!(pushed.is_ok(), "the list had them before");
    }
    plan.retained.truncate(0);
    plan.holders.swap(&mut plan.copies.holders);
    plan.copies.holders.truncate(0);
    if !may_retain {
        plan.holders.truncate(0);
    }
    for slot in &mut heap.space.slots[..] {
        let (met, to_copy) = slot.learn_all();
        found.young += met;
        found.young_to_copy += to_copy;
    }
    found
}
