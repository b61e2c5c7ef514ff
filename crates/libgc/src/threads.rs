//! Threads: registering, creating, joining and stopping them; their stacks and blocking calls. The collector
//! finds a thread at its first allocation, or earlier if the thread registers itself.

use crate::abort::give_up;
use crate::allocate::GC_malloc_uncollectable;
use crate::records::Record;
use crate::stacks::{MAIN, handle, stack_end};
use crate::variables::GC_stackbottom;
use crate::{records, start, state, vel};
use core::arch::asm;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// `struct GC_stack_base`.
#[repr(C)]
pub struct StackBase {
    /// Where the thread's stack begins: its highest address.
    pub mem_base: *mut c_void,
}

/// A thread is registered already: `GC_DUPLICATE`.
const DUPLICATE: c_int = 1;
const SUCCESS: c_int = 0;
const NO_MEMORY: c_int = 2;
const UNIMPLEMENTED: c_int = 3;

/// The signal by which threads are stopped: `SIGRTMAX - 5`, as docs/gc.md says, unless the program has chosen
/// another.
fn signal() -> c_int {
    // SAFETY: plain call.
    unsafe { vel::vel_gc_signal() }
}

/// Threads are always allowed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_allow_register_threads() {
    start::ensure();
}

/// Threads are always discovered.
#[unsafe(no_mangle)]
pub extern "C" fn GC_use_threads_discovery() {
    start::ensure();
}

/// The collector starts what threads it wants.
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_mark_threads() {}

/// Makes the calling thread known; 1 (`GC_DUPLICATE`) if it was made so before.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_my_thread(_base: *const StackBase) -> c_int {
    start::ensure();
    if records::is_registered() {
        return DUPLICATE;
    }
    // SAFETY: may be called on any thread.
    if unsafe { vel::vel_gc_thread_enter() } != 0 {
        return NO_MEMORY;
    }
    records::register();
    SUCCESS
}

/// Undoes [`GC_register_my_thread`]. The collector forgets the thread when it ends.
#[unsafe(no_mangle)]
pub extern "C" fn GC_unregister_my_thread() -> c_int {
    records::unregister();
    SUCCESS
}

/// Whether the calling thread was made known, by itself or as one of [`GC_pthread_create`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_thread_is_registered() -> c_int {
    c_int::from(records::is_registered())
}

/// Where the calling thread's stack begins.
///
/// # Safety
/// `base` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_stack_base(base: *mut StackBase) -> c_int {
    let highest = stack_end();
    if highest.is_null() {
        return UNIMPLEMENTED;
    }
    // SAFETY: the caller vouches for it.
    unsafe { (*base).mem_base = highest };
    SUCCESS
}

/// The same, as the collector has it, which the program may have changed; the calling thread's handle.
///
/// # Safety
/// `base` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_my_stackbottom(base: *mut StackBase) -> *mut c_void {
    start::ensure();
    let handle = handle();
    let mem_base = if core::ptr::addr_eq(handle, MAIN.load(Acquire)) {
        core::ptr::with_exposed_provenance_mut(GC_stackbottom.load(Relaxed))
    } else {
        stack_end()
    };
    // SAFETY: the caller vouches for it.
    unsafe { (*base).mem_base = mem_base };
    handle
}

/// Says where the stack begins that a thread is on: the one of this handle, or the calling one for null. To
/// be called with the allocation lock held, or by the thread itself.
///
/// # Safety
/// `base` can be read, and the stack up to there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_set_stackbottom(thread: *mut c_void, base: *const StackBase) {
    // SAFETY: the caller vouches for it.
    let end = unsafe { (*base).mem_base };
    if !state::is_started() {
        GC_stackbottom.store(end.expose_provenance(), Relaxed);
        return;
    }
    let thread = if thread.is_null() { handle() } else { thread };
    if core::ptr::addr_eq(thread, MAIN.load(Acquire)) {
        GC_stackbottom.store(end.expose_provenance(), Relaxed);
    } else {
        // SAFETY: the caller vouches for the stack.
        unsafe { vel::vel_gc_set_stack_end(thread, end) };
    }
}

/// Calls `function` with where the stack begins, and `argument`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_stack_base(
    function: unsafe extern "C" fn(*mut StackBase, *mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    let mut base = StackBase { mem_base: stack_end() };
    // SAFETY: the program's own function and argument.
    unsafe { function(&raw mut base, argument) }
}

/// Calls `function(argument)`, which does not touch the heap, without collections waiting for it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_do_blocking(function: vel::Body, argument: *mut c_void) -> *mut c_void {
    start::ensure();
    // SAFETY: the program's own function and argument.
    unsafe { vel::vel_gc_blocking(function, argument) }
}

/// Within [`GC_do_blocking`]: calls `function(argument)` as if outside of it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_gc_active(function: vel::Body, argument: *mut c_void) -> *mut c_void {
    start::ensure();
    // SAFETY: the program's own function and argument.
    unsafe { vel::vel_gc_active(function, argument) }
}

/// The signal by which threads are stopped.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_suspend_signal() -> c_int {
    signal()
}

/// The same: threads are resumed without one.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_thr_restart_signal() -> c_int {
    signal()
}

/// Starts a thread that is known from its start. What it returns is kept until it is joined.
///
/// # Safety
/// As `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    body: vel::Body,
    argument: *mut c_void,
) -> c_int {
    start::ensure();
    let mut detached = libc::PTHREAD_CREATE_JOINABLE;
    if !attributes.is_null() {
        // SAFETY: the caller's attributes.
        unsafe { pthread_attr_getdetachstate(attributes, &raw mut detached) };
    }
    let is_detached = detached != libc::PTHREAD_CREATE_JOINABLE;
    let room = GC_malloc_uncollectable(size_of::<Record>()).cast::<Record>();
    if room.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: a new object.
    let record = unsafe { records::add(room, body, argument, is_detached) };
    // SAFETY: the record is the new thread's; the caller vouches for the rest.
    let result = unsafe {
        libc::pthread_create(thread, attributes, begin, core::ptr::from_ref(record).cast_mut().cast())
    };
    if result != 0 {
        records::remove(record);
    }
    result
}

extern "C" fn begin(record: *mut c_void) -> *mut c_void {
    // SAFETY: GC_pthread_create made it, and it stays until this thread has ended and was joined.
    unsafe {
        vel::vel_gc_thread_enter();
        let record = &*record.cast::<Record>();
        records::begins(record);
        let result = (record.body)(record.argument);
        records::ends(result);
        result
    }
}

/// `pthread_join`, without collections waiting for it.
///
/// # Safety
/// As `pthread_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    struct Join {
        thread: libc::pthread_t,
        value: *mut c_void,
        status: c_int,
    }
    unsafe extern "C" fn join(this: *mut c_void) -> *mut c_void {
        // SAFETY: the caller's own structure, which lives across the call.
        unsafe {
            let this = &mut *this.cast::<Join>();
            this.status = libc::pthread_join(this.thread, &raw mut this.value);
        }
        null_mut()
    }
    let mut this = Join { thread, value: null_mut(), status: 0 };
    GC_do_blocking(join, (&raw mut this).cast());
    if this.status == 0 {
        if !result.is_null() {
            // SAFETY: the caller vouches for it.
            unsafe { result.write(this.value) };
        }
        records::joined(thread);
    }
    this.status
}

/// `pthread_detach`.
///
/// # Safety
/// As `pthread_detach`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_detach(thread: libc::pthread_t) -> c_int {
    // SAFETY: passed on.
    let status = unsafe { libc::pthread_detach(thread) };
    if status == 0 {
        records::detached(thread);
    }
    status
}

unsafe extern "C" {
    fn pthread_exit(value: *mut c_void) -> !;
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    fn pthread_attr_getdetachstate(attributes: *const libc::pthread_attr_t, state: *mut c_int) -> c_int;
}

/// `pthread_exit`.
///
/// # Safety
/// As `pthread_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_exit(value: *mut c_void) -> ! {
    records::ends(value);
    // SAFETY: passed on.
    unsafe { pthread_exit(value) }
}

/// `pthread_cancel`.
///
/// # Safety
/// As `pthread_cancel`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_cancel(thread: libc::pthread_t) -> c_int {
    // SAFETY: passed on.
    unsafe { pthread_cancel(thread) }
}

/// `pthread_sigmask`, which never blocks the signal that stops threads.
///
/// # Safety
/// As `pthread_sigmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    if set.is_null() || how == libc::SIG_UNBLOCK {
        // SAFETY: passed on.
        return unsafe { libc::pthread_sigmask(how, set, old) };
    }
    // SAFETY: the caller's set is read and copied; the rest is passed on.
    unsafe {
        let mut without = set.read();
        libc::sigdelset(&raw mut without, signal());
        libc::pthread_sigmask(how, &raw const without, old)
    }
}

/// `dlopen`: what libraries hold is found at each collection.
///
/// # Safety
/// As `dlopen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_dlopen(path: *const core::ffi::c_char, mode: c_int) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { libc::dlopen(path, mode) }
}

/// Has threads stopped by this signal. Once the heap has started it is too late for another, which ends the
/// process.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_suspend_signal(signal: c_int) {
    // SAFETY: plain call.
    if signal != -1 && unsafe { vel::vel_gc_set_signal(signal) } != 0 {
        give_up(c"libgc: GC_set_suspend_signal: threads are registered already, or there is no such signal");
    }
}

/// Threads are resumed without a signal: kept free by nobody, and told by nobody.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_thr_restart_signal(_signal: c_int) {}

/// Stops every other thread until [`GC_start_world_external`]. The caller neither allocates nor locks
/// meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn GC_stop_world_external() {
    start::ensure();
    // SAFETY: undone by the other.
    if unsafe { vel::vel_gc_stop_world() } != 0 {
        give_up(c"libgc: GC_stop_world_external: out of memory");
    }
}

/// Undoes [`GC_stop_world_external`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_world_external() {
    // SAFETY: the caller has stopped it.
    unsafe { vel::vel_gc_start_world() };
}

/// Says of the calling thread that it handles signals on a stack of its own: the kernel says so, too, and
/// the part in use is scanned for any thread that is stopped there.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_altstack(
    _stack: *mut c_void,
    _bytes: usize,
    _altstack: *mut c_void,
    _altstack_bytes: usize,
) {
    start::ensure();
}

/// `GC_custom_push_proc`.
pub type CustomPush =
    unsafe extern "C" fn(bottom: *mut *mut c_void, top: *mut *mut c_void, data: *mut c_void, hint: c_uint);

/// The region is on a stack, which a collector scans at once.
const EAGER: c_uint = 1;

/// Calls `push` with the calling thread's stack up to `base`, the registers that functions preserve in it.
///
/// # Safety
/// `base` can be read; `push` may be called with the stack and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_custom_push_regs_and_stack(
    push: CustomPush,
    data: *mut c_void,
    base: *const StackBase,
    _cold: *mut c_void,
) {
    let mut registers = [null_mut::<c_void>(); 6];
    // SAFETY: stores the registers in an array of as many words; then the caller vouches for `base` and the
    // procedure.
    unsafe {
        asm!(
            "mov [{to}], rbx",
            "mov [{to} + 8], rbp",
            "mov [{to} + 16], r12",
            "mov [{to} + 24], r13",
            "mov [{to} + 32], r14",
            "mov [{to} + 40], r15",
            to = in(reg) registers.as_mut_ptr(),
            options(nostack, preserves_flags),
        );
        push(registers.as_mut_ptr(), (*base).mem_base.cast(), data, EAGER);
    }
    core::hint::black_box(&registers);
}
