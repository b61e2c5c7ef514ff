//! Links: pointers that become null when their object dies (the disappearing links of libgc).
//!
//! A link is a word in the program's memory; a table has the word's address. The word must lie where the
//! collector does not scan, or it would keep the object alive.
//!
//! The object that a link refers to may move if the link holds the object's plain address when a collection
//! begins; the link is then updated. If the link holds another value (some programs hide such pointers by
//! inverting their bits), the object does not move. An object that *contains* a link does not move either, as
//! the table has the link's address.
//!
//! # Invariants
//! * A link that is not null refers to a live object, or to one that no collection has found dead yet.
//! * A link inside a dead object is removed from the table but not set to null: the dead object's memory may
//!   be in use again.

use crate::death::table::Table;
use crate::space::address_table::AddressTable;
use crate::space::size_class::WORD;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use vellum_pages::Plain;
use vellum_sys::{Addr, Span};

/// A pointer that becomes null when its object dies. The key is the pointer's own address.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The first byte of its object.
    pub object: Addr,
    /// The link stays until the object's finalizer has run and the object is dead once more.
    pub late: bool,
}

// SAFETY: a number and a flag, which own nothing; a filler is a copy of a value.
unsafe impl Plain for Link {}

/// The most links that are scanned for a freed large object; with more, it waits for the next collection.
const FEW: usize = 1024;

pub(crate) fn read(link: Addr) -> Addr {
    // SAFETY: a link may be read and written until its object dies or it is unregistered, by the contract of
    // its registration.
    unsafe { link.ptr::<Addr>().read_volatile() }
}

pub(crate) fn write(link: Addr, value: Addr) {
    // SAFETY: a link may be read and written until its object dies or it is unregistered, by the contract of
    // its registration.
    unsafe { link.ptr::<Addr>().write_volatile(value) };
}

/// Clears links to dead objects, the `late` ones or the others, and updates the others of that kind if their
/// objects have moved. Everything that the trace is to mark before that is marked.
pub(crate) fn settle(links: &mut Table<Link>, late: bool, marker: &Marker<'_, impl Movement>) {
    links.retain(|link, this| {
        if this.late != late {
            return true;
        }
        // A link within a dead object goes with it.
        if !marker.is_marked(link) {
            return false;
        }
        if !marker.is_marked(this.object) {
            write(link, Addr::NULL);
            return false;
        }
        // A link that lies in a field has been changed by the trace.
        if let Some(now) = marker.moved_to(read(link)) {
            write(link, now);
        }
        this.object = marker.moved_to(this.object).unwrap_or(this.object);
        true
    });
}

/// Returns whether the link at `link` can be changed when its object, of `bytes` bytes from `object` on,
/// moves.
pub(crate) fn can_follow(link: Addr, object: Addr, bytes: usize) -> bool {
    link.is_aligned(WORD) && Span::new(object, bytes).contains(read(link))
}

/// Pins, by `pin`, objects whose links cannot follow them, and objects that have links in them.
pub(crate) fn pin(links: &Table<Link>, space: &AddressTable, mut pin: impl FnMut(Addr)) {
    links.each(|link, target| {
        pin(link);
        let bytes = space.block_of(target.object).map_or(0, |block| block.size.get());
        if !can_follow(link, target.object, bytes) {
            pin(target.object);
        }
    });
}

/// Clears the links to an object that its user frees; false if there are too many links to scan.
pub(crate) fn clear_to(links: &mut Table<Link>, object: Addr) -> bool {
    if links.len() > FEW {
        return false;
    }
    links.retain(|link, this| {
        let stays = this.object != object;
        if !stays {
            write(link, Addr::NULL);
        }
        stays
    });
    true
}
