//! Marking by several threads at once, where that is worth it.
//!
//! ```text
//! leader    roots ─▶ its stack ─▶ traces, and shares packets of what waits ─▶ … ─▶ everybody idle: closes ─▶ the rest of the collection
//! helpers   asleep ─▶ woken ─▶ join, take a packet, trace, share ─▶ idle ─▶ … ─▶ asleep
//! ```
//!
//! The leader is the thread that collects. Helpers are threads that the C library does not know ([`vellum_sys::thread`]), made before the first
//! collection that wants them, one for each marker beyond the first; they sleep between collections and leave with the process. The crew
//! ([`Crew`]) has what is lock-free of it.
//!
//! Parallel marking is what makes small heaps slow elsewhere: threads are woken and waited for, and find nothing to do. So nothing is begun
//! below [`LIVE_MIN`] bytes alive or on one processor; nobody waits for a helper that has not begun; and who finds nothing for some
//! microseconds sleeps. Marks are bytes ([`bytes`]) only while there are helpers.
//!
//! # Invariants
//! * The world stands still as long as a trace is open: heap words, descriptors and the address table are only read, but for the notes of overflow, which
//!   are atomic, as the bytes are.
//! * What a helper has marked is told before it is idle, so that the leader has it when the crew closes.
//! * Helpers touch no thread-local storage, and allocate nothing.
//! * Slices and collections that move objects are one thread's.

use crate::block::Block;
use crate::bytes::{self, Bytes};
use crate::class::GRANULE;
use crate::config::STACK_KEPT;
use crate::crew::{Crew, MEMBERS_MAX, PACKETS, Trace};
use crate::heap::Heap;
use crate::mark::{Marker, Paused, StackMemory};
use crate::movement::Together;
use crate::space::Space;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use vellum_sys::{PAGE, map, round_up, thread};

/// Bytes alive after the last collection from which on helpers are called: tracing less takes no longer than waking somebody on a busy machine.
const LIVE_MIN: u64 = 32 << 20;
/// Markers unless a number is asked for: more processors than these are other programs' as well.
const MARKERS_USUAL: u32 = 4;
/// Words of a helper's stack (address space).
const STACK_WORDS: usize = 256 << 10;
/// Words in a packet.
const PACKET_WORDS: usize = 254;
/// Objects traced between two looks at whether others need something.
const SHARE_EVERY: u32 = 512;
/// Words that must wait for a packet to be made of some: when others are idle, and so that there is one when they will be.
const SHARE_MIN: usize = 16;
const SHARE_AHEAD: usize = 1024;
/// Looks for something to do before a member sleeps.
const LOOKS: u32 = 2000;
/// How long it sleeps, if nobody wakes it: the leader is not told that all the others are idle.
const SLEEP_NS: u64 = 200_000;
/// The same between collections.
const ASLEEP_NS: u64 = 3_600_000_000_000;

/// What waits, on its way from one stack to another.
#[repr(C)]
struct Packet {
    count: usize,
    words: [usize; PACKET_WORDS],
}

static CREW: Crew = Crew::new();
static PACKETS_AT: AtomicPtr<Packet> = AtomicPtr::new(null_mut());
/// What the trace is of. Written before the crew opens, read by its members.
static SPACE: AtomicPtr<Space> = AtomicPtr::new(null_mut());
static ONLY_STARTS: AtomicBool = AtomicBool::new(false);
/// What helpers have told.
static MARKED: AtomicU64 = AtomicU64::new(0);
static OVERFLOWED: AtomicBool = AtomicBool::new(false);

/// Changes when there is a trace to join.
static BELL: AtomicU32 = AtomicU32::new(0);
/// Changes when there may be something to take, if members sleep.
static SHARED: AtomicU32 = AtomicU32::new(0);
static SLEEPERS: AtomicU32 = AtomicU32::new(0);

/// Helpers made.
static HELPERS: AtomicU32 = AtomicU32::new(0);
static STACKS: [AtomicUsize; MEMBERS_MAX as usize] = [const { AtomicUsize::new(0) }; MEMBERS_MAX as usize];
static TIDS: [AtomicU32; MEMBERS_MAX as usize] = [const { AtomicU32::new(0) }; MEMBERS_MAX as usize];

/// In a forked child there are no helpers.
pub(crate) fn forget() {
    HELPERS.store(0, Ordering::Relaxed);
    SLEEPERS.store(0, Ordering::Relaxed);
}

impl Heap {
    /// Markers for the next collection at one go, made ready. The world still runs.
    pub(crate) fn markers_ready(&self) -> u32 {
        // Under a maximum, what helpers take has been promised to objects.
        if self.config.markers == 1 || self.config.max_bytes != usize::MAX {
            return 1;
        }
        // A program's procedures are not for threads that its C library does not know.
        if self.has_procedures {
            return 1;
        }
        // A test is to see it in a small heap, too.
        if self.stats.live_bytes < LIVE_MIN && !(self.config.paranoid && self.config.markers > 1) {
            return 1;
        }
        let here = thread::processors();
        let wanted = match self.config.markers {
            0 => MARKERS_USUAL.min(here),
            asked => asked.min(MEMBERS_MAX),
        };
        if wanted <= 1 || here == 1 && !self.config.paranoid || !make_packets() || !bytes::make(&self.space) {
            return 1;
        }
        while HELPERS.load(Ordering::Relaxed) + 1 < wanted && make_helper() {}
        (HELPERS.load(Ordering::Relaxed) + 1).min(wanted)
    }
}

fn make_packets() -> bool {
    if !PACKETS_AT.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let bytes = round_up(PACKETS as usize * size_of::<Packet>(), PAGE);
    let Ok(start) = map::reserve_writable(bytes) else { return false };
    PACKETS_AT.store(core::ptr::with_exposed_provenance_mut(start), Ordering::Release);
    true
}

/// Bytes of memory that marking by several threads has taken for a heap of so many bytes: packets, helpers, and a byte for each object.
pub(crate) fn taken_bytes(heap_bytes: usize) -> usize {
    if PACKETS_AT.load(Ordering::Relaxed).is_null() {
        return 0;
    }
    let helpers = HELPERS.load(Ordering::Relaxed) as usize;
    PACKETS as usize * size_of::<Packet>()
        + helpers * (thread::HELPER_BYTES + STACK_KEPT)
        + heap_bytes / GRANULE
}

/// Makes one more helper; false if that cannot be had. Under the heap's lock.
fn make_helper() -> bool {
    let index = HELPERS.load(Ordering::Relaxed) as usize;
    if STACKS[index].load(Ordering::Relaxed) == 0 {
        let Ok(stack) = map::reserve_writable(STACK_WORDS * size_of::<usize>()) else { return false };
        STACKS[index].store(stack, Ordering::Relaxed);
    }
    let Ok(memory) = map::reserve_writable(thread::HELPER_BYTES) else { return false };
    let memory = core::ptr::with_exposed_provenance_mut(memory);
    // SAFETY: zeroed pages that are never given back; `help` touches no thread-local storage.
    if unsafe { thread::start(help, index, memory, &TIDS[index]) }.is_err() {
        // SAFETY: no thread has it.
        let _ = unsafe { map::release(memory.addr(), thread::HELPER_BYTES) };
        return false;
    }
    HELPERS.store(index as u32 + 1, Ordering::Relaxed);
    true
}

extern "C" fn help(index: usize) -> ! {
    thread::close_inherited();
    let stack = StackMemory {
        start: core::ptr::with_exposed_provenance_mut(STACKS[index].load(Ordering::Relaxed)),
        room: STACK_WORDS,
    };
    // One that begins late finds the trace for which it was made.
    let mut rung = 0;
    loop {
        if let Some(this) = CREW.join() {
            // SAFETY: the leader has stored it, and does not end the trace while this member is busy.
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

/// Traces together with helpers what waits on the stack, in `blocks`, which are all there are; what is left is whatever found no room there. Beside it, how many objects helpers
/// have marked. The world stands still.
pub(crate) fn trace(
    space: &Space,
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
        // One that is only to be forgotten names memory that may be another's by now, and so may the bytes.
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
        // Told before it is idle: the leader may be done by then, and the trace over.
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
    // SAFETY: there are so many behind the pointer, and no packet has a greater number.
    unsafe { PACKETS_AT.load(Ordering::Acquire).add(packet as usize) }
}

/// Lets others have some of what waits, if they need it.
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
    // Who shares afterwards sees a sleeper; who did before is seen here.
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
