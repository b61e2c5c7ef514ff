//! Modes for finding errors: every invariant checked in every phase, and a collection at every allocation.
//!
//! They are settings of a heap and not of a build: a program that behaves strangely is run again with them, as it is.
//!
//! ```text
//! paranoid   check ─ retire, pin, trace ─ check ─ survey ─ check          a broken invariant ends the process
//! eager      allocate: collect ─ hand out one object                       or a slice, where collections are made in slices; mostly minor
//!                                                                       ones, where there are any
//! poison     survey: overwrite what died                                   (`survey`)
//! ```
//!
//! Together: what is freed too early is noticed at the next allocation, by whom it belongs to.

use crate::alloc::{collect_now, ensure_started, note};
use crate::appel::minor;
use crate::budget::Budget;
use crate::cycle::{self, Progress};
use crate::event;
use crate::heap::Heap;
use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, Ordering};

/// Objects looked through in a slice at an allocation.
const SLICE_OBJECTS: u32 = 64;

/// Where there are minor collections, so many are made between two major ones.
const MINORS_EAGER: u32 = 7;

/// Whether every allocation collects.
static EAGER: AtomicBool = AtomicBool::new(false);

/// Has every allocation from now on collect, or not.
pub(crate) fn set_eager(on: bool) {
    EAGER.store(on, Ordering::Relaxed);
}

/// Whether every allocation collects.
#[inline(always)]
pub(crate) fn is_eager() -> bool {
    EAGER.load(Ordering::Relaxed)
}

/// Collects for `thread`, which is inside and about to allocate. `heap` is under its lock.
#[cold]
pub(crate) fn collect_eagerly(heap: &mut Heap, thread: &'static Thread) {
    if !ensure_started(heap) || heap.held != 0 || !event::is_welcome() {
        return;
    }
    let budget = Budget::of_objects(SLICE_OBJECTS);
    if heap.is_leaving {
        cycle::let_go(heap, budget);
    } else if heap.config.slice_ns > 0 && heap.may_slice() {
        let progress = cycle::step(heap, thread, budget, false);
        note(thread, progress);
    } else if heap.may_be_minor() && heap.appel.minors < MINORS_EAGER && minor::collect(heap, thread) {
        note(thread, Progress::Done);
    } else {
        collect_now(heap, thread);
    }
}

impl Heap {
    /// Ends the process if a check that is made in paranoid heaps fails, saying when. The world stands still.
    #[inline]
    pub(crate) fn check_after(&self, phase: &str, check: impl FnOnce(&Heap) -> Result<(), &'static str>) {
        if self.config.paranoid
            && let Err(broken) = check(self)
        {
            end(phase, broken);
        }
    }
}

/// Says which invariant is broken, and ends the process: the heap cannot be relied on.
#[cold]
fn end(phase: &str, broken: &str) -> ! {
    for part in ["vellum: gc: after ", phase, " this is not so: ", broken, "\n"] {
        // SAFETY: a range of bytes that lives; a refusal loses a word only.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    panic!("an invariant of the collected heap");
}
