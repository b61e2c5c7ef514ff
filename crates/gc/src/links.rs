//! Links: pointers that become null when their object dies (BDW's disappearing links).
//!
//! A link is known by its own address. It lies where the collector does not look, or it would keep its object itself.
//!
//! What a link leads to may move: the link is changed then, if it holds the object's address when a collection begins. If it holds anything
//! else (some programs hide such pointers by turning their bits around), the object stays where it is. An object that has a link
//! *in* it stays, too, as the link is known by its address.
//!
//! # Invariants
//! * A link that is not null leads to an object that is alive, or to one whose death no collection has seen yet.
//! * A link within a dead object is forgotten and not written: the memory is somebody else's soon.

use crate::class::WORD;
use crate::frames::{hand_over_found, holding};
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::object::{Refused, address, find, look, look_with_room};
use crate::space::Space;
use crate::table::Table;
use vellum_pages::Plain;

/// A pointer, known by its own address, that becomes null when its object dies.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The first byte of its object.
    pub object: Address,
    /// It stays until the object's finalizer has run and the object is dead once more.
    pub late: bool,
}

// SAFETY: a number and a flag.
unsafe impl Plain for Link {}

/// Links there may be for a large object's free to look through them; beyond, the object waits for the next collection.
const FEW: usize = 1024;

fn read(link: Address) -> usize {
    // SAFETY: whoever made the link vouches that it may be read and written until its object dies or it is undone.
    unsafe { core::ptr::with_exposed_provenance::<usize>(link).read_volatile() }
}

fn write(link: Address, value: usize) {
    // SAFETY: as in `read`.
    unsafe { core::ptr::with_exposed_provenance_mut::<usize>(link).write_volatile(value) };
}

/// Clears links to the dead, those that are `late` or those that are not, and has the others follow their objects. All that the trace is
/// to mark before that is marked.
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
            write(link, 0);
            return false;
        }
        // One that lies where a field does has been changed by the trace.
        if let Some(now) = marker.moved_to(read(link)) {
            write(link, now);
        }
        this.object = marker.moved_to(this.object).unwrap_or(this.object);
        true
    });
}

/// Whether the link at `link`, whose object has `bytes` bytes from `object` on, can follow it when that moves.
fn can_follow(link: Address, object: Address, bytes: usize) -> bool {
    link.is_multiple_of(WORD) && (object..object + bytes).contains(&read(link))
}

/// Pins what links cannot follow, and objects that have links in them, by `pin`.
pub(crate) fn pin(links: &Table<Link>, space: &Space, mut pin: impl FnMut(Address)) {
    links.each(|link, target| {
        pin(link);
        let bytes = space.block_of(target.object).map_or(0, |block| block.size.get());
        if !can_follow(link, target.object, bytes) {
            pin(target.object);
        }
    });
}

impl Heap {
    /// Clears the links to an object that its user frees; false if there are too many links to look through.
    pub(crate) fn clear_links_to(&mut self, object: Address) -> bool {
        if self.links.len() > FEW {
            return false;
        }
        self.links.retain(|link, this| {
            let stays = this.object != object;
            if !stays {
                write(link, 0);
            }
            stays
        });
        true
    }
}

/// Has the pointer at `link` become null when the object that holds the byte at `pointer` dies; in place of what was said of that
/// link before.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The link may be read and written until the object dies or the link is undone.
pub unsafe fn link(link: *mut *mut u8, pointer: *const u8, late: bool) -> Result<(), Refused> {
    let (link, inside) = (address(link.cast()), address(pointer));
    let work = |heap: &mut Heap| {
        let (block, index) = find(heap, inside).ok_or(Refused::NoObject)?;
        let object = block.address(index);
        let keys = heap.links.len();
        heap.links.insert(link, Link { object, late }).map_err(|_| Refused::OutOfMemory)?;
        heap.count_entries::<Link>(keys, heap.links.len());
        Ok(())
    };
    holding(&[link, inside], || look_with_room(|heap| heap.links.bytes_to_grow(), work))
}

/// Undoes [`link`](fn@link): the object it was to follow, or null if there was no such link, or no more.
pub fn unlink(link: *mut *mut u8) -> *mut u8 {
    let link = address(link.cast());
    let work = |heap: &mut Heap| hand_over_found(heap.links.remove(link).map(|link| link.object));
    let object = holding(&[link], || look(work)).flatten();
    object.map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
}

/// Has what was said of the link at `from` be said of `to`, and of `from` no more: the pointer itself was or will be copied by the
/// caller. False, and nothing has changed, if `from` is no link.
///
/// # Errors
/// [`Refused::OutOfMemory`]; nothing has changed then.
///
/// # Safety
/// As for [`link`](fn@link), of `to`.
pub unsafe fn move_link(from: *mut *mut u8, to: *mut *mut u8) -> Result<bool, Refused> {
    let (from, to) = (address(from.cast()), address(to.cast()));
    let work = |heap: &mut Heap| {
        let Some(this) = heap.links.get(from) else { return Ok(false) };
        heap.links.insert(to, this).map_err(|_| Refused::OutOfMemory)?;
        if from != to {
            heap.links.remove(from);
        }
        Ok(true)
    };
    holding(&[from, to], || look_with_room(|heap| heap.links.bytes_to_grow(), work))
}
