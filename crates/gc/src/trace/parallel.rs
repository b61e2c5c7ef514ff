//! Marking by several threads at once, where that is worth it.
//!
//! ```text
//! leader    roots ─▶ its stack ─▶ traces, shares packets ─▶ … ─▶ all are idle: closes ─▶ ends the collection
//! helpers   asleep ─▶ woken ─▶ join, take a packet, trace, share ─▶ idle ─▶ … ─▶ asleep
//! ```
//!
//! The leader is the thread that collects. Helpers are threads that the C library does not know
//! ([`vellum_sys::thread`]), one for each marker beyond the first. They are made before the first collection
//! that wants them and sleep between collections. They end with the process, or before it changes its
//! credentials ([`bar`]). The lock-free part of their work is the crew ([`Crew`]).
//!
//! Elsewhere parallel marking makes small heaps slow: threads are woken and waited for, and find nothing to
//! do. So none are used below [`LIVE_MIN`] bytes alive or on one processor. Nobody waits for a helper that
//! has not begun, and a member that finds nothing for some microseconds sleeps. Marks are bytes
//! (`mark_bytes`) only while there are helpers.
//!
//! # Invariants
//! * The world stands still as long as a trace is open: heap words, descriptors and the address table are
//!   only read. The exceptions are overflow flags and mark bytes, which are atomic.
//! * A helper publishes its counts before it is idle, so that the leader has them when the crew closes.
//! * Helpers touch no thread-local storage, and allocate nothing.
//! * Slices, and collections that move objects, are traced by one thread.

use crate::config::{Config, STACK_KEPT};
use crate::space::address_table::AddressTable;
use crate::space::block::Block;
use crate::space::size_class::GRANULE;
use crate::trace::mark::{Marker, Paused, StackMemory};
use crate::trace::mark_bytes::{self, Bytes};
use crate::trace::movement::Together;
use crate::trace::work_packets::{Crew, MEMBERS_MAX, PACKETS, Trace};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use vellum_sys::lifecycle::{self, Lifecycle};
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Caps, PAGE, caps, map, owner, round_up, thread};

/// Bytes alive after the last collection from which on helpers are called. Tracing less takes no longer than
/// waking a thread on a busy machine.
const LIVE_MIN: u64 = 32 << 20;
/// Markers unless a number is asked for: further processors are left to other programs.
const MARKERS_USUAL: u32 = 4;
/// Words of a helper's stack (address space).
const STACK_WORDS: usize = 256 << 10;
const PACKET_WORDS: usize = 254;
/// Objects traced between two tests whether others need work.
const SHARE_EVERY: u32 = 512;
/// Words that must wait before some of them fill a packet: the first if others are idle; the second if not,
/// so that there is a packet when they will be.
const SHARE_MIN: usize = 16;
const SHARE_AHEAD: usize = 1024;
/// Tests for work before a member sleeps.
const LOOKS: u32 = 2000;
/// How long it sleeps, if nobody wakes it: nothing wakes the leader when all the others are idle.
const SLEEP_NS: u64 = 200_000;
/// How long a helper sleeps between collections, if nobody wakes it.
const ASLEEP_NS: u64 = 3_600_000_000_000;

/// Waiting entries, on their way from one stack to another.
#[repr(C)]
struct Packet {
    count: usize,
    words: [usize; PACKET_WORDS],
}

static CREW: Crew = Crew::new();
static PACKETS_AT: AtomicPtr<Packet> = AtomicPtr::new(null_mut());
/// The heap that is traced. Written before the crew opens, read by its members.
static SPACE: AtomicPtr<AddressTable> = AtomicPtr::new(null_mut());
static ONLY_STARTS: AtomicBool = AtomicBool::new(false);
/// Counts that helpers have published.
static MARKED: AtomicU64 = AtomicU64::new(0);
static OVERFLOWED: AtomicBool = AtomicBool::new(false);

/// Changes when there is a trace to join.
static BELL: AtomicU32 = AtomicU32::new(0);
/// Changes when there may be something to take, if members sleep.
static SHARED: AtomicU32 = AtomicU32::new(0);
static SLEEPERS: AtomicU32 = AtomicU32::new(0);

/// Whether each helper runs.
static LIVES: [Lifecycle; MEMBERS_MAX as usize] =
    [const { Lifecycle::over(AtomicU32::new(0)) }; MEMBERS_MAX as usize];
/// Each helper's memory, once it was made; the next helper of the same number uses it again.
static MEMORIES: [AtomicUsize; MEMBERS_MAX as usize] = [const { AtomicUsize::new(0) }; MEMBERS_MAX as usize];
/// The thread id of the last helper of each number.
static BORN: [AtomicU32; MEMBERS_MAX as usize] = [const { AtomicU32::new(0) }; MEMBERS_MAX as usize];
static STACKS: [AtomicUsize; MEMBERS_MAX as usize] = [const { AtomicUsize::new(0) }; MEMBERS_MAX as usize];
static TIDS: [AtomicU32; MEMBERS_MAX as usize] = [const { AtomicU32::new(0) }; MEMBERS_MAX as usize];

struct Helper(usize);

impl lifecycle::Crew for Helper {
    fn ring(&self) {
        thread::wake(&BELL);
    }
    fn have_ended(&self) -> bool {
        TIDS[self.0].load(Ordering::Acquire) == 0
    }
    fn wait_until_gone(&self) -> bool {
        thread::wait_until_gone(&TIDS[self.0], BORN[self.0].load(Ordering::Relaxed), thread::END_NS)
    }
    fn wait(&self, word: &AtomicU32, seen: u32) {
        thread::wait(word, seen, SLEEP_NS);
    }
    fn wake(&self, word: &AtomicU32) {
        thread::wake_all(word);
    }
}

fn helpers() -> u32 {
    LIVES.iter().filter(|life| life.is_started()).count() as u32
}

/// Whether no helper runs or is being started.
pub fn are_absent() -> bool {
    LIVES.iter().all(Lifecycle::is_absent)
}

/// Ends the helpers, and prevents new ones until [`unbar`]. For a call that changes the process's
/// credentials, made by the process that the helpers belong to. Waits for a trace that is under way. False,
/// and nothing is barred, if one does not end.
#[must_use]
pub fn bar() -> bool {
    for (index, life) in LIVES.iter().enumerate() {
        if !life.bar(&Helper(index)) {
            for life in &LIVES[..index] {
                let _ = life.unbar();
            }
            return false;
        }
    }
    true
}

/// Ends a [`bar`]. The next collection that wants helpers makes them, with the credentials of its thread.
pub fn unbar() {
    for life in &LIVES {
        let _ = life.unbar();
    }
}

/// In a forked child there are no helpers.
pub(crate) fn forget() {
    LIVES.iter().for_each(Lifecycle::reset_after_fork);
    TIDS.iter().for_each(|tid| tid.store(0, Ordering::Relaxed));
    SLEEPERS.store(0, Ordering::Relaxed);
}

/// Markers for the next collection at one go of a heap in which `live_bytes` were alive the last time, made
/// ready. The world still runs.
pub(crate) fn markers_ready(
    config: &Config,
    live_bytes: u64,
    has_procedures: bool,
    space: &AddressTable,
) -> u32 {
    // Under a maximum, the memory that helpers take has been promised to objects.
    if config.markers == 1 || config.max_bytes != usize::MAX {
        return 1;
    }
    // A program's callbacks must not run on threads that its C library does not know.
    if has_procedures {
        return 1;
    }
    // Tests use several markers in a small heap, too.
    if live_bytes < LIVE_MIN && !(config.paranoid && config.markers > 1) {
        return 1;
    }
    let here = thread::processors();
    let wanted = match config.markers {
        0 => MARKERS_USUAL.min(here),
        asked => asked.min(MEMBERS_MAX),
    };
    if wanted <= 1 || here == 1 && !config.paranoid || !make_packets() || !mark_bytes::make(space) {
        return 1;
    }
    (0..wanted as usize - 1).all(make_helper);
    (helpers() + 1).min(wanted)
}

fn make_packets() -> bool {
    if !PACKETS_AT.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let bytes = round_up(PACKETS as usize * size_of::<Packet>(), PAGE);
    let Ok(packets) = map::reserve_writable(bytes) else { return false };
    PACKETS_AT.store(packets.start.ptr(), Ordering::Release);
    true
}

/// Bytes of memory that marking by several threads has taken for a heap of `heap_bytes` bytes: packets,
/// helpers, and a byte for each granule.
pub(crate) fn taken_bytes(heap_bytes: usize) -> usize {
    if PACKETS_AT.load(Ordering::Relaxed).is_null() {
        return 0;
    }
    let helpers = MEMORIES.iter().filter(|memory| memory.load(Ordering::Relaxed) != 0).count();
    PACKETS as usize * size_of::<Packet>()
        + helpers * (thread::HELPER_BYTES + STACK_KEPT)
        + heap_bytes / GRANULE
}

/// The memory whose address is in `word`, mapped now if it was not. Under the heap's lock.
fn mapped(word: &AtomicUsize, bytes: usize) -> Option<usize> {
    if word.load(Ordering::Relaxed) == 0 {
        word.store(map::reserve_writable(bytes).ok()?.start.get(), Ordering::Relaxed);
    }
    Some(word.load(Ordering::Relaxed))
}

/// Makes the helper of that number, if there is none; false if it cannot be made. Under the heap's lock.
fn make_helper(index: usize) -> bool {
    let life = &LIVES[index];
    if life.is_started() {
        return true;
    }
    if !caps::has(Caps::HELPER) || !owner::is_here() {
        return false;
    }
    if mapped(&STACKS[index], STACK_WORDS * size_of::<usize>()).is_none() {
        return false;
    }
    let Some(memory) = mapped(&MEMORIES[index], thread::HELPER_BYTES) else { return false };
    let _undisturbed = Undisturbed::new();
    if !life.begin(&Helper(index)) {
        return false;
    }
    let memory = core::ptr::with_exposed_provenance_mut(memory);
    // SAFETY: pages that are never given back, zeroed or with stale frames of a helper that has ended; `help`
    // touches no thread-local storage.
    let run = unsafe { thread::start(help, index, memory, &TIDS[index]) }.is_ok();
    BORN[index].store(TIDS[index].load(Ordering::Relaxed), Ordering::Relaxed);
    life.began(&Helper(index), run);
    run
}

extern "C" fn help(index: usize) -> ! {
    thread::close_inherited();
    let stack = StackMemory {
        start: core::ptr::with_exposed_provenance_mut(STACKS[index].load(Ordering::Relaxed)),
        room: STACK_WORDS,
    };
    // A helper that begins late joins the trace for which it was made.
    let mut rung = 0;
    loop {
        // After the load of the bell: a request to end is stored before the bell rings.
        if LIVES[index].is_retiring() {
            thread::exit();
        }
        if let Some(this) = CREW.join() {
            // SAFETY: the leader has stored it before it opened the crew, and waits while this member is
            // busy.
            let space = unsafe { &*SPACE.load(Ordering::Acquire) };
            let marker = Marker::new(space, stack, ONLY_STARTS.load(Ordering::Relaxed), Together);
            work(marker, this, false).give_back(stack);
        }
        while BELL.load(Ordering::Acquire) == rung {
            thread::wait(&BELL, rung, ASLEEP_NS);
        }
        rung = BELL.load(Ordering::Acquire);
    }
}

/// Traces the entries on the stack together with helpers. `blocks` is all blocks there are. Returns what is
/// left, which is objects that found no room on a stack, and how many objects helpers have marked. The world
/// stands still.
pub(crate) fn trace(
    space: &AddressTable,
    blocks: &[usize],
    stack: StackMemory,
    only_starts: bool,
    left: Paused,
) -> (Paused, u64) {
    SPACE.store(core::ptr::from_ref(space).cast_mut(), Ordering::Release);
    ONLY_STARTS.store(only_starts, Ordering::Relaxed);
    MARKED.store(0, Ordering::Relaxed);
    OVERFLOWED.store(false, Ordering::Relaxed);
    let this = CREW.open();
    thread::wake(&BELL);
    let left = work(Marker::resume(space, stack, only_starts, Together, left), this, true);
    wake_sleepers();
    for &block in blocks {
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        let block = unsafe { &*(block as *const Block) };
        // The memory of a block without extent may be another's by now, and so may its mark bytes.
        if block.extent.get() != 0 {
            Bytes::get().settle(block);
        }
    }
    let helped = MARKED.load(Ordering::Relaxed);
    (left.and(helped, OVERFLOWED.load(Ordering::Relaxed)), helped)
}

/// Takes part in a trace until it is over.
fn work(mut marker: Marker<'_, Together>, this: Trace, is_leader: bool) -> Paused {
    let mut told = 0;
    loop {
        while !marker.trace_some(SHARE_EVERY) {
            share(&mut marker);
        }
        // Published before it is idle: the leader may be done by then, and the trace over.
        if !is_leader {
            MARKED.fetch_add(marker.marked - told, Ordering::Relaxed);
            told = marker.marked;
            if marker.has_overflowed() {
                OVERFLOWED.store(true, Ordering::Relaxed);
            }
        }
        let Some(packet) = CREW.next(this, is_leader, wait) else { break };
        // SAFETY: taken: the packet is this member's until it is given back.
        let contents = unsafe { &*packet_at(packet) };
        marker.receive(&contents.words[..contents.count]);
        CREW.give_back(packet);
    }
    marker.pause()
}

fn packet_at(packet: u32) -> *mut Packet {
    // SAFETY: `make_packets` has made [`PACKETS`] packets, and every packet's number is below that.
    unsafe { PACKETS_AT.load(Ordering::Acquire).add(packet as usize) }
}

/// Gives others some of the waiting entries, if they need work.
fn share(marker: &mut Marker<'_, Together>) {
    let least = if CREW.is_anybody_idle() { SHARE_MIN } else { SHARE_AHEAD };
    if marker.waiting() < least || CREW.has_work() {
        return;
    }
    let Some(packet) = CREW.claim() else { return };
    // SAFETY: claimed: the packet is this member's until it is shared or given back.
    let contents = unsafe { &mut *packet_at(packet) };
    contents.count = marker.give(&mut contents.words);
    if contents.count == 0 {
        return CREW.give_back(packet);
    }
    CREW.share(packet);
    wake_sleepers();
}

/// Waits for a moment, or sleeps when it has waited for long.
fn wait(looks: u32) {
    if looks < LOOKS {
        return core::hint::spin_loop();
    }
    let seen = SHARED.load(Ordering::SeqCst);
    SLEEPERS.fetch_add(1, Ordering::SeqCst);
    // A member that shares later sees a sleeper; one that shared before is seen here.
    if !CREW.has_work() {
        thread::wait(&SHARED, seen, SLEEP_NS);
    }
    SLEEPERS.fetch_sub(1, Ordering::SeqCst);
}

fn wake_sleepers() {
    if SLEEPERS.load(Ordering::SeqCst) > 0 {
        thread::wake(&SHARED);
    }
}
