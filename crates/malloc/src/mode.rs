//! The mode of the process, which decides how requests that leave the fast paths are served.
//!
//! | mode | set by | requests are served by |
//! | --- | --- | --- |
//! | undecided | nothing: the initial mode | the first slow path decides |
//! | deciding | [`special`] | the page layer, without a heap |
//! | usual | [`special`] | slabs, extents, the pager |
//! | hardened | [`harden`], while there is one thread | `harden` |
//! | sampled | [`sample`], at any time | the sampler, or as in the usual mode if the block is not sampled |
//! | passthrough | [`special`], [`pass_through`] | the next allocator, for threads without a heap |
//!
//! One word holds the mode and, in its upper half, another process's request ([`vellum_wire::door`]), so that
//! a slow path tests one word. A process leaves the usual mode at most once.

use crate::hooks::Hooks;
use crate::passthrough::{self, Next};
use crate::state::{DOOR, MALLOC, UNDECIDED};
use core::ptr::from_ref;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vellum_pages::Pages;
use vellum_sys::{Caps, caps};
use vellum_wire::door::{HARDENED, MODE_BITS, PROFILED, USUAL};

// The other values of the word's lower half mean nothing to other processes.
const PASSTHROUGH: u16 = UNDECIDED + 1;
const DECIDING: u16 = UNDECIDED + 2;
/// The half of the word that is the mode.
const MODE: u16 = (1 << MODE_BITS) - 1;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Special {
    Deciding,
    Hardened,
    Sampled(&'static Hooks),
    Passthrough(&'static Next),
}

/// The mode, unless it is the usual one.
#[inline(always)]
pub(crate) fn special() -> Option<Special> {
    match DOOR.now.load(Relaxed) {
        USUAL => None,
        now => special_of(now),
    }
}

#[cold]
fn special_of(now: u16) -> Option<Special> {
    match now {
        // Beside a request, the mode is often the usual one.
        USUAL => None,
        // SAFETY: `pass_through` stored a pointer to a static, before it set this mode.
        PASSTHROUGH => unsafe { MALLOC.next.load(Acquire).as_ref() }.map(Special::Passthrough),
        HARDENED => Some(Special::Hardened),
        PROFILED => hooks().map(Special::Sampled),
        DECIDING => Some(Special::Deciding),
        UNDECIDED => decide(),
        _ => {
            wake_for_request();
            special_of(now & MODE)
        }
    }
}

/// Chooses between this allocator and the next one. Requests of `dlsym` and of other threads in that time get
/// memory of the page layer.
#[inline(never)]
fn decide() -> Option<Special> {
    if change(UNDECIDED, DECIDING) {
        if let Some(next) = passthrough::choose() {
            MALLOC.found.lock().write(next);
            // SAFETY: only the thread that left `UNDECIDED` writes the value, once, and it has just done so.
            pass_through(unsafe { MALLOC.found.assume_held().assume_init_ref() });
        }
        change(DECIDING, USUAL);
    }
    special()
}

/// Changes the mode if it is `from`; whether it was.
fn change(from: u16, to: u16) -> bool {
    let changed = |now: u16| (now & MODE == from).then_some(now & !MODE | to);
    DOOR.now.fetch_update(Release, Relaxed, changed).is_ok()
}

/// Forwards every further request of threads that have no heap to `next`.
pub(crate) fn pass_through(next: &'static Next) {
    MALLOC.next.store(from_ref(next).cast_mut(), Release);
    let _ = DOOR.now.fetch_update(Release, Relaxed, |now| Some(now & !MODE | PASSTHROUGH));
}

/// True if Vellum passes requests through.
pub fn is_passthrough() -> bool {
    next().is_some()
}

pub(crate) fn next() -> Option<&'static Next> {
    match special() {
        Some(Special::Passthrough(next)) => Some(next),
        _ => None,
    }
}

/// True if a thread may get a heap: not while it might have to give it up in a moment.
pub(crate) fn gives_heaps() -> bool {
    !matches!(special(), Some(Special::Passthrough(_) | Special::Deciding))
}

/// Switches the hardened mode on, if the mode is the usual one.
pub(crate) fn harden() {
    let _ = special();
    change(USUAL, HARDENED);
}

/// Calls the sampler on the slow paths from now on, for good. False in another mode than the usual one.
pub fn sample() -> bool {
    let _ = special();
    change(USUAL, PROFILED) || is_sampled()
}

#[inline(always)]
pub(crate) fn is_hardened() -> bool {
    DOOR.now.load(Relaxed) & MODE == HARDENED
}

/// True if the mode is not the usual one, or there is a request.
#[inline(always)]
pub(crate) fn is_special() -> bool {
    DOOR.now.load(Relaxed) != USUAL
}

#[inline(always)]
/// True if blocks are sampled, or have been.
pub fn is_sampled() -> bool {
    DOOR.now.load(Relaxed) & MODE == PROFILED
}

/// The sampler, if blocks are sampled. Decides nothing.
#[inline]
pub(crate) fn sampler() -> Option<&'static Hooks> {
    match DOOR.now.load(Relaxed) {
        USUAL | PASSTHROUGH | UNDECIDED | DECIDING | HARDENED => None,
        now => sampler_of(now),
    }
}

#[cold]
fn sampler_of(now: u16) -> Option<&'static Hooks> {
    if now & !MODE != 0 {
        wake_for_request();
    }
    if now & MODE == PROFILED { hooks() } else { None }
}

fn hooks() -> Option<&'static Hooks> {
    // SAFETY: null, or the static that `sampling::install` stored.
    unsafe { MALLOC.hooks.load(Acquire).as_ref() }
}

/// Samples a new large block of `bytes` bytes, if blocks are sampled and a sample is due. Returns the block.
#[inline]
pub(crate) fn sample_large(block: *mut u8, bytes: usize) -> *mut u8 {
    if !block.is_null()
        && let Some(hooks) = sampler()
    {
        (hooks.allocated_large)(block, bytes);
    }
    block
}

/// Wakes the helper if there is a request, as a slow path may be in any state. A process that filters its
/// system calls has no helper.
#[inline(never)]
fn wake_for_request() {
    if caps::has(Caps::HELPER) {
        Pages::global().wake_helper();
    } else if DOOR.asked().is_some() {
        DOOR.answer(libc::EPERM as u32);
    }
}

/// Carries out another process's request, if there is one. The helper calls this under the lock of its round:
/// no fork is under way.
pub(crate) fn serve_request() {
    if let Some(request) = DOOR.asked() {
        DOOR.answer(hooks().map_or(libc::ENOSYS as u32, |hooks| (hooks.serve_request)(request)));
    }
}

/// After `fork`, in the child: the thread that was deciding does not exist here.
pub(crate) fn fork_child() {
    change(DECIDING, USUAL);
}
