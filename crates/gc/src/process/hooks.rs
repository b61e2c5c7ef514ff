//! Hooks: functions of the program that the collector calls. The program may change each at any time.
//!
//! # Invariants
//! * The hooks for roots and for libraries run with the world stopped, or with the loader's list locked. They
//!   take no lock and allocate nothing.
//! * The hooks for events, for the beginning of a collection, and for the decision whether to collect run
//!   with the heap's lock held.

use crate::process::visitor::Visitor;
use core::ffi::{c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A place for one of the program's functions, or none.
pub(crate) struct Hook<F>(AtomicPtr<c_void>, PhantomData<F>);

// SAFETY: a pointer to code, read and written atomically.
unsafe impl<F> Sync for Hook<F> {}

impl<F: Copy> Hook<F> {
    pub(crate) const fn none() -> Hook<F> {
        const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>(), "a pointer to a function") };
        Hook(AtomicPtr::new(null_mut()), PhantomData)
    }

    /// Stores `hook`; returns the previous one.
    pub(crate) fn set(&self, hook: Option<F>) -> Option<F> {
        // SAFETY: an option of a pointer to a function has the bits of a pointer, null for none: see `none`.
        let hook = unsafe { core::mem::transmute_copy::<Option<F>, *mut c_void>(&hook) };
        Self::from(self.0.swap(hook, Ordering::AcqRel))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        Self::from(self.0.load(Ordering::Acquire))
    }

    #[inline]
    fn from(pointer: *mut c_void) -> Option<F> {
        // SAFETY: only `set` writes it, from such an option.
        unsafe { core::mem::transmute_copy::<*mut c_void, Option<F>>(&pointer) }
    }
}

/// `vel_gc_roots_fn` of the header.
pub type RootsFn = unsafe extern "C" fn(visitor: *const Visitor);
/// `vel_gc_told_fn` of the header.
pub type ToldFn = unsafe extern "C" fn();
/// `vel_gc_event_fn` of the header: an event, and the heap's bytes, a thread's number or an object.
pub type EventFn = unsafe extern "C" fn(event: c_int, value: usize);
/// `vel_gc_need_fn` of the header: whether an allocation may collect.
pub type NeedFn = unsafe extern "C" fn() -> c_int;
/// The function that is called after a pause: `vel_gc_pause_fn` of the header.
pub type PauseFn = unsafe extern "C" fn(kind: i32, start_ns: u64, end_ns: u64);
/// The function that is called when there is no memory: `vel_gc_full_fn` of the header.
pub type FullFn = unsafe extern "C" fn(bytes: usize) -> *mut c_void;
/// `vel_gc_image_fn` of the header: whether a writable segment of a library is scanned.
pub type ImageFn = unsafe extern "C" fn(library: *const c_char, start: *const c_void, bytes: usize) -> c_int;

/// Names roots.
pub(crate) static ROOTS: Hook<RootsFn> = Hook::none();
pub(crate) static IMAGE: Hook<ImageFn> = Hook::none();
static BEGIN: Hook<ToldFn> = Hook::none();
static DUE: Hook<ToldFn> = Hook::none();
pub(crate) static WATCHER: Hook<EventFn> = Hook::none();
pub(crate) static NEED: Hook<NeedFn> = Hook::none();
pub(crate) static PAUSE: Hook<PauseFn> = Hook::none();
static FULL: Hook<FullFn> = Hook::none();

/// Sets the function that names further roots at each collection; returns the previous one.
pub fn on_roots(hook: Option<RootsFn>) -> Option<RootsFn> {
    ROOTS.set(hook)
}

/// Sets the function that is called when a collection begins, with the world going on and the heap's lock
/// held; returns the previous one.
pub fn on_begin(hook: Option<ToldFn>) -> Option<ToldFn> {
    BEGIN.set(hook)
}

/// Sets the function that is called after a collection that has made finalizers due, if they run on demand
/// only; returns the previous one.
pub fn on_due(hook: Option<ToldFn>) -> Option<ToldFn> {
    DUE.set(hook)
}

/// Sets the function that is called at each event; returns the previous one.
pub fn on_event(hook: Option<EventFn>) -> Option<EventFn> {
    WATCHER.set(hook)
}

/// Sets the function that decides whether an allocation may collect; returns the previous one.
pub fn on_need(hook: Option<NeedFn>) -> Option<NeedFn> {
    NEED.set(hook)
}

/// Sets the function that is called after each pause; returns the previous one.
pub fn on_pause(hook: Option<PauseFn>) -> Option<PauseFn> {
    PAUSE.set(hook)
}

/// Sets the function that is called when there is no memory; returns the previous one.
pub fn on_full(hook: Option<FullFn>) -> Option<FullFn> {
    FULL.set(hook)
}

/// A collection begins.
pub(crate) fn tell_begin() {
    if let Some(hook) = BEGIN.get() {
        // SAFETY: the program vouched when it set the hook that it may be called with the heap's lock held.
        unsafe { hook() };
    }
}

/// Finalizers are due.
pub(crate) fn tell_due() {
    if let Some(hook) = DUE.get() {
        // SAFETY: the program vouched when it set the hook that it may be called after a collection.
        unsafe { hook() };
    }
}

/// There is no memory for an object of `bytes` bytes: the program may have another one.
#[cold]
pub(crate) fn full(bytes: usize) -> *mut u8 {
    // SAFETY: the program vouched that it may be called when it set the hook.
    FULL.get().map_or(null_mut(), |hook| unsafe { hook(bytes).cast() })
}
