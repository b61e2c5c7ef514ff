//! The steps of a whole collection, from its preparation to the return of memory.
//!
//! ```text
//! prepare   list of libraries, memory for lists   (locks may be taken: the world still runs)
//! stop      every thread
//! retire    the caller's unused and freed objects become free; other threads keep the unused ones
//! pin       objects that must not move, in a plan that moves others (`evacuation`)
//! roots     static data, stacks, kept objects
//! trace     from there, with finalizers and links
//! sweep     bitmaps: marks become allocation bits; empty blocks go to the pool
//! restart   every thread
//! return    the pool's surplus blocks
//! ```
//!
//! No step between stop and restart takes a lock: a stopped thread may hold the lock of the page layer or of
//! `malloc`.

use crate::config::sizing::Sizing;
use crate::death::{Deaths, ephemerons, finalizers, links};
use crate::heap::Heap;
use crate::plan::contract::Plan;
use crate::plan::evacuation::{Copies, Evacuation};
use crate::plan::pause::{Kind, Pause};
use crate::plan::sweep::{give_back, sweep};
use crate::process::{hooks, local};
use crate::sizing::limits::cost_ns;
use crate::sizing::policy::Found;
use crate::sizing::watch::Spent;
use crate::space::address_table::AddressTable;
use crate::space::block::{Block, Scan};
use crate::space::block_source;
use crate::space::heap_space::HeapSpace;
use crate::space::size_class::WORD;
use crate::trace::mark::{Marker, Paused, StackMemory, give_back_stack};
use crate::trace::mark_bytes::Bytes;
use crate::trace::movement::{InPlace, Movement};
use crate::trace::root_statistics::Rooted;
use crate::trace::roots::Roots;
use crate::trace::{frames, parallel, roots};
use crate::world::World;
use crate::world::event::{self, Event};
use crate::world::thread::Thread;
use core::sync::atomic::Ordering;
use vellum_pages::Pages;
use vellum_sys::{Addr, Span, clock};

/// Collects, for `thread`, which is inside and holds the lock. False, with nothing done, without memory for
/// lists.
pub(crate) fn collect(plan: &mut dyn Plan, heap: &mut Heap, thread: &'static Thread) -> bool {
    plan.drop_cycle(heap);
    if !prepare(heap) || !plan.prepare(heap) {
        return false;
    }
    heap.tell(Event::Begin);
    hooks::tell_begin();
    plan.choose(heap);
    heap.vacate_free();
    let markers = parallel::markers_ready(
        &heap.config,
        heap.stats.live_bytes,
        heap.has_procedures,
        &heap.space.table,
        &mut heap.mark_bytes,
    );
    let pause = Pause::begin();
    let met_before = heap.sizing.watch.is_short().then(block_source::thread_met);
    let sweep = with_world_stopped(heap, thread, |heap| {
        let before = clock::now_ns();
        heap.check_after("the program ran", |heap| plan.validate(heap));
        retire(heap);
        let copies = plan.copies();
        begin_trace(heap, 0, copies);
        if let Some(copies) = copies {
            copies.pin(heap, 0);
        }
        heap.tell(Event::MarkBegin);
        let (rooted, marked) = trace(plan, heap, markers);
        heap.check_after("tracing", |heap| plan.check_traced(heap));
        if let Some(copies) = plan.copies_mut() {
            copies.finish(heap);
        }
        let free_before = heap.space.pool.len();
        let stays = plan.copies().is_some_and(|copies| copies.what.whole_slots);
        let sweep = told(heap, |heap| sweep(heap, stays));
        plan.settle(heap, free_before);
        heap.stats.root_ns_total += rooted - before;
        heap.stats.mark_ns_total += marked - rooted;
        heap.stats.sweep_ns_total += clock::now_ns() - marked;
        sweep
    });
    let spent_ns = pause.end(heap, Kind::Major);
    if let Some(before) = met_before {
        let met = block_source::thread_met().since(before);
        heap.sizing.watch.met(met, spent_ns, heap.stats.pause_ns_last, sweep.live);
    }
    end(plan, heap, sweep, Some(spent_ns), true);
    plan.ended(heap, spent_ns);
    true
}

/// The sweep that follows a trace, with its events.
pub(crate) fn told(heap: &mut Heap, sweep: impl FnOnce(&mut Heap) -> Found) -> Found {
    heap.tell(Event::MarkEnd);
    heap.tell(Event::SweepBegin);
    let sweep = sweep(heap);
    event::tell_value(Event::SweepEnd, sweep.bytes);
    sweep
}

/// Gets the memory that a collection needs, before the world is stopped; false if memory is out.
pub(crate) fn prepare(heap: &mut Heap) -> bool {
    let blocks = heap.space.blocks.len();
    heap.roots.refresh().is_ok()
        && heap.space.pool.reserve(blocks).is_ok()
        && heap.space.doomed.reserve(blocks).is_ok()
}

/// Runs `work` with the world stopped. The caller is inside and holds the lock; its stack is recorded.
#[inline(never)]
pub(crate) fn with_world_stopped<R>(
    heap: &mut Heap,
    thread: &Thread,
    work: impl FnOnce(&mut Heap) -> R,
) -> R {
    local::spilled(|low| {
        thread.stack_low.store(thread.in_use_from(low), Ordering::Relaxed);
        heap.tell(Event::StopBegin);
        heap.shared.world.stop();
        heap.tell_of_threads(Event::Stopped);
        heap.tell(Event::StopEnd);
        let result = work(heap);
        heap.tell(Event::GoOnBegin);
        heap.tell_of_threads(Event::GoesOn);
        heap.shared.world.go_on();
        heap.tell(Event::GoOnEnd);
        result
    })
}

/// Ends a collection, with the world going on: sets when the next one is due, and gives memory back. If the
/// collection was a whole one, it took `spent_ns` nanoseconds of CPU time. `is_major`: it was not a minor
/// collection of `appel`.
pub(crate) fn end(
    plan: &mut dyn Plan,
    heap: &mut Heap,
    mut found: Found,
    spent_ns: Option<u64>,
    is_major: bool,
) {
    heap.stats.collections += 1;
    heap.stats.live_bytes = found.live as u64;
    if let Some(cpu_ns) = spent_ns {
        let spent = Spent { cpu_ns, live: found.live, allocated: heap.sizing.used };
        let always = matches!(heap.config.sizing, Sizing::SquareRoot { .. });
        heap.sizing.watch.collected(spent, always);
    }
    heap.sizing.reached = core::mem::replace(&mut heap.space.bytes, found.bytes);
    found.roots = heap.sizing.root_words * size_of::<usize>();
    found.cost_ns =
        cost_ns(heap.sizing.root_words, heap.stats.marked_objects_last as usize, heap.space.blocks.len());
    plan.size(heap, found, is_major);
    give_back(plan, heap, is_major);
    heap.shrink_tables();
    if spent_ns.is_some() {
        Pages::global().collected(heap.sizing.watch.is_short());
    }
    heap.publish();
    heap.check_after("a collection", |heap| plan.validate(heap));
    heap.tell(Event::End);
}

/// Takes back the unused objects of the caller's runs, and freed objects. Other threads may have
/// been stopped in the middle of an allocation, and keep theirs
/// ([`Thread::keep_runs`](crate::world::thread::Thread::keep_runs)).
pub(crate) fn retire(heap: &mut Heap) {
    for thread in heap.shared.world.known() {
        heap.count_taken(thread);
    }
    if let Some(thread) = heap.shared.world.known().find(|thread| thread.is_current()) {
        thread.retire_runs(heap.slots_in_use(), true);
    }
    heap.take_back_freed();
}

/// All threads but the caller keep their runs.
pub(crate) fn keep_runs(heap: &Heap) {
    for other in heap.shared.world.known().filter(|other| !other.is_current()) {
        other.keep_runs(heap.slots_in_use());
    }
}

/// Blocks from the `first`th on begin a trace. `copies` begins to empty the sparse ones, except those of a
/// stopped thread's runs.
pub(crate) fn begin_trace(heap: &Heap, first: usize, copies: Option<&Copies>) {
    for &block in &heap.space.blocks[first..] {
        block.begin_trace();
        if copies.is_some_and(|copies| copies.is_sparse(heap, block)) {
            block.begin_evacuation();
        }
    }
    keep_runs(heap);
}

/// Marks every live object, and moves the movable ones. Returns two times: when the roots were scanned, and
/// when everything was.
fn trace(plan: &mut dyn Plan, heap: &mut Heap, markers: u32) -> (u64, u64) {
    let Heap { space, roots, stack, deaths, config, .. } = heap;
    let HeapSpace { table, slots, descriptors, blocks, .. } = space;
    let precise_stacks = config.precise_stacks;
    let reached =
        Reached { roots, deaths, blocks, slots_used: slots.len(), precise_stacks, world: &heap.shared.world };
    // Objects alive the last time were in use since: they fit the cache, or the trace goes through memory.
    let near = heap.stats.live_bytes <= heap.sizing.cache_bytes as u64;
    let copies = plan.copies_mut().filter(|copies| copies.any());
    let traced = if let Some(copies) = copies {
        let movement = Evacuation { space: table, slots, copies, descriptors };
        follow(Marker::new(table, *stack, config.only_starts, movement).when_near(near), reached)
    } else if markers > 1 {
        follow_together(table, *stack, config.only_starts, heap.mark_bytes, reached)
    } else {
        follow(Marker::new(table, *stack, config.only_starts, InPlace).when_near(near), reached)
    };
    let rooted_ns = traced.rooted_ns;
    account(heap, &traced);
    (rooted_ns, clock::now_ns())
}

/// Ends a trace in slices, whose roots are marked: `rooted` was found at the end.
pub(crate) fn end_trace(heap: &mut Heap, left: Paused, mut rooted: Rooted) {
    let Heap { space, roots, stack, deaths, config, .. } = heap;
    let HeapSpace { table, slots, blocks, .. } = space;
    let precise_stacks = config.precise_stacks;
    let reached =
        Reached { roots, deaths, blocks, slots_used: slots.len(), precise_stacks, world: &heap.shared.world };
    let marker = Marker::resume(table, *stack, config.only_starts, InPlace, left);
    // The cost of roots is measured by collections at one go only.
    rooted.searched = 0;
    let traced = Traced { rooted, ..conclude(marker, reached) };
    account(heap, &traced);
    // A word that was scanned, and not written since, may seem to lead to a later object (`checksums`).
    heap.check_after("a trace in slices", |heap| {
        heap.check_reach(&[], |block| block.scan.get() == Scan::Words)
    });
}

pub(crate) fn account(heap: &mut Heap, traced: &Traced) {
    if traced.rooted.searched > 0 {
        heap.sizing.root_words = traced.rooted.searched;
    }
    heap.stats.roots_found += traced.rooted.words;
    heap.stats.rooted_blocks += traced.rooted.blocks;
    heap.deaths.due += traced.due;
    heap.stats.marked_objects_last = traced.marked;
    heap.stats.overflows += traced.overflows;
    if let Some(helped) = traced.helped {
        heap.stats.parallel += 1;
        heap.stats.helped_objects += helped;
    }
    give_back_stack(heap.stack, traced.deepest);
}

/// The roots of a trace, and the tables whose entries it decides on.
pub(crate) struct Reached<'h> {
    pub roots: &'h Roots,
    pub deaths: &'h mut Deaths,
    pub blocks: &'h [&'static Block],
    pub slots_used: usize,
    pub precise_stacks: bool,
    pub world: &'h World,
}

impl Reached<'_> {
    /// [`mark_roots`] of these.
    pub(crate) fn mark_roots<M: Movement>(&self, marker: &mut Marker<'_, M>) -> Rooted {
        self.deaths.kept.mark(marker, self.blocks);
        mark_roots(marker, self.roots, self.deaths, self.slots_used, self.precise_stacks, self.world)
    }
}

/// The outcome of a trace.
pub(crate) struct Traced {
    pub rooted_ns: u64,
    /// The counts of its roots, if it began with them.
    pub rooted: Rooted,
    /// Finalizers that became due.
    pub due: usize,
    pub marked: u64,
    pub overflows: u64,
    /// The most words the stack held.
    pub deepest: usize,
    /// Objects that helpers marked, if there were any.
    pub helped: Option<u64>,
}

/// Follows every pointer from the roots, and handles dead objects with finalizers and links.
fn follow<M: Movement>(mut marker: Marker<'_, M>, from: Reached<'_>) -> Traced {
    let rooted = from.mark_roots(&mut marker);
    Traced { rooted, ..conclude(marker, from) }
}

/// [`follow`] with helpers, as long as there is work to share.
fn follow_together(
    space: &AddressTable,
    stack: StackMemory,
    only_starts: bool,
    bytes: Bytes,
    from: Reached<'_>,
) -> Traced {
    let mut marker = Marker::new(space, stack, only_starts, InPlace);
    let rooted = from.mark_roots(&mut marker);
    let rooted_ns = clock::now_ns();
    let (left, helped) = parallel::trace(space, from.blocks, stack, only_starts, bytes, marker.pause());
    let marker = Marker::resume(space, stack, only_starts, InPlace, left);
    Traced { rooted, rooted_ns, helped: Some(helped), ..conclude(marker, from) }
}

/// Marks what the roots lead to, except for objects kept until freed, and counts ambiguous roots that do. The
/// world is stopped, and the caller's stack recorded.
pub(crate) fn mark_roots<M: Movement>(
    marker: &mut Marker<'_, M>,
    roots: &Roots,
    deaths: &Deaths,
    slots_used: usize,
    precise_stacks: bool,
    world: &World,
) -> Rooted {
    let mut bytes = 0;
    marker.rooted = roots.looks.begin();
    marker.in_roots = true;
    for range in roots.each() {
        bytes += range.bytes;
        // SAFETY: segments of the loader's list are mapped and readable; the user vouches for added ranges.
        unsafe { marker.root_words(range) };
    }
    for thread in world.known() {
        if !precise_stacks {
            let data = thread.data.get();
            let low = Addr::new(thread.stack_low.load(Ordering::Acquire)).round_down(WORD);
            let stack = Span::between(low, thread.stack_end());
            bytes += stack.bytes + data.bytes;
            // SAFETY: the thread is stopped, blocked or this one: its stack from there up, the one that it is
            // stopped on, and its static data, are mapped.
            unsafe {
                marker.root_words(stack);
                marker.root_words(thread.aside.get());
                marker.root_words(data);
            }
        }
        if !thread.is_current() {
            thread.next_objects(slots_used).for_each(|object| marker.root(object));
        }
    }
    finalizers::mark_roots(&deaths.finalizers, marker);
    deaths.disclaimers.mark_roots(marker);
    roots::mark_named(marker);
    if precise_stacks {
        frames::mark_held(marker, world);
    }
    for range in roots.precise() {
        // SAFETY: the program vouched for these ranges when it added them.
        unsafe { marker.fields(range) };
    }
    marker.rooted.searched = bytes / size_of::<usize>() + frames::mark(marker, world);
    marker.in_roots = false;
    marker.rooted
}

/// Follows every pointer from marked objects, and handles dead ones with finalizers and links.
pub(crate) fn conclude<M: Movement>(mut marker: Marker<'_, M>, from: Reached<'_>) -> Traced {
    let rooted_ns = clock::now_ns();
    let Deaths { finalizers, disclaimers, links, ephemerons, samples, .. } = from.deaths;
    marker.drain(from.blocks);
    ephemerons::follow(ephemerons, &mut marker, from.blocks);
    disclaimers.follow(&mut marker, from.blocks);
    links::settle(links, false, &marker);
    let due = match finalizers.len() {
        0 => 0,
        _ => finalizers::find_due(finalizers, &mut marker, from.blocks),
    };
    disclaimers.find_due(&mut marker, from.blocks);
    // Objects that finalizers revive may be keys of ephemerons, too.
    ephemerons::follow(ephemerons, &mut marker, from.blocks);
    links::settle(links, true, &marker);
    ephemerons::settle(ephemerons, &marker);
    samples.settle(&marker);
    Traced {
        rooted_ns,
        rooted: Rooted::default(),
        due,
        marked: marker.marked,
        overflows: marker.overflows,
        deepest: marker.deepest,
        helped: None,
    }
}
