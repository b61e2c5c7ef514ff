//! Determines after a trace which finalizers are due (must run), and when *links*
//! ([`links`](crate::death::links): pointers that become null when their object dies) are cleared.
//!
//! These steps follow a trace, when everything that is reachable is marked:
//!
//! 1. early links (all that were not made as *late* ones) to unmarked objects become null; those to moved
//!    objects are updated;
//! 2. dead objects with unordered finalizers ([`Order`]) are due;
//! 3. for all other dead objects with finalizers, their referents are traced. If such an object has an
//!    ordered finalizer and is still unmarked, it is due: no such object leads to it. It is traced;
//! 4. the remaining dead objects whose finalizer is [`Order::Last`] are due;
//! 5. due objects are traced: they stay until their finalizers have run;
//! 6. late links to objects that are still unmarked become null.
//!
//! Objects with finalizers do not move, because the table has their addresses.

use crate::death::table::Table;
use crate::space::block::Block;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use crate::world::event::{self, Event};
use vellum_pages::Plain;
use vellum_sys::Addr;

/// A finalizer: it runs when an object has died, with the object and the argument given with it.
pub type Function = unsafe extern "C" fn(object: *mut core::ffi::c_void, data: *mut core::ffi::c_void);

/// Which of several dead objects that refer to each other are finalized first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Order {
    /// An object comes before the objects that it refers to; objects in a ring never come.
    Ordered = 0,
    /// All at once.
    Unordered = 1,
    /// As [`Ordered`](Order::Ordered), but an object may refer to itself.
    IgnoringItself = 2,
    /// As [`Ordered`](Order::Ordered), but also after the objects that unordered finalizers may see.
    Last = 3,
}

impl From<bool> for Order {
    /// Returns whether unordered.
    fn from(unordered: bool) -> Order {
        if unordered { Order::Unordered } else { Order::Ordered }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Finalizer {
    pub function: Function,
    pub data: Addr,
    pub order: Order,
    /// The object has died; the finalizer is to run.
    pub due: bool,
}

// SAFETY: numbers, flags and a pointer to code, which own nothing; a filler is a copy of a value.
unsafe impl Plain for Finalizer {}

/// Marks the roots that the table holds: objects that are due, and the finalizers' arguments.
pub(crate) fn mark_roots(finalizers: &Table<Finalizer>, marker: &mut Marker<'_, impl Movement>) {
    finalizers.each(|object, finalizer| {
        marker.root(finalizer.data);
        if finalizer.due {
            marker.root(object);
        }
    });
}

/// Finds the objects whose finalizers are due, and keeps them alive. Returns how many became due.
pub(crate) fn find_due<M: Movement>(
    finalizers: &mut Table<Finalizer>,
    marker: &mut Marker<'_, M>,
    blocks: &[&'static Block],
) -> usize {
    let mut found = 0;
    let mut last = false;
    let mut judge =
        |finalizers: &mut Table<Finalizer>, marker: &Marker<'_, M>, is_meant: fn(Order) -> bool| {
            finalizers.retain(|object, finalizer| {
                if !finalizer.due && is_meant(finalizer.order) && !marker.is_marked(object) {
                    finalizer.due = true;
                    found += 1;
                    event::tell_value(Event::Due, object.get());
                }
                true
            });
        };
    judge(finalizers, marker, |order| order == Order::Unordered);
    finalizers.each(|object, finalizer| {
        if !finalizer.due && !marker.is_marked(object) {
            last |= finalizer.order == Order::Last;
            if finalizer.order == Order::IgnoringItself && !M::MOVES {
                marker.contents_but_itself(object);
            } else {
                marker.contents(object);
            }
            marker.drain(blocks);
        }
    });
    judge(finalizers, marker, |order| matches!(order, Order::Ordered | Order::IgnoringItself));
    keep_due(finalizers, marker, blocks);
    if last {
        judge(finalizers, marker, |order| order == Order::Last);
        keep_due(finalizers, marker, blocks);
    }
    found
}

/// Traces the objects that are due.
fn keep_due(
    finalizers: &Table<Finalizer>,
    marker: &mut Marker<'_, impl Movement>,
    blocks: &[&'static Block],
) {
    finalizers.each(|object, finalizer| {
        if finalizer.due {
            marker.root(object);
        }
    });
    marker.drain(blocks);
}
