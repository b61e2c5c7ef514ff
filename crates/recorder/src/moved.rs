//! Detects whether `realloc` moved a block by copying it or by moving its page tables.
//!
//! Vellum's page layer counts bytes moved by page tables in a counter of this process (on the board). The
//! counter is read before and after the call. The result may be wrong if another thread moves a block
//! meanwhile. Other allocators have no such counter: below [`COPIED_BELOW`] all copy, above it their methods
//! differ.

use crate::process;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use vellum_stacks::file;
use vellum_wire::operation::{Kind, Operation};
use vellum_wire::{Attach, Board, Counter, Slot};

/// Below this size every allocator copies. (Above it, glibc moves blocks with a mapping of their own, and
/// Vellum moves blocks from `MOVE_MIN` on.)
pub(crate) const COPIED_BELOW: usize = 128 << 10;

static SLOT: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
/// The generation of the process that last searched for the slot.
static LOOKED: AtomicU32 = AtomicU32::new(u32::MAX);

/// The bytes that the page layer had moved before an operation.
#[derive(Clone, Copy)]
pub(crate) struct Before(Option<u64>);

/// Must be called before an operation that may move a block of `bytes` bytes.
#[inline(always)]
pub(crate) fn before(bytes: usize) -> Before {
    if bytes < COPIED_BELOW { Before(None) } else { Before(moved_bytes()) }
}

/// The operation that moved a block of `bytes` bytes.
pub(crate) fn how(bytes: usize, before: Before) -> Operation {
    Operation::of(if bytes < COPIED_BELOW {
        Kind::ReallocCopied
    } else {
        match (before.0, moved_bytes()) {
            (Some(before), Some(now)) if now > before => Kind::ReallocMoved,
            (Some(_), Some(_)) => Kind::ReallocCopied,
            _ => Kind::ReallocElsewhere,
        }
    })
}

#[cold]
fn moved_bytes() -> Option<u64> {
    process::keeping_errno(|| {
        let generation = process::state().generation();
        if LOOKED.swap(generation, Relaxed) != generation {
            SLOT.store(find().map_or(null_mut(), |slot| core::ptr::from_ref(slot).cast_mut()), Relaxed);
        }
        // SAFETY: null, or a slot of a board that is never unmapped.
        let slot = unsafe { SLOT.load(Relaxed).as_ref() }?;
        (slot.attach() == Attach::Serving).then(|| slot.get(Counter::BytesRemapped))
    })
}

fn find() -> Option<&'static Slot> {
    let path = vellum_sys::environment::variable(c"VELLUM_BOARD")?;
    let (file, bytes) = file::open(path).ok()?;
    let base = file::map(&file, 0, bytes).ok()?;
    // SAFETY: just mapped, page-aligned, `bytes` long; never unmapped.
    let board = unsafe { Board::open(base, bytes) }?;
    board.claimed().iter().rev().find(|slot| slot.pid.load(Relaxed) == file::own_pid())
}
