//! Marking by several threads at once, where that is worth it.
//!
//! ```text
//! leader    roots ─▶ its stack ─▶ traces, shares packets ─▶ … ─▶ all are idle: closes the crew ─▶ ends
//! helpers   asleep ─▶ woken ─▶ join, take a packet, trace, share ─▶ idle ─▶ … ─▶ asleep
//! ```
//!
//! The leader is the thread that collects. Helpers are threads of the collector's own (`process::helpers`).
//! Together they are the *members* of a crew, [`Crew`](crate::process::work_packets::Crew), and share work
//! in packets (buffers of objects to scan) without locks.
//!
//! In other collectors, parallel marking makes small heaps slow: threads are woken and waited for, and
//! find nothing to do. Helpers are therefore not used below [`LIVE_MIN`] live bytes or on one processor.
//! The leader does not wait for a helper that has not begun, and a member without work for some
//! microseconds sleeps. Marks are bytes (`mark_bytes`) while there are helpers, else bits.
//!
//! # Invariants
//! * The world stands still as long as a trace is open: heap words, descriptors and the address table are
//!   only read. The exceptions are overflow flags and mark bytes, which are atomic.
//! * A helper publishes its counts before it is idle, so that the leader has them when the crew closes.
//! * Slices, and collections that move objects, are traced by one thread.

use crate::config::{Config, STACK_KEPT};
use crate::process::helpers::{self, CREW, PACKETS_AT, TRACE_AT};
use crate::process::work_packets::{MEMBERS_MAX, PACKETS, Trace};
use crate::space::address_table::AddressTable;
use crate::space::block::Block;
use crate::space::size_class::GRANULE;
use crate::trace::mark::{Marker, Paused, StackMemory};
use crate::trace::mark_bytes::Bytes;
use crate::trace::movement::Together;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vellum_sys::{PAGE, round_up, thread};

/// Bytes alive after the last collection from which on helpers are called. Tracing less takes no longer than
/// waking a thread on a busy machine.
const LIVE_MIN: u64 = 32 << 20;
/// The default number of markers: further processors are left to other programs.
const MARKERS_USUAL: u32 = 4;
const PACKET_WORDS: usize = 254;
/// Objects traced between two tests whether others need work.
const SHARE_EVERY: u32 = 512;
/// Words that must wait before a packet is filled: the first number if other members are idle. The second
/// number holds otherwise, so that a packet is ready later.
const SHARE_MIN: usize = 16;
const SHARE_AHEAD: usize = 1024;

/// Waiting entries, on their way from one stack to another.
#[repr(C)]
struct Packet {
    count: usize,
    words: [usize; PACKET_WORDS],
}

/// A trace that helpers take part in.
struct Shared<'t> {
    space: &'t AddressTable,
    only_starts: bool,
    /// The table of marks.
    bytes: Bytes,
    /// Counts that helpers have published.
    marked: AtomicU64,
    overflowed: AtomicBool,
}

/// Markers for the next collection at one go of a heap in which `live_bytes` were alive the last time, made
/// ready. The world still runs.
pub(crate) fn markers_ready(
    config: &Config,
    live_bytes: u64,
    has_procedures: bool,
    space: &AddressTable,
    bytes: &mut Bytes,
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
    if wanted <= 1 || here == 1 && !config.paranoid || !make_packets() || !bytes.make(space) {
        return 1;
    }
    (0..wanted as usize - 1).all(|index| helpers::make(index, help));
    (helpers::count() + 1).min(wanted)
}

fn make_packets() -> bool {
    helpers::mapped(&PACKETS_AT, round_up(PACKETS as usize * size_of::<Packet>(), PAGE)).is_some()
}

/// Bytes of memory that marking by several threads has taken for a heap of `heap_bytes` bytes: packets,
/// helpers, and a byte for each granule.
pub(crate) fn taken_bytes(heap_bytes: usize) -> usize {
    if PACKETS_AT.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    PACKETS as usize * size_of::<Packet>()
        + helpers::made() * (thread::HELPER_BYTES + STACK_KEPT)
        + heap_bytes / GRANULE
}

extern "C" fn help(index: usize) -> ! {
    thread::close_inherited();
    let start = core::ptr::with_exposed_provenance_mut(helpers::stack_of(index));
    let stack = StackMemory { start, room: helpers::STACK_WORDS };
    // A helper that begins late joins the trace for which it was made.
    let mut rung = 0;
    helpers::end_if_asked(index);
    loop {
        if let Some(this) = CREW.join() {
            let trace = core::ptr::with_exposed_provenance::<Shared<'_>>(TRACE_AT.load(Ordering::Acquire));
            // SAFETY: the leader has stored it before it opened the crew, and waits while this member is
            // busy.
            let left = unsafe { &*trace }.work(Paused::default(), this, stack, false);
            left.give_back(stack);
        }
        rung = helpers::wait_for_bell(index, rung);
    }
}

/// Traces the entries on the stack together with helpers. `blocks` is all blocks there are. Returns the rest,
/// objects that found no room on a stack, and the number of objects marked by helpers. The world stands
/// still.
pub(crate) fn trace(
    space: &AddressTable,
    blocks: &[&'static Block],
    stack: StackMemory,
    only_starts: bool,
    bytes: Bytes,
    left: Paused,
) -> (Paused, u64) {
    let (marked, overflowed) = (AtomicU64::new(0), AtomicBool::new(false));
    let trace = Shared { space, only_starts, bytes, marked, overflowed };
    TRACE_AT.store(core::ptr::from_ref(&trace).expose_provenance(), Ordering::Release);
    let this = CREW.open();
    helpers::ring();
    let left = trace.work(left, this, stack, true);
    helpers::wake_sleepers();
    for &block in blocks {
        // The memory of a block without extent may be another's by now, and so may its mark bytes.
        if block.extent.get() != 0 {
            bytes.settle(block);
        }
    }
    let helped = trace.marked.load(Ordering::Relaxed);
    (left.and(helped, trace.overflowed.load(Ordering::Relaxed)), helped)
}

impl Shared<'_> {
    /// Takes part in a trace until it is over.
    fn work(&self, left: Paused, this: Trace, stack: StackMemory, is_leader: bool) -> Paused {
        let together = Together(self.bytes);
        let mut marker = Marker::resume(self.space, stack, self.only_starts, together, left);
        let mut told = 0;
        loop {
            while !marker.trace_some(SHARE_EVERY) {
                share(&mut marker);
            }
            // Published before it is idle: the leader may be done by then, and the trace over.
            if !is_leader {
                self.marked.fetch_add(marker.marked - told, Ordering::Relaxed);
                told = marker.marked;
                if marker.has_overflowed() {
                    self.overflowed.store(true, Ordering::Relaxed);
                }
            }
            let Some(packet) = CREW.next(this, is_leader, helpers::wait) else { break };
            // SAFETY: taken: the packet is this member's until it is given back.
            let contents = unsafe { &*packet_at(packet) };
            marker.receive(&contents.words[..contents.count]);
            CREW.give_back(packet);
        }
        marker.pause()
    }
}

fn packet_at(packet: u32) -> *mut Packet {
    let first = core::ptr::with_exposed_provenance_mut::<Packet>(PACKETS_AT.load(Ordering::Acquire));
    // SAFETY: `make_packets` has made [`PACKETS`] packets, and every packet's number is below that.
    unsafe { first.add(packet as usize) }
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
    helpers::wake_sleepers();
}
