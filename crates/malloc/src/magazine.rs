//! Magazines: the large blocks that a thread freed last, kept for its next requests.
//!
//! A freed block of up to [`KEPT_PAGES_MAX`] pages first waits in its thread's magazine. The next request of
//! exactly that many pages gets it without a lock. A waiting block has a seal (a check word) like a free
//! small block ([`crate::seal`]): if the seal was overwritten, the process ends when the block is taken.

use crate::lengths::length_of;
use crate::misuse;
use crate::slab::Block;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::Relaxed;
use vellum_pages::{PAGE, Pages};
use vellum_sys::Addr;

/// The longest block that waits in a magazine.
pub(crate) const KEPT_PAGES_MAX: usize = (256 << 10) / PAGE;
const MAGAZINE_PAGES_MAX: usize = (512 << 10) / PAGE;
const MAGAZINE_SLOTS: usize = 16;

/// A thread's few freed extents. A slot is an address with the number of pages in its low bits, or 0.
#[derive(Debug)]
pub(crate) struct Magazine {
    slots: [Cell<usize>; MAGAZINE_SLOTS],
    pages: Cell<usize>,
    /// The slot to be emptied next when room is needed.
    oldest: Cell<usize>,
}

const PAGES_MASK: usize = PAGE - 1;
const _: () = assert!(KEPT_PAGES_MAX <= PAGES_MASK && MAGAZINE_SLOTS.is_power_of_two());

impl Magazine {
    pub(crate) fn bytes(&self) -> usize {
        self.pages.get() * PAGE
    }

    /// A kept extent of exactly `pages` pages.
    pub(crate) fn take(&self, pages: usize) -> Option<Addr> {
        let slot = self.slots.iter().find(|slot| slot.get() & PAGES_MASK == pages)?;
        self.pages.set(self.pages.get() - pages);
        let address = Addr::new(slot.replace(0) - pages);
        open(address);
        Some(address)
    }

    /// Adds an extent, sealed as a free small block is. The page layer gets older ones, to make room.
    pub(crate) fn insert(&self, address: Addr, pages: usize) {
        let mut free = self.slots.iter().find(|slot| slot.get() == 0);
        while free.is_none() || self.pages.get() + pages > MAGAZINE_PAGES_MAX {
            let oldest = self.oldest.get();
            self.oldest.set((oldest + 1) % MAGAZINE_SLOTS);
            if self.drop_slot(&self.slots[oldest]) {
                free = Some(&self.slots[oldest]);
            }
        }
        if let Some(slot) = free {
            // SAFETY: the program has given the extent up.
            unsafe { sealed_at(address).link(null_mut()) };
            slot.set(address.get() | pages);
            self.pages.set(self.pages.get() + pages);
        }
    }

    fn drop_slot(&self, slot: &Cell<usize>) -> bool {
        let kept = slot.replace(0);
        if kept == 0 {
            return false;
        }
        self.pages.set(self.pages.get() - (kept & PAGES_MASK));
        let address = Addr::new(kept & !PAGES_MASK);
        open(address);
        let address: *mut u8 = address.ptr();
        if let Some(length) = length_of(address) {
            length.store(0, Relaxed);
        }
        // SAFETY: the block was freed by the program and has been nobody's since.
        unsafe { give_back("free", address) };
        true
    }

    /// Gives everything kept back to the page layer. Inside the heap's gate.
    pub(crate) fn flush(&self) {
        if self.pages.get() > 0 {
            self.slots.iter().for_each(|slot| {
                self.drop_slot(slot);
            });
        }
    }
}

/// The first words of an extent. Safety: the extent is in a magazine, or about to be.
unsafe fn sealed_at(address: Addr) -> &'static Block {
    // SAFETY: an extent is at least a page, and page-aligned.
    unsafe { &*address.ptr() }
}

/// Breaks the seal of an extent that leaves a magazine, or ends the process if it was written over.
fn open(address: Addr) {
    // SAFETY: the extent was in the magazine until now.
    let first = unsafe { sealed_at(address) };
    if !first.is_sealed() {
        misuse::refuse_written("free", core::ptr::from_ref(first).cast());
    }
    first.unseal();
}

/// Gives a large block back to the page layer, or ends the process if it is none. Safety: the caller gives
/// the block up.
pub(crate) unsafe fn give_back(function: &str, address: *mut u8) {
    // SAFETY: the caller has given the block up; that it is one, the page layer checks.
    let freed = NonNull::new(address).map(|start| unsafe { Pages::global().free(start) });
    if let Some(Err(misuse)) = freed {
        misuse::refuse(function, address, misuse);
    }
}
