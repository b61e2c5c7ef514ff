//! Which way requests take past the fast paths: the usual one, that of the hardened mode, or that of a
//! process whose blocks are sampled.
//!
//! One word for both, so that the slow paths test no more than they would for one; its upper half is what
//! another process asks of this one ([`vellum_wire::door`]). A process is hardened while it has one thread.
//! Sampling can start at any time, as only later requests depend on the mode. The mode stays: the sampler may
//! take no more samples, and still tracks those in use.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use vellum_pages::Pages;
use vellum_sys::{Caps, caps};
use vellum_wire::door::{Ask, HARDENED, HeapDoor, MODE_BITS, PROFILED, USUAL};

/// What the process does with its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// See [`mod@crate::harden`].
    Hardened,
    /// See [`crate::sampling`].
    Profiled(&'static Hooks),
}

/// The functions of a sampler.
#[derive(Debug)]
pub struct Hooks {
    /// Returns a small block of at least the given size, sampled or not; `None` to allocate it unsampled.
    pub allocate_small: fn(usize) -> Option<*mut u8>,
    /// Samples a new large block of the given size in bytes, if a sample is due.
    pub allocated_large: fn(*mut u8, usize),
    /// Frees a sampled small block; false, with nothing done, if the block is not sampled. As unsafe as
    /// `free`.
    pub free_small: unsafe fn(*mut u8) -> bool,
    /// Drops the record of a sampled large block that is freed. False if the sampler frees the block later.
    pub freed_large: fn(*mut u8) -> bool,
    /// Drops the record of a large block that stays in use.
    pub drop_record: fn(*mut u8),
    /// Records a new size of a small block that stays in its place: the address of its heap, the block, and
    /// the bytes that it has and those that were requested.
    pub resized_small: fn(usize, *mut u8, [usize; 2]),
    /// Samples a new mapping of the program at the given address and of the given size, if a sample is due.
    pub mapped: fn(usize, usize),
    /// Takes unmapped pages, from an address to another, out of the sampled mappings.
    pub unmapped: fn(usize, usize),
    /// Records that a mapping moved from an address to another, and its old and new size.
    pub remapped: fn(usize, usize, [usize; 2]),
    /// Before `fork`.
    pub fork_prepare: fn(),
    /// After `fork`, in the parent.
    pub fork_parent: fn(),
    /// After `fork`, in the child.
    pub fork_child: fn(),
    /// Carries out another process's request. The error's number, or 0.
    pub serve_request: fn(Ask) -> u32,
}

/// The mode, and what is asked.
pub static DOOR: HeapDoor = HeapDoor::new();
/// What can sample; null until the process can be asked to.
static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(null_mut());
/// See [`epoch`].
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// The half of the word that is the mode.
const MODE: u16 = (1 << MODE_BITS) - 1;

/// The mode, unless it is the usual one.
#[inline(always)]
pub(crate) fn special() -> Option<Mode> {
    let now = DOOR.now.load(Relaxed);
    if now == USUAL { None } else { mode_of(now) }
}

#[cold]
fn mode_of(now: u16) -> Option<Mode> {
    if now & !MODE != 0 {
        have_attended();
    }
    match now & MODE {
        HARDENED => Some(Mode::Hardened),
        // SAFETY: null, or what `install` stored, a static.
        PROFILED => unsafe { HOOKS.load(Acquire).as_ref() }.map(Mode::Profiled),
        _ => None,
    }
}

/// Something is asked: the helper does it, as a slow path may be in any state. A process that filters its
/// system calls has none.
fn have_attended() {
    if caps::has(Caps::HELPER) {
        Pages::global().wake_helper();
    } else if DOOR.asked().is_some() {
        DOOR.answer(libc::EPERM as u32);
    }
}

/// Does what another process asks, if something is asked. Called by the helper, under the lock of its round:
/// no fork is under way.
pub(crate) fn attend() {
    let Some(asked) = DOOR.asked() else { return };
    // SAFETY: as above.
    let hooks = unsafe { HOOKS.load(Acquire).as_ref() };
    DOOR.answer(hooks.map_or(libc::ENOSYS as u32, |hooks| (hooks.serve_request)(asked)));
}

/// What samples blocks, if something does.
#[inline]
pub(crate) fn profiled() -> Option<&'static Hooks> {
    match special() {
        Some(Mode::Profiled(hooks)) => Some(hooks),
        _ => None,
    }
}

#[inline(always)]
pub(crate) fn is_hardened() -> bool {
    DOOR.now.load(Relaxed) & MODE == HARDENED
}

/// Switches the hardened mode on, unless another is.
pub(crate) fn harden() {
    set(HARDENED);
}

/// Whether the mode is not the usual one, or something is asked.
#[inline(always)]
pub(crate) fn is_special() -> bool {
    DOOR.now.load(Relaxed) != USUAL
}

/// Whether blocks are sampled, or have been.
#[inline(always)]
pub(crate) fn is_profiled() -> bool {
    DOOR.now.load(Relaxed) & MODE == PROFILED
}

/// How often sampling began or ended: what a heap has drawn holds for one of these times.
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Acquire)
}

/// Sampling begins or ends.
pub(crate) fn next_epoch() {
    EPOCH.fetch_add(1, Release);
}

/// Makes the sampler known.
pub(crate) fn install(hooks: &'static Hooks) {
    HOOKS.store(core::ptr::from_ref(hooks).cast_mut(), Release);
}

/// Has blocks sampled. False in the hardened mode.
pub(crate) fn profile() -> bool {
    set(PROFILED) == PROFILED
}

/// Sets the mode, unless one is; what it is now.
fn set(mode: u16) -> u16 {
    let usual = |now: u16| (now & MODE == USUAL).then_some(now | mode);
    match DOOR.now.fetch_update(Release, Relaxed, usual) {
        Ok(_) => mode,
        Err(now) => now & MODE,
    }
}

/// Samples a new large block of `bytes` bytes, if samples are taken and it is due. Returns it.
#[inline]
pub(crate) fn consider(block: *mut u8, bytes: usize) -> *mut u8 {
    if !block.is_null()
        && let Some(hooks) = profiled()
    {
        (hooks.allocated_large)(block, bytes);
    }
    block
}
