//! The cost of recording itself, measured once for each job, in the first process that records.
//!
//! The cost of a timing is the time measured for an empty function, called and timed like an operation. The
//! cost of counting is the time of a loop of recorded calls, minus that of the empty loop; nobody reads these
//! records. For counting with timing, the same loop times every call. Rare, long work is measured each time:
//! [`crate::spent`].

use crate::asked::Asked;
use crate::thread::Thread;
use crate::walk::{self, Caller};
use crate::{process, timing};
use core::cell::UnsafeCell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_wire::cost::{ChunkHead, Record};
use vellum_wire::operation::Kind;

/// Empty timings, as many as in the paper.
const TIMINGS: u64 = 1000;
/// Iterations of the counting loop.
const TURNS: u64 = 4096;
/// Iterations of the timing loop: fewer, as they are slow and every job pays for them.
const TIMED_TURNS: u64 = 256;
/// Repetitions of each loop. The fastest counts, as slower ones were disturbed.
const LOOPS: usize = 5;
/// Slots of the scratch table, which has no reader. One more slot follows, as after every table.
const SLOTS: usize = 64;

#[repr(align(64))]
struct Scratch(UnsafeCell<[u8; (SLOTS + 1) * size_of::<Record>()]>);

// SAFETY: only the one thread that measures uses it; the ledger lets one thread of the job measure.
unsafe impl Sync for Scratch {}

static SCRATCH: Scratch = Scratch(UnsafeCell::new([0; (SLOTS + 1) * size_of::<Record>()]));

extern "C" fn nothing(argument: usize) -> usize {
    argument
}

/// Measures the cost of recording, unless a process of the job already has.
pub(crate) fn measure_once(thread: &'static Thread) {
    let Some(ledger) = process::ledger() else { return };
    let head = ledger.head();
    if claimed(&head.own_state) {
        let function: extern "C" fn(usize) -> usize = black_box(nothing);
        let (mut sum, mut squares, mut min, mut max) = (0.0, 0.0, u64::MAX, 0);
        for turn in 0..TIMINGS {
            let began = timing::begin();
            black_box(function(turn as usize));
            let took = timing::end().wrapping_sub(began);
            sum += took as f64;
            squares += (took as f64) * (took as f64);
            min = min.min(took);
            max = max.max(took);
        }
        let n = TIMINGS as f64;
        let mean = sum / n;
        let variance = (squares - sum * mean) / (n - 1.0);
        let own = &head.own;
        own.n.store(TIMINGS, Relaxed);
        own.mean.store(mean.to_bits(), Relaxed);
        own.min.store(min, Relaxed);
        own.max.store(max, Relaxed);
        own.std.store(square_root(variance).to_bits(), Relaxed);
        let (count, timed) = counting(thread, function);
        own.count.store(count.to_bits(), Relaxed);
        own.timed.store(timed.to_bits(), Relaxed);
        head.own_state.store(2, Relaxed);
    }
}

fn claimed(state: &AtomicU32) -> bool {
    state.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
}

/// Cycles to count one operation, and cycles to count and time one.
fn counting(thread: &'static Thread, function: extern "C" fn(usize) -> usize) -> (f64, f64) {
    let (table, mask) = (thread.table.get(), thread.mask.get());
    thread.table.set(SCRATCH.0.get().cast::<ChunkHead>());
    thread.mask.set(SLOTS - 1);
    // A return address used only in the scratch table, which has a record for it from the first iteration on.
    let place = [nothing as *const () as u64];
    let caller = Caller { frame: place.as_ptr(), bp: 0 };
    let asked = Asked::of(Kind::Free);
    let (mut bare, mut recorded, mut timed) = (u64::MAX, u64::MAX, u64::MAX);
    walk::adopt(thread, place[0], asked.operation);
    let loop_of = |turns: u64| {
        let began = timing::begin();
        for turn in 0..turns {
            if turns == TIMED_TURNS {
                walk::make_due(thread, place[0], asked.operation);
            }
            let token = walk::begin(asked, black_box(caller));
            black_box(function(turn as usize));
            walk::end(token);
        }
        timing::end().wrapping_sub(began)
    };
    for _ in 0..LOOPS {
        let began = timing::begin();
        for turn in 0..TURNS {
            black_box(function(turn as usize));
        }
        bare = bare.min(timing::end().wrapping_sub(began));
        recorded = recorded.min(loop_of(TURNS));
        timed = timed.min(loop_of(TIMED_TURNS));
    }
    thread.table.set(table);
    thread.mask.set(mask);
    let bare = bare as f64 / TURNS as f64;
    let each = |cycles: u64, turns: u64| (cycles as f64 / turns as f64 - bare).max(0.0);
    (each(recorded, TURNS), each(timed, TIMED_TURNS))
}

/// Newton's method: the standard library's square root could call a library that may be missing.
fn square_root(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 0.0;
    }
    let mut root = value.max(1.0);
    for _ in 0..64 {
        root = 0.5 * (root + value / root);
    }
    root
}
