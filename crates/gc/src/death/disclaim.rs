//! Disclaimers: callbacks that decide whether an object that was found dead is freed or kept.
//!
//! A finalizer runs once. A *disclaimer* is called after each collection that finds its object dead: it lets
//! the object go, or keeps it until the next collection. Example: a table of weak references. An object's
//! disclaimer removes the object's entry, unless a thread has used the entry since the object was found dead.
//!
//! ```text
//! alive ──▶ found dead: due ──▶ called ─▶ returns 0: disclaimer dropped; freed by the next collection
//!   ▲                                └──▶ returns another value: the object stays alive
//!   └───────────────────────────────────────┘
//! ```
//!
//! # Invariants
//! * An object that is due (its disclaimer is to be called) is a root until its disclaimer has returned.
//! * If a disclaimer is set with `follows`, all that its dead object refers to stays until that object is
//!   freed. In a chain of such objects, the first is due first. Objects that refer to each other in a ring
//!   are never due.
//! * Disclaimers are called while the program's threads run, with no lock held.
//! * Objects with disclaimers do not move: the table of disclaimers has their addresses.
//!
//! Source: the disclaim notifiers of the Boehm-Demers-Weiser collector. That collector calls them during
//! the sweep, with its allocation lock held. Here they run after the collection, so they may allocate and
//! wait.

use crate::death::table::{Step, Table};
use crate::space::block::Block;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use core::ffi::{c_int, c_void};
use vellum_pages::{OutOfMemory, Plain};
use vellum_sys::Addr;

/// True if an object that was found dead stays: 0 lets it go.
pub type DisclaimFn = unsafe extern "C" fn(object: *mut c_void, data: *mut c_void) -> c_int;

#[derive(Clone, Copy)]
pub(crate) struct Disclaimer {
    pub function: DisclaimFn,
    pub data: Addr,
    /// Objects that the object refers to stay for it, even from finalizers.
    follows: bool,
    /// The object was found dead, and its disclaimer is to be called.
    due: bool,
    /// The disclaimer is being called.
    asked: bool,
    /// The program has revived the object since.
    wanted: bool,
}

// SAFETY: numbers, flags and a pointer to code, which own nothing; a filler is a copy of a value.
unsafe impl Plain for Disclaimer {}

/// The disclaimers of a heap, by their objects.
pub(crate) struct Disclaimers {
    table: Table<Disclaimer>,
    /// Disclaimers that are due and not called yet.
    due: usize,
    /// The place in the table from which the next due one is searched.
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

    /// Bytes by which the table grows when one is added.
    pub(crate) fn bytes_to_grow(&self) -> usize {
        self.table.bytes_to_grow()
    }

    /// Gives the object a disclaimer in place of the one it had, or with `None` none.
    ///
    /// # Errors
    /// [`OutOfMemory`]; it has none then.
    pub(crate) fn set(
        &mut self,
        object: Addr,
        function: Option<DisclaimFn>,
        data: Addr,
        follows: bool,
    ) -> Result<(), OutOfMemory> {
        self.forget(object);
        let Some(function) = function else { return Ok(()) };
        let new = Disclaimer { function, data, follows, due: false, asked: false, wanted: false };
        self.table.insert(object, new)
    }

    /// Returns whether the object was not found dead, or was revived since.
    pub(crate) fn is_marked(&self, object: Addr) -> bool {
        self.table.get(object).is_none_or(|this| !this.due || this.wanted)
    }

    /// Sets whether an object that was found dead is to stay.
    pub(crate) fn want(&mut self, object: Addr, wanted: bool) {
        if let Some(this) = self.table.get(object).filter(|this| this.due) {
            // It is in the table already, so there is room.
            let _ = self.table.insert(object, Disclaimer { wanted, ..this });
        }
    }

    /// Returns whether any is to be called.
    pub(crate) fn any_due(&self) -> bool {
        self.due > 0
    }

    /// Calls `visit` with every object that has one.
    pub(crate) fn each(&self, mut visit: impl FnMut(Addr)) {
        self.table.each(|object, _| visit(object));
    }

    /// Drops the object's disclaimer, if it has one.
    pub(crate) fn forget(&mut self, object: Addr) {
        if self.table.remove(object).is_some_and(|this| this.due && !this.asked) {
            self.due -= 1;
        }
    }

    /// Returns whether as many are due as are counted.
    pub(crate) fn is_counted(&self) -> bool {
        let mut due = 0;
        self.table.each(|_, this| due += usize::from(this.due && !this.asked));
        due == self.due
    }

    /// Marks the objects that are due, and the arguments of disclaimers.
    pub(crate) fn mark_roots(&self, marker: &mut Marker<'_, impl Movement>) {
        self.table.each(|object, this| {
            marker.root(this.data);
            if this.due {
                marker.root(object);
            }
        });
    }

    /// Marks what dead objects with `follows` refer to. Everything that is reachable is marked already.
    pub(crate) fn follow(&self, marker: &mut Marker<'_, impl Movement>, blocks: &[&'static Block]) {
        self.table.each(|object, this| {
            if this.follows && !marker.is_marked(object) {
                marker.contents(object);
                marker.drain(blocks);
            }
        });
    }

    /// Finds the disclaimers that are due, and keeps their objects. Finalizers' objects are marked already.
    pub(crate) fn find_due(&mut self, marker: &mut Marker<'_, impl Movement>, blocks: &[&'static Block]) {
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

    /// Takes the disclaimers to be called next; returns how many.
    pub(crate) fn take(&mut self, taken: &mut [(Addr, Option<Disclaimer>)]) -> usize {
        let mut count = 0;
        if self.due == 0 {
            return 0;
        }
        // Twice at most: a table made anew since the last step may have the rest before `from`.
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

    pub(crate) fn is_asked(&self, object: Addr) -> bool {
        self.table.get(object).is_some_and(|this| this.asked)
    }

    /// Records the results: objects, each with whether it stays.
    pub(crate) fn settle(&mut self, answers: &[(Addr, bool)]) {
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
