//! The dynamic loader's lock (that of `dl_iterate_phdr`): held during a collection, and possibly stuck in
//! a forked child.
//!
//! Reading the loader's list of libraries takes a lock of the loader's, and so does changing it. A collection
//! holds that lock from its reading of the list to its end ([`still`]). Threads in blocking regions still
//! run: the lock keeps them from unloading a library whose data is being scanned.
//!
//! If another thread holds the lock at a fork, the child's copy is locked for ever: glibc frees its other
//! locks in a child, but not this one (up to 2.41 at least). A child tests the lock. If it is held, the child
//! never takes it: its libraries are those of the fork, and no others can come.
//!
//! ```text
//! first thread   in dl_iterate_phdr: finds the mutex of the loader that it owns now ─▶ MUTEX
//! fork           before: reads the list again, if MUTEX is free        child: MUTEX is held ─▶ STUCK
//! ```
//!
//! If no such mutex is found (another C library, another layout), a child takes the lock as usual.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The first fields of a mutex in glibc on this machine: `struct __pthread_mutex_s`.
#[repr(C)]
struct Mutex {
    lock: AtomicU32,
    count: AtomicU32,
    owner: AtomicU32,
    users: AtomicU32,
    kind: AtomicU32,
}

/// `PTHREAD_MUTEX_RECURSIVE_NP`.
const RECURSIVE: u32 = 1;
/// The most bytes that the loader's variables should have; a larger symbol is something else.
const VARIABLES_MAX: usize = 64 << 10;
/// The number of times that a fork yields to the holder of the lock.
const YIELDS_MAX: u32 = 1000;
/// `RTLD_DL_SYMENT` of `dladdr1`, which returns the symbol's entry in its table.
const SYMBOL: c_int = 1;

/// `dladdr1`. Other C libraries do not have it: a library that linked to it could not be loaded beside them.
type Dladdr1 = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *mut c_void, c_int) -> c_int;

/// The search for the mutex has begun.
static LOOKED: AtomicBool = AtomicBool::new(false);
/// The loader's mutex, once it is found.
static MUTEX: AtomicPtr<Mutex> = AtomicPtr::new(null_mut());
/// The mutex is locked for ever.
static STUCK: AtomicBool = AtomicBool::new(false);

/// Returns whether the loader's list cannot be read any more.
pub(crate) fn is_stuck() -> bool {
    STUCK.load(Ordering::Relaxed)
}

/// Calls `work` while no library comes or goes.
pub(crate) fn still<R, F: FnOnce() -> R>(work: F) -> R {
    struct Call<F, R> {
        work: Option<F>,
        result: Option<R>,
    }
    unsafe extern "C" fn call<R, F: FnOnce() -> R>(
        _: *mut libc::dl_phdr_info,
        _: usize,
        this: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes the pointer it was given, which is to a `Call` of these types.
        let this = unsafe { &mut *this.cast::<Call<F, R>>() };
        this.result = this.work.take().map(|work| work());
        1
    }
    if is_stuck() {
        return work();
    }
    let mut this = Call { work: Some(work), result: None };
    // SAFETY: the callback is given a pointer to `this`, which lives across the call. The loader's lock is
    // recursive: its holder may take it again.
    unsafe { libc::dl_iterate_phdr(Some(call::<R, F>), (&raw mut this).cast()) };
    match this {
        Call { result: Some(result), .. } => result,
        Call { work: Some(work), .. } => work(),
        Call { .. } => unreachable!("what was begun has a result"),
    }
}

/// Looks for the loader's mutex, once. The caller holds no lock of the collector's.
pub(crate) fn look_for_mutex() {
    if LOOKED.swap(true, Ordering::Relaxed) {
        return;
    }
    let Some((start, bytes)) = variables() else { return };
    let tid = crate::process::tid();
    let is_mine = |mutex: &Mutex| {
        let [count, owner, users, kind] =
            [&mutex.count, &mutex.owner, &mutex.users, &mutex.kind].map(|word| word.load(Ordering::Relaxed));
        mutex.lock.load(Ordering::Relaxed) != 0
            && count == 1
            && owner == tid
            && users == 1
            && kind == RECURSIVE
    };
    let last = bytes.saturating_sub(size_of::<Mutex>());
    let found = still(|| {
        // SAFETY: within a variable of `bytes` bytes, which other threads change by whole words.
        let mutexes = (0..=last).step_by(align_of::<u64>()).map(|at| unsafe { &*start.byte_add(at) });
        mutexes.into_iter().find(|mutex| is_mine(mutex))
    });
    // A mutex that is this thread's even now is not the list's: the thread holds it for another reason.
    if let Some(mutex) = found.filter(|mutex| !is_mine(mutex)) {
        MUTEX.store(core::ptr::from_ref(mutex).cast_mut(), Ordering::Relaxed);
    }
}

/// The address of the loader's variables, and their bytes.
fn variables() -> Option<(*const Mutex, usize)> {
    // SAFETY: a C string; any symbol may be asked for.
    let named = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let (start, dladdr1) = (named(c"_rtld_global"), named(c"dladdr1"));
    if start.is_null() || dladdr1.is_null() {
        return None;
    }
    // SAFETY: the signature of glibc's function of this name.
    let dladdr1 = unsafe { core::mem::transmute::<*mut c_void, Dladdr1>(dladdr1) };
    let mut info =
        libc::Dl_info { dli_fname: null(), dli_fbase: null_mut(), dli_sname: null(), dli_saddr: null_mut() };
    let mut symbol = null_mut();
    // SAFETY: both are written, and live.
    let known = unsafe { dladdr1(start, &raw mut info, &raw mut symbol, SYMBOL) };
    if known == 0 || symbol.is_null() || info.dli_saddr != start {
        return None;
    }
    // SAFETY: `dladdr1` has succeeded and found the symbol's entry in the loader's table, which stays mapped.
    let bytes = usize::try_from(unsafe { (*symbol.cast::<libc::Elf64_Sym>()).st_size }).ok()?;
    (bytes <= VARIABLES_MAX).then_some((start.cast_const().cast(), bytes))
}

/// The loader's mutex, if it was found.
fn mutex() -> Option<&'static Mutex> {
    // SAFETY: null, or within a variable of the loader's, which is never unloaded.
    unsafe { MUTEX.load(Ordering::Relaxed).as_ref() }
}

/// Returns whether a child may come to need the list, and the lock is free now or soon. The wait is limited:
/// the holder may itself wait for the caller.
pub(crate) fn is_free_before_fork() -> bool {
    mutex().is_some_and(|mutex| {
        (0..YIELDS_MAX).any(|_| {
            // SAFETY: `sched_yield` has no arguments and touches no memory.
            mutex.lock.load(Ordering::Relaxed) == 0 || unsafe { libc::sched_yield() } != 0
        })
    })
}

/// In a forked child, before it has further threads: whether the lock is held, and so is for ever.
pub(crate) fn look_after_fork() {
    if mutex().is_some_and(|mutex| mutex.lock.load(Ordering::Relaxed) != 0) {
        STUCK.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mutex_is_held_while_the_loader_is_still() {
        look_for_mutex();
        let Some(mutex) = mutex() else {
            vellum_skip::skip("this C library's loader has no mutex that is known here");
            return;
        };
        let owner = || mutex.owner.load(Ordering::Relaxed);
        let own = crate::process::tid();
        assert_ne!(owner(), own);
        still(|| assert_eq!(owner(), own));
        assert_eq!(still(|| still(owner)), own);
        assert_ne!(owner(), own);
    }
}
