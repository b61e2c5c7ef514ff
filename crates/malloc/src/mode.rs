//! Which way requests take past the fast paths: the usual one, that of the hardened mode, or that of a
//! process whose blocks are sampled.
//!
//! One word for both, so that the slow paths test no more than they would for one. It is set while the
//! process has one thread, and not changed after that. The functions that sample are reached from here, as
//! they are above all that calls them.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// What the process does with its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// See [`mod@crate::harden`].
    Hardened,
    /// See `crate::profile`.
    Profiled(&'static Hooks),
}

/// What a process does whose blocks are sampled: see `crate::profile`.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// A small block of the given size in bytes, sampled or not; `None` to take the usual way.
    pub(crate) small: fn(usize) -> Option<*mut u8>,
    /// Samples a new large block of the given size in bytes, if it is due.
    pub(crate) consider: fn(*mut u8, usize),
    /// Frees a sampled small block; false, with nothing done, if it is none. As unsafe as `free`.
    pub(crate) free_small: unsafe fn(*mut u8) -> bool,
    /// Forgets a sampled block that is freed. False if it must be freed later, which is seen to.
    pub(crate) forget: fn(*mut u8) -> bool,
    /// Forgets a sampled block that is no longer one.
    pub(crate) lose: fn(*mut u8) -> bool,
    /// Notes that a small block is to have another size, in bytes.
    pub(crate) resized_small: fn(*mut u8, usize),
    /// Around a `fork`.
    pub(crate) fork_prepare: fn(),
    /// See `fork_prepare`.
    pub(crate) fork_parent: fn(),
    /// See `fork_prepare`.
    pub(crate) fork_child: fn(),
}

fn nothing() {}

/// Stands for the hardened mode, and is never called.
static HARDENED: Hooks = Hooks {
    small: |_| None,
    consider: |_, _| {},
    free_small: |_| false,
    forget: |_| true,
    lose: |_| true,
    resized_small: |_, _| {},
    fork_prepare: nothing,
    fork_parent: nothing,
    fork_child: nothing,
};

/// Null while the mode is the usual one.
static NOW: AtomicPtr<Hooks> = AtomicPtr::new(null_mut());

/// The mode, unless it is the usual one.
#[inline(always)]
pub(crate) fn special() -> Option<Mode> {
    let now = NOW.load(Relaxed);
    if now.is_null() { None } else { Some(mode_of(now)) }
}

#[inline]
fn mode_of(now: *mut Hooks) -> Mode {
    if core::ptr::eq(now, &raw const HARDENED) {
        return Mode::Hardened;
    }
    // SAFETY: what `profile` stored, a static.
    Mode::Profiled(unsafe { &*now })
}

/// What samples blocks, if something does.
#[inline]
pub(crate) fn profiled() -> Option<&'static Hooks> {
    match special() {
        Some(Mode::Profiled(hooks)) => Some(hooks),
        _ => None,
    }
}

/// Whether the hardened mode is on.
#[inline(always)]
pub(crate) fn is_hardened() -> bool {
    core::ptr::eq(NOW.load(Relaxed), &raw const HARDENED)
}

/// Switches the hardened mode on, unless another is.
pub(crate) fn harden() {
    set(&HARDENED);
}

/// Has blocks sampled, unless the hardened mode is on.
pub(crate) fn profile(hooks: &'static Hooks) {
    set(hooks);
}

fn set(hooks: &'static Hooks) {
    let hooks = core::ptr::from_ref(hooks).cast_mut();
    let _ = NOW.compare_exchange(null_mut(), hooks, Release, Acquire);
}

/// Samples a new large block of `bytes` bytes, if samples are taken and it is due. Returns it.
#[inline]
pub(crate) fn consider(block: *mut u8, bytes: usize) -> *mut u8 {
    if !block.is_null()
        && let Some(hooks) = profiled()
    {
        (hooks.consider)(block, bytes);
    }
    block
}
