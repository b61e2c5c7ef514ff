//! Decides which part of the allocator serves a request, for every function that allocates.
//!
//! ```text
//! malloc ─▶ list empty, or large ─▶ serve ─▶ Slab, Magazine, Extent, Paged    the usual mode
//!                                         └▶ Hardened, Sampled, Next          other modes
//! ```
//!
//! The names are variants of [`Way`]. `Magazine` is a large block that this thread freed, `Extent` a new one,
//! `Paged` an object of the pager. `Next` is the allocator that Vellum replaced.

use crate::class::{GRANULE, REQUEST_MAX, SMALL_MAX, aligned_class_of, bytes_of, class_of};
use crate::errno::out_of_memory;
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::mode::{self, Special};
use crate::passthrough::Next;
use crate::{harden, large, paged, threads, tls};
use vellum_pages::{ALIGN_MAX, PAGE};

#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) bytes: usize,
    /// A power of two.
    pub(crate) align: usize,
    pub(crate) zero: bool,
}

impl Request {
    /// A request for `bytes` bytes, aligned as all blocks are.
    pub(crate) const fn plain(bytes: usize) -> Request {
        Request { bytes, align: GRANULE, zero: false }
    }

    /// The size class, for a request that slabs can serve.
    #[inline(always)]
    pub(crate) fn class(&self) -> Option<usize> {
        match self.align {
            ..=GRANULE => (self.bytes <= SMALL_MAX).then(|| class_of(self.bytes.max(1))),
            ..=PAGE if self.bytes <= REQUEST_MAX => aligned_class_of(self.bytes, self.align),
            _ => None,
        }
    }
}

/// The way of a request: the part that serves it.
pub(crate) enum Way {
    /// The thread's heap, with a block of the class.
    Slab(&'static Heap, usize),
    /// The thread's magazine, with this block.
    Magazine(*mut u8),
    /// The page layer.
    Extent,
    /// The pager.
    Paged,
    /// Nobody: there are no such blocks.
    Refused,
    Hardened,
    /// The sampler, which leaves most requests to the usual way.
    Sampled(&'static Hooks),
    /// The next allocator.
    Next(&'static Next),
}

/// Decides who serves a request.
#[inline(never)]
pub(crate) fn serve(request: &Request) -> Way {
    match mode::special() {
        None | Some(Special::Deciding) => usual(request),
        Some(Special::Hardened) => Way::Hardened,
        Some(Special::Sampled(hooks)) => Way::Sampled(hooks),
        Some(Special::Passthrough(next)) => match tls::current() {
            Some(heap) if let Some(class) = request.class() => Way::Slab(heap, class),
            _ => Way::Next(next),
        },
    }
}

#[inline(always)]
fn usual(request: &Request) -> Way {
    if let Some(class) = request.class() {
        if let Some(heap) = threads::attached() {
            return Way::Slab(heap, class);
        }
    } else if request.align <= GRANULE
        && let Some(block) = large::take_from_magazine(request.bytes)
    {
        return Way::Magazine(block);
    }
    if request.bytes > REQUEST_MAX || request.align > ALIGN_MAX {
        Way::Refused
    } else if paged::serves(request.bytes) {
        Way::Paged
    } else {
        Way::Extent
    }
}

/// Allocates a block; null (and `ENOMEM`) when there is none.
#[inline(always)]
pub(crate) fn allocate(request: Request) -> *mut u8 {
    match mode::special() {
        None => supply(usual(&request), request),
        Some(Special::Passthrough(next)) if tls::current().is_none() => {
            next.allocate(request.bytes, request.align, request.zero)
        }
        Some(_) => allocate_in_any_mode(request),
    }
}

/// Allocates as [`allocate`] does, out of line.
#[cold]
#[inline(never)]
pub(crate) fn allocate_in_any_mode(request: Request) -> *mut u8 {
    match serve(&request) {
        Way::Hardened => harden::allocate(request.align, request.bytes),
        Way::Next(next) => next.allocate(request.bytes, request.align, request.zero),
        Way::Sampled(hooks) => sampled(hooks, request),
        way => supply(way, request),
    }
}

#[inline(never)]
fn sampled(hooks: &Hooks, request: Request) -> *mut u8 {
    let small = request.class().map(|class| match request.align {
        ..=GRANULE => request.bytes,
        _ => bytes_of(class),
    });
    if let Some(block) = small.and_then(hooks.allocate_small) {
        return block;
    }
    let block = supply(usual(&request), request);
    if small.is_some() { block } else { mode::sample_large(block, request.bytes) }
}

#[inline(always)]
fn supply(way: Way, request: Request) -> *mut u8 {
    let Request { bytes, align, zero } = request;
    match way {
        Way::Slab(heap, class) => match heap.allocate(class) {
            Some(block) => block,
            None if heap.gate.is_inside() => interrupting(request),
            None => out_of_memory(),
        },
        Way::Magazine(block) => {
            if zero {
                // SAFETY: the block has at least `bytes` bytes.
                unsafe { block.write_bytes(0, bytes) };
            }
            block
        }
        Way::Paged => paged::alloc(bytes, align, zero),
        Way::Extent => large::extent(bytes, align, zero),
        _ => out_of_memory(),
    }
}

/// Allocates for a signal handler that interrupted the heap's slow path.
#[cold]
#[inline(never)]
fn interrupting(request: Request) -> *mut u8 {
    let Request { bytes, align, zero } = request;
    mode::sample_large(large::extent(bytes, align, zero), bytes)
}
