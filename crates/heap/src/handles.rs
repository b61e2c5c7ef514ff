//! Handle lists: each scope records its handles in *chunks* (arrays), which the collector scans as roots.
//!
//! Each thread has a stock of empty chunks, cut from *slabs* (larger blocks) that are roots as long as the
//! thread lives. A scope takes chunks from the stock. At its end the scope clears and returns them, so that
//! they keep nothing alive. Scopes share no chunks, so an outer scope can be used while an inner one is open.
//!
//! # Invariants
//! * Unused entries are null, in the chunks of the stock and of scopes.
//! * When a thread ends, its slabs are first removed from the roots and then freed.

use std::cell::{Cell, RefCell};
use std::ptr::{NonNull, null, null_mut};
use vellum_gc as gc;

/// Handles in a chunk. With the pointer to the next chunk they take 512 bytes.
pub(crate) const HANDLES: usize = 63;
/// Chunks in a slab of 16 KiB.
const CHUNKS: usize = 32;

/// A piece of a list. The collector ignores the pointer to the next chunk, which is no object's address.
#[repr(C)]
pub(crate) struct Chunk {
    pub slots: [Cell<*const ()>; HANDLES],
    pub next: Cell<*const Chunk>,
}

const _: () = assert!(size_of::<Chunk>() == 512);

type Slab = [Chunk; CHUNKS];

/// A thread's unused chunks.
struct Stock {
    free: Cell<*const Chunk>,
    slabs: RefCell<Vec<NonNull<Slab>>>,
}

thread_local! {
    static STOCK: Stock = const { Stock { free: Cell::new(null()), slabs: RefCell::new(Vec::new()) } };
}

/// An empty chunk.
///
/// # Panics
/// If there is no memory for chunks, or the thread is ending.
pub(crate) fn take() -> NonNull<Chunk> {
    STOCK.with(|stock| {
        if stock.free.get().is_null() {
            stock.fill();
        }
        let chunk = NonNull::new(stock.free.get().cast_mut()).expect("the stock was filled");
        // SAFETY: the stock holds chunks of the thread's slabs, which are freed only when the stock is
        // dropped.
        stock.free.set(unsafe { chunk.as_ref() }.next.replace(null()));
        chunk
    })
}

/// Returns a list to the stock and clears its handles. The first chunk has `used` handles; the others are
/// full.
pub(crate) fn put(mut chunk: NonNull<Chunk>, mut used: usize) {
    loop {
        // SAFETY: the caller took the chunk and has not returned it, so its slab still exists.
        let this = unsafe { chunk.as_ref() };
        this.slots[..used].iter().for_each(|slot| slot.set(null()));
        used = HANDLES;
        let next = NonNull::new(this.next.get().cast_mut());
        // If the stock is gone, the thread is ending, and the chunk's slab ends with it.
        let _ = STOCK.try_with(|stock| this.next.set(stock.free.replace(chunk.as_ptr())));
        match next {
            Some(next) => chunk = next,
            None => return,
        }
    }
}

impl Stock {
    #[cold]
    fn fill(&self) {
        let empty = || Chunk { slots: [const { Cell::new(null()) }; HANDLES], next: Cell::new(null()) };
        let slab = NonNull::from(Box::leak(Box::new(std::array::from_fn::<_, CHUNKS, _>(|_| empty()))));
        let start = slab.as_ptr().cast::<u8>();
        // SAFETY: the slab stays readable until `drop` frees it, after removing the roots.
        let added = unsafe { gc::add_thread_roots(start, start.add(size_of::<Slab>())) };
        added.expect("memory for a thread's list of handles");
        // SAFETY: the slab was leaked just now, and this thread holds the only reference.
        for chunk in unsafe { slab.as_ref() } {
            chunk.next.set(self.free.replace(chunk));
        }
        self.slabs.borrow_mut().push(slab);
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        for slab in self.slabs.get_mut().drain(..) {
            let start = slab.as_ptr().cast::<u8>();
            gc::remove_roots(start, start.wrapping_add(size_of::<Slab>()));
            // SAFETY: `fill` leaked the slab from a box. No scope is open, because scopes end before
            // thread-locals.
            drop(unsafe { Box::from_raw(slab.as_ptr()) });
        }
        self.free.set(null_mut());
    }
}
