//! Settings and queries other than the exported variables ([`variables`]).
//!
//! Most of libgc's settings tune its own collection algorithm. Here they are stored and returned and have no
//! effect: see `docs/libgc.md`.

use crate::abort::give_up;
use crate::forms::{nothing, values};
use crate::state::{INCREMENTAL, MARKERS, is_started};
use crate::variables::{self, GC_oom_fn, GC_parallel, OomFunction};
use crate::{say, start, vel};
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The interface's version: 8.2.12.
const VERSION: c_uint = 8 << 16 | 2 << 8 | 12;

/// The result of the program's procedure for a failed allocation of `bytes` bytes.
#[cold]
pub(crate) fn out_of_memory(bytes: usize) -> *mut c_void {
    // SAFETY: gc.h gives the variable this type, so it holds null or such a function.
    unsafe { variables::function::<OomFunction>(&GC_oom_fn).map_or(null_mut(), |function| function(bytes)) }
}

/// Ends the process after it has run out of memory.
#[unsafe(no_mangle)]
pub extern "C" fn GC_abort_on_oom() {
    give_up(c"libgc: out of memory")
}

values! {
    /// The interface's version.
    GC_get_version: c_uint = VERSION;
    /// Returns 1 if collections are incremental.
    GC_is_incremental_mode: c_int = INCREMENTAL.load(Relaxed);
    /// Returns 0: pages are not protected from system calls.
    GC_incremental_protection_needs: c_int = 0;
    /// Returns null: such procedures are unsupported.
    GC_get_on_mark_stack_empty: Option<Unused> = None;
    /// Returns all ones.
    GC_get_pointer_mask: usize = usize::MAX;
    /// Returns 0.
    GC_get_pointer_shift: c_uint = 0;
    /// Returns 0: a pointer just past an object keeps it while interior pointers do.
    GC_get_dont_add_byte_at_end: c_int = 0;
    /// The supported ways.
    GC_get_supported_vdbs: c_uint = BY_PROTECTION | BY_KERNEL;
    /// The way in use; 0 if collections are not incremental.
    GC_get_actual_vdb: c_uint = match INCREMENTAL.load(Relaxed) {
        0 => 0,
        _ if vel::stats().protected != 0 => BY_PROTECTION,
        _ => BY_KERNEL,
    };
    /// The stored limit.
    GC_get_time_limit_tv: TimeLimit =
        TimeLimit { tv_ms: variables::GC_get_time_limit(), tv_nsec: LIMIT_NS.load(Relaxed) as c_ulong };
    /// Returns 0: objects are never executable.
    GC_get_pages_executable: c_int = 0;
    /// Returns 0: the collector chooses the number of marking threads.
    GC_get_parallel: c_int = GC_parallel.load(Relaxed);
}

/// Makes collections incremental, if called before the heap starts.
#[unsafe(no_mangle)]
pub extern "C" fn GC_enable_incremental() {
    if is_started() {
        if INCREMENTAL.load(Relaxed) == 0 {
            say::warn(
                c"libgc: GC_enable_incremental: too late, the heap has started; collections are made at one go\n",
                0,
            );
        }
    } else {
        INCREMENTAL.store(1, Relaxed);
    }
    start::ensure();
}

/// Settings that are stored and have no effect.
macro_rules! kept {
    ($($type:ty, $cell:ident: $atomic:ident = $default:expr, $set:ident, $get:ident;)*) => { $(
        static $cell: $atomic = $atomic::new($default);
        /// Stored; has no effect.
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(value: $type) {
            $cell.store(value as _, Relaxed);
        }
        /// The stored value.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get() -> $type {
            $cell.load(Relaxed) as $type
        }
    )* };
}

kept! {
    c_int, RATE: AtomicI32 = 10, GC_set_rate, GC_get_rate;
    c_int, ATTEMPTS: AtomicI32 = 1, GC_set_max_prior_attempts, GC_get_max_prior_attempts;
    c_int, HANDLE_FORK: AtomicI32 = 1, GC_set_handle_fork, GC_get_handle_fork;
    c_int, UNMAP: AtomicI32 = 1, GC_set_force_unmap_on_gcollect, GC_get_force_unmap_on_gcollect;
    usize, MIN_BYTES: AtomicUsize = 0, GC_set_min_bytes_allocd, GC_get_min_bytes_allocd;
    usize, BYTES_PER_FINALIZER: AtomicUsize = 0, GC_set_allocd_bytes_per_finalizer, GC_get_allocd_bytes_per_finalizer;
    c_int, MANUAL: AtomicI32 = 0, GC_set_manual_vdb_allowed, GC_get_manual_vdb_allowed;
    c_int, PROTECTS: AtomicI32 = 1, GC_set_mprotect_vdb_allowed, GC_get_mprotect_vdb_allowed;
    c_uint, INTERRUPT: AtomicU32 = 0, GC_set_interrupt_finalizers, GC_get_interrupt_finalizers;
}

/// `GC_sp_corrector_proc`, `GC_on_os_get_mem_proc` and `GC_on_mark_stack_empty_proc`, which are never called.
pub type Unused = unsafe extern "C" fn();

static SP_CORRECTOR: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ON_OS_GET_MEM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

variables::procedures! {
    Unused, SP_CORRECTOR: GC_set_sp_corrector, GC_get_sp_corrector;
    Unused, ON_OS_GET_MEM: GC_set_on_os_get_mem, GC_get_on_os_get_mem;
}

/// Unsupported: a procedure that marks more objects after marking. Without its call, objects would be lost.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_on_mark_stack_empty(procedure: Option<Unused>) {
    if procedure.is_some() {
        give_up(c"libgc: GC_set_on_mark_stack_empty: such procedures are not served");
    }
}

/// Unsupported, as in most builds of libgc: pointers are used unmasked.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_pointer_mask(mask: usize) {
    if mask != usize::MAX {
        give_up(c"libgc: GC_set_pointer_mask: pointers are read as they are");
    }
}

/// Unsupported: see [`GC_set_pointer_mask`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_pointer_shift(shift: c_uint) {
    if shift != 0 {
        give_up(c"libgc: GC_set_pointer_shift: pointers are read as they are");
    }
}

/// Ways to detect writes: page protection, and the kernel's record of written pages (`GC_VDB_MPROTECT`,
/// `GC_VDB_UFFDWP`).
const BY_PROTECTION: c_uint = 1;
const BY_KERNEL: c_uint = 0x80;

/// `struct GC_timeval_s`: milliseconds, and nanoseconds beyond them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TimeLimit {
    /// Milliseconds.
    pub tv_ms: c_ulong,
    /// Nanoseconds.
    pub tv_nsec: c_ulong,
}

static LIMIT_NS: AtomicUsize = AtomicUsize::new(0);

/// Stored; has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_time_limit_tv(limit: TimeLimit) {
    variables::GC_set_time_limit(limit.tv_ms);
    LIMIT_NS.store(limit.tv_nsec as usize, Relaxed);
}

/// Objects are never executable: any value but 0 ends the process, which would otherwise fail later.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_pages_executable(on: c_int) {
    if on != 0 {
        give_up(c"libgc: GC_set_pages_executable: objects that can be executed are not served");
    }
}

/// Sets the number of marking threads, if called before the heap starts; 0 lets the collector choose.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_markers_count(count: c_uint) {
    MARKERS.store(count, Relaxed);
}

nothing! {
    /// Has no effect: forks are handled automatically.
    GC_atfork_prepare();
    /// Like [`GC_atfork_prepare`].
    GC_atfork_parent();
    /// Like [`GC_atfork_prepare`].
    GC_atfork_child();
}
