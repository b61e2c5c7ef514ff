//! Disclaimers: what decides, when an object was found dead, whether it goes.
//!
//! A finalizer runs once, on demand, and nothing can be taken back. A *disclaimer* is asked each time its object is found dead, right after
//! the collection: it lets the object go, or has it stay until the next one. A table of weak references is written with it: the disclaimer
//! takes the object's entry out, unless somebody has found it there meanwhile.
//!
//! ```text
//! alive ──▶ found dead: due ──▶ asked ──▶ 0: forgotten, and garbage at the next collection
//!   ▲                                └──▶ else: as if nothing had happened
//!   └───────────────────────────────────────┘
//! ```
//!
//! # Invariants
//! * An object that is due is a root until it was asked: whoever finds it by then finds it whole.
//! * What a dead object refers to stays at least until it has gone, if its disclaimer `follows`: of a chain the first is asked first, and what is in a
//!   ring never is.
//! * Disclaimers run with the world going on and no lock held.
//! * Objects with disclaimers do not move: the table knows them by their addresses.
//!
//! Source: the disclaim notifiers of the Boehm-Demers-Weiser collector. There they run while memory is swept, with the allocation lock
//! held; here after the collection, so that they may allocate and wait.

use crate::alloc::with_heap;
use crate::frames::holding;
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::object::{Refused, address, find, look, look_with_room};
use crate::table::{Step, Table};
use crate::thread;
use core::ffi::{c_int, c_void};
use vellum_pages::Plain;

/// Whether an object that was found dead stays: 0 lets it go.
pub type DisclaimFn = unsafe extern "C" fn(object: *mut c_void, data: *mut c_void) -> c_int;

/// An object's disclaimer.
#[derive(Clone, Copy)]
struct Disclaimer {
    function: DisclaimFn,
    data: Address,
    /// What the object refers to stays for it, even from finalizers.
    follows: bool,
    /// The object was found dead, and is to be asked.
    due: bool,
    /// It is being asked.
    asked: bool,
    /// Somebody wants it since.
    wanted: bool,
}

// SAFETY: numbers, flags and a pointer to code; a filler is copied from a value, never made from bits.
unsafe impl Plain for Disclaimer {}

/// All of them, by their objects.
pub(crate) struct Disclaimers {
    table: Table<Disclaimer>,
    /// Those that are due and not being asked yet.
    due: usize,
    /// Where in the table the next of them is looked for.
    from: usize,
}

impl Disclaimers {
    pub(crate) const fn new() -> Disclaimers {
        Disclaimers { table: Table::new(), due: 0, from: 0 }
    }

    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Whether any is to be asked.
    pub(crate) fn any_due(&self) -> bool {
        self.due > 0
    }

    /// Calls `visit` with every object that has one.
    pub(crate) fn each(&self, mut visit: impl FnMut(Address)) {
        self.table.each(|object, _| visit(object));
    }

    /// The object goes otherwise.
    pub(crate) fn forget(&mut self, object: Address) {
        if self.table.remove(object).is_some_and(|this| this.due && !this.asked) {
            self.due -= 1;
        }
    }

    /// Whether as many are due as are counted.
    pub(crate) fn is_counted(&self) -> bool {
        let mut due = 0;
        self.table.each(|_, this| due += usize::from(this.due && !this.asked));
        due == self.due
    }

    /// Marks what is due, and what disclaimers are given.
    pub(crate) fn mark_roots(&self, marker: &mut Marker<'_, impl Movement>) {
        self.table.each(|object, this| {
            marker.root(this.data);
            if this.due {
                marker.root(object);
            }
        });
    }

    /// Marks what the dead refer to that are followed. Everything that is reachable is marked.
    pub(crate) fn follow(&self, marker: &mut Marker<'_, impl Movement>, blocks: &[Address]) {
        self.table.each(|object, this| {
            if this.follows && !marker.is_marked(object) {
                marker.contents(object);
                marker.drain(blocks);
            }
        });
    }

    /// Finds those that are due, and keeps their objects. What finalizers are to see is marked.
    pub(crate) fn find_due(&mut self, marker: &mut Marker<'_, impl Movement>, blocks: &[Address]) {
        let mut found = 0;
        self.table.retain(|object, this| {
            if !this.due && !marker.is_marked(object) {
                (this.due, this.wanted) = (true, false);
                found += 1;
            }
            true
        });
        if found == 0 {
            return;
        }
        self.due += found;
        self.table.each(|object, this| {
            if this.due {
                marker.root(object);
            }
        });
        marker.drain(blocks);
    }

    /// Those to be asked next; how many.
    fn take(&mut self, taken: &mut [(Address, Option<Disclaimer>)]) -> usize {
        let mut count = 0;
        if self.due == 0 {
            return 0;
        }
        // Twice at most: the table may have been made anew since the last step, and those that are left lie before.
        for _ in 0..2 {
            self.from = self.table.step(self.from, |object, this| {
                if !this.due || this.asked {
                    return Step::Keep;
                }
                let Some(place) = taken.get_mut(count) else { return Step::Stop };
                this.asked = true;
                *place = (object, Some(*this));
                count += 1;
                Step::Keep
            });
            if count > 0 {
                break;
            }
            self.from = 0;
        }
        self.due -= count;
        count
    }

    /// Whether the object is being asked.
    fn is_asked(&self, object: Address) -> bool {
        self.table.get(object).is_some_and(|this| this.asked)
    }

    /// These objects were asked, each with whether it stays.
    fn settle(&mut self, answers: &[(Address, bool)]) {
        for &(object, stays) in answers {
            let Some(this) = self.table.get(object).filter(|this| this.asked) else { continue };
            if stays {
                let anew = Disclaimer { due: false, asked: false, wanted: false, ..this };
                // It is in the table already, so there is room.
                let _ = self.table.insert(object, anew);
            } else {
                self.table.remove(object);
            }
        }
    }
}

/// Disclaimers taken at a time.
const BATCH: usize = 32;

/// Asks all that are due; how many those were.
pub(crate) fn run() -> usize {
    let Some(thread) = thread::attached() else { return 0 };
    let mut ran = 0;
    loop {
        let mut batch = [(0, None); BATCH];
        let mut answers = [(0, false); BATCH];
        let count = with_heap(thread, |heap| heap.disclaimers.take(&mut batch));
        if count == 0 {
            return ran;
        }
        for ((object, this), answer) in batch.iter().zip(&mut answers).take(count) {
            let Some(Disclaimer { function, data, .. }) = *this else { continue };
            // One that was asked before may have freed this object, or taken its disclaimer away.
            if !with_heap(thread, |heap| heap.disclaimers.is_asked(*object)) {
                continue;
            }
            let pointer = core::ptr::with_exposed_provenance_mut(*object);
            // SAFETY: who set it vouches that it may be called so; the object is a root until it is settled.
            let stays = unsafe { function(pointer, core::ptr::with_exposed_provenance_mut(data)) } != 0;
            *answer = (*object, stays);
        }
        with_heap(thread, |heap| heap.disclaimers.settle(&answers[..count]));
        ran += count;
    }
}

/// Has `function` asked, given `data`, whenever the object at `pointer` is found dead, or with `None` none. If `follows`, what the object refers to is
/// no more dead than what is due; else it is asked, or finalized, at once with it.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The function may be called with the object and `data` on any thread, at any time after the object has died.
pub unsafe fn set_disclaimer(
    pointer: *mut u8,
    function: Option<DisclaimFn>,
    data: *mut u8,
    follows: bool,
) -> Result<(), Refused> {
    let (object, data) = (address(pointer), address(data));
    let work = |heap: &mut Heap| {
        heap.block_starting(object).ok_or(Refused::NoObject)?;
        heap.disclaimers.forget(object);
        let Some(function) = function else { return Ok(()) };
        let new = Disclaimer { function, data, follows, due: false, asked: false, wanted: false };
        heap.disclaimers.table.insert(object, new).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[object, data], || look_with_room(|heap| heap.disclaimers.table.bytes_to_grow(), work))
}

/// Whether the object that holds the byte at `pointer` was alive at the last collection, is newer, or is wanted ([`want`]) since it
/// was found dead.
pub fn is_marked(pointer: *const u8) -> bool {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let (block, index) = find(heap, at)?;
        let this = heap.disclaimers.table.get(block.address(index));
        Some(this.is_none_or(|this| !this.due || this.wanted))
    };
    holding(&[at], || look(work)).flatten().unwrap_or(false)
}

/// Says of an object that it is wanted, or is not, for its disclaimer to see: it may have been found dead.
pub fn want(pointer: *const u8, wanted: bool) {
    let at = address(pointer);
    let work = |heap: &mut Heap| {
        let Some((block, index)) = find(heap, at) else { return };
        let object = block.address(index);
        if let Some(this) = heap.disclaimers.table.get(object).filter(|this| this.due) {
            // It is in the table already, so there is room.
            let _ = heap.disclaimers.table.insert(object, Disclaimer { wanted, ..this });
        }
    };
    holding(&[at], || look(work));
}
