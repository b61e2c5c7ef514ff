//! A collection, from the first look at the roots to the list of blocks with room.
//!
//! ```text
//! prepare   loader's list, room in the lists      (locks may be taken: the world still runs)
//! stop      every thread
//! retire    the caller's runs go back, freed objects go; others' runs are kept
//! pin       what must not move, where anything does (`evacuate`)
//! roots     static data, stacks, kept objects
//! trace     finalizers and links too
//! survey    bitmaps: what is marked is what is allocated; empty blocks go to the pool
//! go on
//! return    what the pool holds beyond its need
//! ```
//!
//! Nothing in between takes a lock: a thread may have been stopped while it held the page layer's or `malloc`'s.

use crate::block::Block;
use crate::config::Plan;
use crate::disclaim::Disclaimers;
use crate::ephemeron;
use crate::evacuate::Evacuation;
use crate::event::{self, Event};
use crate::finalize::{self, Finalizer};
use crate::heap::{Address, Heap};
use crate::kept::Kept;
use crate::links::{self, Link};
use crate::loader;
use crate::mark::{Marker, Paused, StackMemory, give_back_stack};
use crate::movement::{InPlace, Movement};
use crate::parallel;
use crate::pause::Pause;
use crate::rooted::Rooted;
use crate::roots::Roots;
use crate::sizing::{Found, Sizing, Spent, cost_ns};
use crate::space::Space;
use crate::survey::{give_back, survey};
use crate::table::Table;
use crate::thread::{self, Thread};
use crate::{frames, procedure, stop, tls};
use core::sync::atomic::Ordering;
use vellum_pages::Pages;
use vellum_sys::{clock, usage};

/// Collects, for `thread`, which is inside and holds the lock. False, and nothing was done, if memory for the lists is out.
fn collect_once(heap: &mut Heap, thread: &'static Thread) -> bool {
    loader::still(|| collect_with_libraries(heap, thread))
}

fn collect_with_libraries(heap: &mut Heap, thread: &'static Thread) -> bool {
    heap.drop_cycle();
    if !prepare(heap) || !heap.prepare_vacated() {
        return false;
    }
    event::tell(Event::Begin, heap);
    procedure::tell_begin();
    heap.prepare_account();
    heap.plan_copies();
    heap.vacate_free();
    let markers = heap.markers_ready();
    let pause = Pause::begin();
    let met_before = heap.watch.is_short().then(usage::thread_met);
    let survey = with_world_stopped(heap, thread, |heap| {
        let before = clock::now_ns();
        heap.check_after("the program ran", Heap::validate);
        retire(heap);
        for &block in heap.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(block as *const Block) };
            block.begin_trace();
            if heap.is_sparse(block) {
                block.begin_evacuation();
            }
        }
        for other in thread::known().filter(|other| !other.is_current()) {
            other.keep_runs(heap.slots_in_use());
        }
        heap.pin();
        event::tell(Event::MarkBegin, heap);
        let (rooted, marked) = trace(heap, markers);
        heap.check_after("tracing", Heap::check_traced);
        heap.finish_copies();
        let free_before = heap.pool.len();
        let survey = told(heap, survey);
        heap.place_vacated(free_before);
        heap.settle_regions();
        heap.stats.root_ns_total += rooted - before;
        heap.stats.mark_ns_total += marked - rooted;
        heap.stats.sweep_ns_total += clock::now_ns() - marked;
        survey
    });
    let spent_ns = pause.end(heap);
    if let Some(before) = met_before {
        let met = usage::thread_met().since(before);
        heap.watch.met(met, spent_ns, heap.stats.pause_ns_last, survey.live);
    }
    end(heap, survey, Some(spent_ns));
    if heap.config.plan != Plan::Appel {
        heap.whole_ended(spent_ns);
    }
    true
}

/// The same; where what is alive is to be copied back to where it was (`vacated`), it is.
pub(crate) fn collect(heap: &mut Heap, thread: &'static Thread) -> bool {
    let done = collect_once(heap, thread);
    if done && heap.copies_back() && heap.copied_last() > 0 {
        collect_once(heap, thread);
    }
    done
}

/// The survey that follows a trace, told of.
pub(crate) fn told(heap: &mut Heap, survey: impl FnOnce(&mut Heap) -> Found) -> Found {
    event::tell(Event::MarkEnd, heap);
    event::tell(Event::SweepBegin, heap);
    let survey = survey(heap);
    event::tell_value(Event::SweepEnd, survey.bytes);
    survey
}

/// What a collection needs before the world is stopped; false if memory for it is out.
pub(crate) fn prepare(heap: &mut Heap) -> bool {
    let blocks = heap.blocks.len();
    heap.roots.refresh().is_ok() && heap.pool.reserve(blocks).is_ok() && heap.doomed.reserve(blocks).is_ok()
}

/// Runs `work` with the world stopped and the stack of the caller, who is inside and holds the lock, known.
#[inline(never)]
pub(crate) fn with_world_stopped<R>(
    heap: &mut Heap,
    thread: &Thread,
    work: impl FnOnce(&mut Heap) -> R,
) -> R {
    let mut registers = [0; 6];
    let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
    thread.stack_low.store(thread.in_use_from(low), Ordering::Relaxed);
    event::tell(Event::StopBegin, heap);
    stop::world();
    event::tell_of_threads(Event::Stopped);
    event::tell(Event::StopEnd, heap);
    let result = work(heap);
    event::tell(Event::GoOnBegin, heap);
    event::tell_of_threads(Event::GoesOn);
    stop::go_on();
    event::tell(Event::GoOnEnd, heap);
    core::hint::black_box(&registers);
    result
}

/// What follows a collection, with the world going on: when the next one is due, and what is given back. It took `spent_ns`
/// nanoseconds of CPU time, if it was a whole one.
pub(crate) fn end(heap: &mut Heap, found: Found, spent_ns: Option<u64>) {
    end_as(heap, found, spent_ns, true);
}

/// The same of a minor collection.
pub(crate) fn end_minor(heap: &mut Heap, found: Found) {
    end_as(heap, found, None, false);
}

fn end_as(heap: &mut Heap, mut found: Found, spent_ns: Option<u64>, is_major: bool) {
    heap.stats.collections += 1;
    heap.stats.live_bytes = found.live as u64;
    if let Some(spent_ns) = spent_ns {
        heap.ns_a_kib = spent_ns / (heap.bytes as u64 >> 10).max(1);
    }
    heap.slicing_failed = false;
    if let Some(cpu_ns) = spent_ns {
        let spent = Spent { cpu_ns, live: found.live, allocated: heap.used };
        let always = matches!(heap.config.sizing, Sizing::SquareRoot { .. });
        heap.watch.collected(spent, always);
    }
    heap.bytes = found.bytes;
    found.roots = heap.root_words * size_of::<usize>();
    found.cost_ns = cost_ns(heap.root_words, heap.stats.marked_objects_last as usize, heap.blocks.len());
    match heap.config.plan {
        Plan::Appel => heap.set_regions(found, is_major),
        _ => heap.set_room(found),
    }
    give_back(heap, is_major);
    heap.shrink_tables();
    if spent_ns.is_some() {
        Pages::global().collected(heap.watch.is_short());
    }
    heap.publish();
    heap.check_after("a collection", Heap::validate);
    event::tell(Event::End, heap);
}

/// Takes back what the caller has not used of its runs, and what users have freed. Other threads may have been stopped in the
/// middle of an allocation, and keep theirs ([`Thread::keep_runs`](crate::thread::Thread::keep_runs)).
pub(crate) fn retire(heap: &mut Heap) {
    for thread in thread::known() {
        heap.count_taken(thread);
    }
    if let Some(thread) = thread::known().find(|thread| thread.is_current()) {
        thread.retire_runs(heap.slots_in_use(), true);
    }
    heap.take_back_freed();
}

/// Marks everything alive, moving what is to be moved; returns when the roots had been looked through, and when all had.
fn trace(heap: &mut Heap, markers: u32) -> (u64, u64) {
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
    // What was alive the last time was in use since: it fits the cache, or the trace goes through memory.
    let near = heap.stats.live_bytes <= heap.cache_bytes as u64;
    let traced = if copies.any() {
        let movement = Evacuation { space, slots, copies, descriptors };
        follow(Marker::new(space, *stack, config.only_starts, movement).when_near(near), reached)
    } else if markers > 1 {
        follow_together(space, *stack, config.only_starts, reached)
    } else {
        follow(Marker::new(space, *stack, config.only_starts, InPlace).when_near(near), reached)
    };
    let rooted_ns = traced.rooted_ns;
    account(heap, &traced);
    (rooted_ns, clock::now_ns())
}

/// Ends a trace in slices, whose roots are marked: `rooted` was found at the end.
pub(crate) fn end_trace(heap: &mut Heap, left: Paused, mut rooted: Rooted) {
    let Heap { space, stack, config, .. } = heap;
    let reached = Reached {
        roots: &heap.roots,
        kept: &heap.kept,
        finalizers: &mut heap.finalizers,
        disclaimers: &mut heap.disclaimers,
        links: &mut heap.links,
        ephemerons: &mut heap.ephemerons,
        blocks: &heap.blocks,
        slots_used: heap.slots.len(),
        precise_stacks: config.precise_stacks,
    };
    let marker = Marker::resume(space, *stack, config.only_starts, InPlace, left);
    // What roots cost is known of collections at one go only.
    rooted.searched = 0;
    let traced = Traced { rooted, ..conclude(marker, reached) };
    account(heap, &traced);
    heap.check_after("a trace in slices", Heap::check_traced_in_slices);
}

pub(crate) fn account(heap: &mut Heap, traced: &Traced) {
    if traced.rooted.searched > 0 {
        heap.root_words = traced.rooted.searched;
    }
    heap.stats.roots_found += traced.rooted.words;
    heap.stats.rooted_blocks += traced.rooted.blocks;
    heap.due += traced.due;
    heap.stats.marked_objects_last = traced.marked;
    heap.stats.overflows += traced.overflows;
    if let Some(helped) = traced.helped {
        heap.stats.parallel += 1;
        heap.stats.helped_objects += helped;
    }
    give_back_stack(heap.stack, traced.deepest);
}

/// Where a trace begins, and what it decides on.
pub(crate) struct Reached<'h> {
    pub roots: &'h Roots,
    pub kept: &'h Kept,
    pub finalizers: &'h mut Table<Finalizer>,
    pub disclaimers: &'h mut Disclaimers,
    pub links: &'h mut Table<Link>,
    pub ephemerons: &'h mut Table<Address>,
    pub blocks: &'h [usize],
    pub slots_used: usize,
    pub precise_stacks: bool,
}

impl Reached<'_> {
    /// [`mark_roots`] of these.
    pub(crate) fn mark_roots<M: Movement>(&self, marker: &mut Marker<'_, M>) -> Rooted {
        self.kept.mark(marker, self.blocks);
        mark_roots(
            marker,
            self.roots,
            self.finalizers,
            self.disclaimers,
            self.slots_used,
            self.precise_stacks,
        )
    }
}

/// What came of a trace.
pub(crate) struct Traced {
    pub rooted_ns: u64,
    /// What roots led to, if it began with them.
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

/// Follows every pointer from the roots, and sees to the dead that have finalizers and links.
fn follow<M: Movement>(mut marker: Marker<'_, M>, from: Reached<'_>) -> Traced {
    let rooted = from.mark_roots(&mut marker);
    Traced { rooted, ..conclude(marker, from) }
}

/// The same with helpers, for as long as there is something to share.
fn follow_together(space: &Space, stack: StackMemory, only_starts: bool, from: Reached<'_>) -> Traced {
    let mut marker = Marker::new(space, stack, only_starts, InPlace);
    let rooted = from.mark_roots(&mut marker);
    let rooted_ns = clock::now_ns();
    let (left, helped) = parallel::trace(space, from.blocks, stack, only_starts, marker.pause());
    let marker = Marker::resume(space, stack, only_starts, InPlace, left);
    Traced { rooted, rooted_ns, helped: Some(helped), ..conclude(marker, from) }
}

/// Marks what the roots refer to but what is kept, and counts those that are ambiguous. The world is stopped, and the caller's stack known.
pub(crate) fn mark_roots<M: Movement>(
    marker: &mut Marker<'_, M>,
    roots: &Roots,
    finalizers: &Table<Finalizer>,
    disclaimers: &Disclaimers,
    slots_used: usize,
    precise_stacks: bool,
) -> Rooted {
    let mut bytes = 0;
    marker.rooted = roots.looks.begin();
    marker.in_roots = true;
    for range in roots.each() {
        bytes += range.end.saturating_sub(range.start);
        // SAFETY: the loader names segments that are mapped and readable; the user vouches for what was added.
        unsafe { marker.root_words(range.start, range.end) };
    }
    for thread in thread::known() {
        if !precise_stacks {
            let (start, end) = thread.data.get();
            let low = thread.stack_low.load(Ordering::Acquire) & !7;
            let high = thread.stack_end();
            let (aside, aside_end) = thread.aside.get();
            bytes += high.saturating_sub(low) + end.saturating_sub(start);
            // SAFETY: the thread is stopped, blocked or this one: its stack from there up, the one that it is stopped on, and its static data,
            // are mapped.
            unsafe {
                marker.root_words(low, high);
                marker.root_words(aside & !7, aside_end);
                marker.root_words(start, end);
            }
        }
        if !thread.is_current() {
            thread.next_objects(slots_used).for_each(|object| marker.root(object));
        }
    }
    finalize::mark_roots(finalizers, marker);
    disclaimers.mark_roots(marker);
    procedure::mark_roots(marker);
    if precise_stacks {
        frames::mark_held(marker);
    }
    for range in roots.precise() {
        // SAFETY: the user vouches for what was added.
        unsafe { marker.fields(range.start, range.end) };
    }
    marker.rooted.searched = bytes / size_of::<usize>() + frames::mark(marker);
    marker.in_roots = false;
    marker.rooted
}

/// Follows every pointer from what is marked, and sees to the dead that have finalizers and links.
pub(crate) fn conclude<M: Movement>(mut marker: Marker<'_, M>, from: Reached<'_>) -> Traced {
    let rooted_ns = clock::now_ns();
    marker.drain(from.blocks);
    ephemeron::follow(from.ephemerons, &mut marker, from.blocks);
    from.disclaimers.follow(&mut marker, from.blocks);
    links::settle(from.links, false, &marker);
    let due = match from.finalizers.len() {
        0 => 0,
        _ => finalize::find_due(from.finalizers, &mut marker, from.blocks),
    };
    from.disclaimers.find_due(&mut marker, from.blocks);
    // What a finalizer is to see may have some, too.
    ephemeron::follow(from.ephemerons, &mut marker, from.blocks);
    links::settle(from.links, true, &marker);
    ephemeron::settle(from.ephemerons, &marker);
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
