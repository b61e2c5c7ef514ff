//! Threads: registering, creating, joining and stopping them; their stacks and blocking calls. The collector
//! finds a thread at its first allocation, or earlier if the thread registers itself.

use crate::abort::give_up;
use crate::allocate::GC_malloc_uncollectable;
use crate::forms::{nothing, passes, values};
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
    /// The highest address of the thread's stack, where the stack begins.
    pub mem_base: *mut c_void,
}

/// `GC_DUPLICATE`: the thread is already registered.
const DUPLICATE: c_int = 1;
const SUCCESS: c_int = 0;
const NO_MEMORY: c_int = 2;
const UNIMPLEMENTED: c_int = 3;

/// The signal that stops threads: `SIGRTMAX - 5`, as docs/gc.md documents, or the program's choice.
fn signal() -> c_int {
    // SAFETY: the function has no preconditions.
    unsafe { vel::vel_gc_signal() }
}

/// Has no effect: threads can always register.
#[unsafe(no_mangle)]
pub extern "C" fn GC_allow_register_threads() {
    start::ensure();
}

/// Has no effect: threads are always discovered.
#[unsafe(no_mangle)]
pub extern "C" fn GC_use_threads_discovery() {
    start::ensure();
}

nothing! {
    /// Has no effect: the collector starts its marking threads.
    GC_start_mark_threads();
}

/// Registers the calling thread; returns 1 (`GC_DUPLICATE`) if it is registered.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_my_thread(_base: *const StackBase) -> c_int {
    start::ensure();
    if records::is_registered() {
        return DUPLICATE;
    }
    // SAFETY: any thread may call this function.
    if unsafe { vel::vel_gc_thread_enter() } != 0 {
        return NO_MEMORY;
    }
    records::register();
    SUCCESS
}

/// Undoes [`GC_register_my_thread`]. The collector drops the thread when it ends.
#[unsafe(no_mangle)]
pub extern "C" fn GC_unregister_my_thread() -> c_int {
    records::unregister();
    SUCCESS
}

values! {
    /// Returns 1 if the calling thread has registered, or was started by [`GC_pthread_create`].
    GC_thread_is_registered: c_int = c_int::from(records::is_registered());
    /// The signal that stops threads.
    GC_get_suspend_signal: c_int = signal();
    /// Like [`GC_get_suspend_signal`]: resuming threads needs no signal.
    GC_get_thr_restart_signal: c_int = signal();
}

/// Stores the start of the calling thread's stack.
///
/// # Safety
/// `base` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_stack_base(base: *mut StackBase) -> c_int {
    let highest = stack_end();
    if highest.is_null() {
        return UNIMPLEMENTED;
    }
    // SAFETY: `base` can be written, by the `# Safety` section.
    unsafe { (*base).mem_base = highest };
    SUCCESS
}

/// Stores the start of the calling thread's stack as set for the collector; returns the thread's handle.
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
    // SAFETY: `base` can be written, by the `# Safety` section.
    unsafe { (*base).mem_base = mem_base };
    handle
}

/// Sets the start of the stack of the thread with this handle; null stands for the calling thread. The caller
/// is that thread or holds the allocation lock.
///
/// # Safety
/// `base` can be read, and the stack up to there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_set_stackbottom(thread: *mut c_void, base: *const StackBase) {
    // SAFETY: `base` can be read, by the `# Safety` section.
    let end = unsafe { (*base).mem_base };
    if !state::is_started() {
        GC_stackbottom.store(end.expose_provenance(), Relaxed);
        return;
    }
    let thread = if thread.is_null() { handle() } else { thread };
    if core::ptr::addr_eq(thread, MAIN.load(Acquire)) {
        GC_stackbottom.store(end.expose_provenance(), Relaxed);
    } else {
        // SAFETY: the stack can be read up to `end`, by the `# Safety` section.
        unsafe { vel::vel_gc_set_stack_end(thread, end) };
    }
}

/// Calls `function` with the start of the stack, and `argument`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_stack_base(
    function: unsafe extern "C" fn(*mut StackBase, *mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    let mut base = StackBase { mem_base: stack_end() };
    // SAFETY: the program passes a function that accepts both arguments.
    unsafe { function(&raw mut base, argument) }
}

/// Calls `function(argument)`, which does not touch the heap. Collections do not wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_do_blocking(function: vel::Body, argument: *mut c_void) -> *mut c_void {
    start::ensure();
    // SAFETY: the program passes a function that accepts the argument and does not touch the heap.
    unsafe { vel::vel_gc_blocking(function, argument) }
}

/// Within [`GC_do_blocking`]: calls `function(argument)`, which may touch the heap.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_gc_active(function: vel::Body, argument: *mut c_void) -> *mut c_void {
    start::ensure();
    // SAFETY: the program passes a function that accepts the argument.
    unsafe { vel::vel_gc_active(function, argument) }
}

/// Starts a thread that is registered from its start. Its result is kept until it is joined.
///
/// # Safety
/// The conditions of `pthread_create` apply.
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
        // SAFETY: the attributes are valid, by the conditions of `pthread_create`.
        unsafe { pthread_attr_getdetachstate(attributes, &raw mut detached) };
    }
    let is_detached = detached != libc::PTHREAD_CREATE_JOINABLE;
    let room = GC_malloc_uncollectable(size_of::<Record>()).cast::<Record>();
    if room.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: the object is new, uncollectable and large enough for a record.
    let record = unsafe { records::add(room, body, argument, is_detached) };
    // SAFETY: only the new thread uses the record; the rest is covered by the `# Safety` section.
    let result = unsafe {
        libc::pthread_create(thread, attributes, begin, core::ptr::from_ref(record).cast_mut().cast())
    };
    if result != 0 {
        records::remove(record);
    }
    result
}

extern "C" fn begin(record: *mut c_void) -> *mut c_void {
    // SAFETY: `GC_pthread_create` made the record, which exists until this thread has ended and is joined.
    unsafe {
        vel::vel_gc_thread_enter();
        let record = &*record.cast::<Record>();
        records::begins(record);
        let result = (record.body)(record.argument);
        records::ends(result);
        result
    }
}

/// `pthread_join`; collections do not wait for it.
///
/// # Safety
/// The conditions of `pthread_join` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    struct Join {
        thread: libc::pthread_t,
        value: *mut c_void,
        status: c_int,
    }
    unsafe extern "C" fn join(this: *mut c_void) -> *mut c_void {
        // SAFETY: the argument is `this` of the enclosing call, which lives until this function returns.
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
            // SAFETY: `result` is not null and can be written, by the conditions of `pthread_join`.
            unsafe { result.write(this.value) };
        }
        records::joined(thread);
    }
    this.status
}

/// `pthread_detach`.
///
/// # Safety
/// The conditions of `pthread_detach` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_detach(thread: libc::pthread_t) -> c_int {
    // SAFETY: `thread` can be detached, by the `# Safety` section.
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
/// The conditions of `pthread_exit` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_exit(value: *mut c_void) -> ! {
    records::ends(value);
    // SAFETY: the thread may end here, by the `# Safety` section.
    unsafe { pthread_exit(value) }
}

passes! {
    /// `pthread_cancel`.
    "The conditions of `pthread_cancel` apply."
    GC_pthread_cancel(thread: libc::pthread_t) -> c_int = pthread_cancel(thread);
    /// `dlopen`: each collection finds the data of new libraries.
    "The conditions of `dlopen` apply."
    GC_dlopen(path: *const core::ffi::c_char, mode: c_int) -> *mut c_void = libc::dlopen(path, mode);
}

/// `pthread_sigmask`, which never blocks the signal that stops threads.
///
/// # Safety
/// The conditions of `pthread_sigmask` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    if set.is_null() || how == libc::SIG_UNBLOCK {
        // SAFETY: `set` and `old` meet the conditions of `pthread_sigmask`, by the `# Safety` section.
        return unsafe { libc::pthread_sigmask(how, set, old) };
    }
    // SAFETY: `set` is not null; both sets meet the conditions of `pthread_sigmask` (`# Safety`).
    unsafe {
        let mut without = set.read();
        libc::sigdelset(&raw mut without, signal());
        libc::pthread_sigmask(how, &raw const without, old)
    }
}

/// Sets the signal that stops threads. After the heap has started, another signal ends the process.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_suspend_signal(signal: c_int) {
    // SAFETY: the function accepts any number.
    if signal != -1 && unsafe { vel::vel_gc_set_signal(signal) } != 0 {
        give_up(c"libgc: GC_set_suspend_signal: threads are registered already, or there is no such signal");
    }
}

/// Has no effect: resuming threads needs no signal.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_thr_restart_signal(_signal: c_int) {}

/// Stops every other thread until [`GC_start_world_external`]. Until then the caller must not allocate or
/// lock.
#[unsafe(no_mangle)]
pub extern "C" fn GC_stop_world_external() {
    start::ensure();
    // SAFETY: the program calls `GC_start_world_external` later.
    if unsafe { vel::vel_gc_stop_world() } != 0 {
        give_up(c"libgc: GC_stop_world_external: out of memory");
    }
}

/// Undoes [`GC_stop_world_external`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_world_external() {
    // SAFETY: the program has stopped the world before (`GC_stop_world_external`).
    unsafe { vel::vel_gc_start_world() };
}

/// Registers an alternate signal stack. The kernel reports these stacks, and the used part is scanned, so
/// only the heap is started.
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

/// The region is a stack, which a collector scans at once.
const EAGER: c_uint = 1;

/// Calls `push` for the calling thread's stack up to `base`, after storing the callee-saved registers on it.
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
    // SAFETY: the asm stores six registers in an array of six words. `base` can be read and `push` may be
    // called, by the `# Safety` section.
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
