//! Settings and queries other than the exported variables ([`variables`]).
//!
//! Most of libgc's settings tune its own collection algorithm. Here they are stored and returned and have no
//! effect: see `docs/libgc.md`.

use crate::abort::give_up;
use crate::state::{INCREMENTAL, MARKERS, is_started};
use crate::variables::{self, GC_oom_fn, GC_parallel, OomFunction};
use crate::{say, start, vel};
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The interface's version: 8.2.12.
const VERSION: c_uint = 8 << 16 | 2 << 8 | 12;

/// What the program's procedure says when there is no memory for `bytes` bytes.
#[cold]
pub(crate) fn out_of_memory(bytes: usize) -> *mut c_void {
    // SAFETY: the variable holds a function of this type, the program's own.
    unsafe { variables::function::<OomFunction>(&GC_oom_fn).map_or(null_mut(), |function| function(bytes)) }
}

/// Ends the process for want of memory.
#[unsafe(no_mangle)]
pub extern "C" fn GC_abort_on_oom() {
    give_up(c"libgc: out of memory")
}

/// The interface's version.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_version() -> c_uint {
    VERSION
}

/// Has collections made in slices, if called before the heap starts.
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

/// Whether collections are made in slices.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_incremental_mode() -> c_int {
    INCREMENTAL.load(Relaxed)
}

/// 0: nothing is protected from system calls.
#[unsafe(no_mangle)]
pub extern "C" fn GC_incremental_protection_needs() -> c_int {
    0
}

/// Settings that are kept and change nothing.
macro_rules! kept {
    ($($type:ty, $cell:ident: $atomic:ident = $default:expr, $set:ident, $get:ident;)*) => { $(
        static $cell: $atomic = $atomic::new($default);
        /// Kept, and changes nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(value: $type) {
            $cell.store(value as _, Relaxed);
        }
        /// The limit that was set.
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

/// `GC_sp_corrector_proc`, `GC_on_os_get_mem_proc`, `GC_on_mark_stack_empty_proc`: of none of them more than
/// the address is used.
pub type Unused = unsafe extern "C" fn();

static SP_CORRECTOR: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ON_OS_GET_MEM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

variables::procedures! {
    Unused, SP_CORRECTOR: GC_set_sp_corrector, GC_get_sp_corrector;
    Unused, ON_OS_GET_MEM: GC_set_on_os_get_mem, GC_get_on_os_get_mem;
}

/// Not served: a procedure that marks more when all is marked. To go on without it would lose objects.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_on_mark_stack_empty(procedure: Option<Unused>) {
    if procedure.is_some() {
        give_up(c"libgc: GC_set_on_mark_stack_empty: such procedures are not served");
    }
}

/// Null: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_on_mark_stack_empty() -> Option<Unused> {
    None
}

/// Not served, as in most builds of libgc: words are pointers as they are.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_pointer_mask(mask: usize) {
    if mask != usize::MAX {
        give_up(c"libgc: GC_set_pointer_mask: pointers are read as they are");
    }
}

/// All ones.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_pointer_mask() -> usize {
    usize::MAX
}

/// As [`GC_set_pointer_mask`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_pointer_shift(shift: c_uint) {
    if shift != 0 {
        give_up(c"libgc: GC_set_pointer_shift: pointers are read as they are");
    }
}

/// 0.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_pointer_shift() -> c_uint {
    0
}

/// Whether a pointer just past an object may not keep it, although interior pointers do: never.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_dont_add_byte_at_end() -> c_int {
    0
}

/// Ways to see a program's writes: page protection, and the kernel's record of written pages
/// (`GC_VDB_MPROTECT`, `GC_VDB_UFFDWP`).
const BY_PROTECTION: c_uint = 1;
const BY_KERNEL: c_uint = 0x80;

/// The ways that may be used.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_supported_vdbs() -> c_uint {
    BY_PROTECTION | BY_KERNEL
}

/// The way in use; 0 where collections are made at one go.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_actual_vdb() -> c_uint {
    match INCREMENTAL.load(Relaxed) {
        0 => 0,
        _ if vel::stats().protected != 0 => BY_PROTECTION,
        _ => BY_KERNEL,
    }
}

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

/// Kept, and changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_time_limit_tv(limit: TimeLimit) {
    variables::GC_set_time_limit(limit.tv_ms);
    LIMIT_NS.store(limit.tv_nsec as usize, Relaxed);
}

/// The limit that was set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_time_limit_tv() -> TimeLimit {
    TimeLimit { tv_ms: variables::GC_get_time_limit(), tv_nsec: LIMIT_NS.load(Relaxed) as c_ulong }
}

/// Objects are never code: anything but 0 ends the process, which would fail later.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_pages_executable(on: c_int) {
    if on != 0 {
        give_up(c"libgc: GC_set_pages_executable: objects that can be executed are not served");
    }
}

/// 0: objects are never code.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_pages_executable() -> c_int {
    0
}

/// 0: how many threads mark is the collector's choice.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_parallel() -> c_int {
    GC_parallel.load(Relaxed)
}

/// How many threads mark, if called before the heap starts; 0: the collector chooses.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_markers_count(count: c_uint) {
    MARKERS.store(count, Relaxed);
}

/// Forks are handled without being told.
#[unsafe(no_mangle)]
pub extern "C" fn GC_atfork_prepare() {}

/// As [`GC_atfork_prepare`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_atfork_parent() {}

/// As [`GC_atfork_prepare`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_atfork_child() {}
