//! The next definitions of the exported functions, each looked up in later libraries at its first use.
//!
//! The loader may allocate during a look-up (it writes a message when it finds nothing), and that request
//! must not start another look-up. The thread is marked during a look-up, and [`crate::early`] serves its
//! requests.
//!
//! A definition is *quiet* if it never calls a function that this library exports. Vellum's definitions are
//! quiet, and so are the C library's `malloc` and its family. Other definitions need a guard, so that nested
//! calls are not counted twice (libstdc++'s `operator new` calls `malloc`). A call that is only counted ends
//! with a jump to a quiet definition.

use crate::spent::spending;
use crate::thread;
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

/// The next definition of a function.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    /// The definition too, once it is found to call none of this library's functions.
    quiet: AtomicPtr<c_void>,
    /// True once that has been determined.
    settled: AtomicBool,
}

impl Next {
    /// For the function called `name`, not looked up yet.
    pub(crate) const fn of(name: &'static CStr) -> Next {
        Next {
            name,
            found: AtomicPtr::new(null_mut()),
            quiet: AtomicPtr::new(null_mut()),
            settled: AtomicBool::new(false),
        }
    }

    /// The definition; null if it is missing or this thread is in a look-up.
    #[inline(always)]
    pub(crate) fn get(&self) -> *const c_void {
        let found = self.found.load(Relaxed);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *const c_void {
        let found = look_up(libc::RTLD_NEXT, self.name);
        self.found.store(found.cast_mut(), Relaxed);
        found
    }

    /// The definition if it has been looked up and is quiet; else null.
    #[inline(always)]
    pub(crate) fn get_quiet(&self) -> *const c_void {
        self.quiet.load(Relaxed)
    }

    /// Looks the definition up, and determines whether it is quiet: Vellum's definitions are, and the C
    /// library's `malloc` and `free`.
    ///
    /// This happens once: in a failed look-up the loader allocates a message by that definition.
    #[inline(always)]
    pub(crate) fn look(&self) {
        if !self.settled.load(Relaxed) {
            self.settle();
        }
    }

    #[cold]
    fn settle(&self) {
        let found = self.get();
        if found.is_null() {
            return;
        }
        let object = object_of(found);
        let is_quiet = [c"vel_trim", c"gnu_get_libc_version"].iter().any(|name| {
            let known = Next::of(name);
            object_of(known.get()) == object
        });
        if is_quiet {
            self.quiet.store(found.cast_mut(), Relaxed);
        }
        self.settled.store(true, Relaxed);
    }
}

/// The first definition of a symbol in the whole program, or null.
pub(crate) fn first(name: &CStr) -> *const c_void {
    look_up(libc::RTLD_DEFAULT, name)
}

/// The first definition from `from` on; null if it is missing or this thread is in a look-up.
fn look_up(from: *mut c_void, name: &CStr) -> *const c_void {
    let thread = thread::this();
    if thread.resolving.replace(1) != 0 {
        return null_mut();
    }
    // The loader's own allocations during a look-up are not the program's.
    let (guard, now) = (thread.guard.get(), thread.now.get());
    thread.close(usize::MAX);
    // SAFETY: `from` is `RTLD_NEXT` or `RTLD_DEFAULT`, and `name` a C string.
    let found = spending(|| unsafe { libc::dlsym(from, name.as_ptr()) });
    thread.guard.set(guard);
    thread.now.set(now);
    thread.resolving.set(0);
    found
}

/// The load address of the object that contains `address`; null if no object does.
fn object_of(address: *const c_void) -> *const c_void {
    // SAFETY: all fields are pointers, for which zero is valid.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    if address.is_null() {
        return null_mut();
    }
    // SAFETY: `info` is a local variable that `dladdr` may write.
    spending(|| unsafe { libc::dladdr(address, &raw mut info) });
    info.dli_fbase
}

/// Calls the next definition of `$name`, whose type is `$type`; without one, gives `$otherwise`.
macro_rules! next {
    ($next:expr, $type:ty, ($($argument:expr),*), $otherwise:expr) => {{
        let found = $next.get();
        if found.is_null() {
            $otherwise
        } else {
            // SAFETY: the symbol of that name in the C library or the allocator has this signature.
            let function = unsafe { core::mem::transmute::<*const core::ffi::c_void, $type>(found) };
            // SAFETY: the program makes this call; its arguments are passed on unchanged.
            unsafe { function($($argument),*) }
        }
    }};
}
pub(crate) use next;
