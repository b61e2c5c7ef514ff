//! Actions when the library is loaded, when the process forks, and when the process ends.
//!
//! The constructor runs before the program's own code, but the loader and other libraries' constructors may
//! have allocated earlier. Blocks allocated that early belong to Vellum whatever the constructor decides.

use crate::knobs::{Knobs, variable};
use crate::{attach, board, copying, loading, lookups, signals};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_malloc::Line;
use vellum_pages::Pages;
use vellum_wire::Attach;
use vellum_wire::door::HeapDoor;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = end;

/// The process's state, which forked children inherit.
static ATTACH: AtomicU32 = AtomicU32::new(Attach::Claimed as u32);

extern "C" fn start() {
    vellum_sys::owner::claim();
    copying::find();
    crate::loaded::begin();
    signals::find();
    let knobs = Knobs::read();
    crate::gc::knobs::heed();
    let mut attach = attach::decide(&knobs);
    if attach != Attach::Serving && !attach::pass_through() {
        attach = Attach::Serving;
    }
    ATTACH.store(attach as u32, Relaxed);
    if attach != Attach::Serving {
        loading::leave_alone();
    } else {
        lookups::begin();
        Pages::global().configure(knobs.pages);
        crate::paging::heed();
        heed_advice();
        if knobs.harden {
            vellum_malloc::harden();
        }
        vellum_malloc::start();
        vellum_malloc::publish_at_ticks();
        vellum_malloc::mmap::serve_mappings(knobs.mmap);
        watch_forks();
        profile();
    }
    board::join(attach);
}

/// The exported symbol of the interface through which samples are requested: see [`HeapDoor`].
#[unsafe(no_mangle)]
#[used]
static vellum_heap_door: &HeapDoor = &vellum_malloc::DOOR;

/// Samples blocks for the `vellum heap` that the environment names, if any.
fn profile() {
    vellum_heapprofile::prepare(crate::loaded::first_symbol);
    crate::gc::sampled::begin();
    let Some(path) = variable(c"VELLUM_HEAP_PROFILE") else { return };
    // Another user's, or in another view of the file system: nobody's mistake, as with a board.
    if let Err(errno) = vellum_heapprofile::begin(path)
        && !board::is_elsewhere(errno)
    {
        let mut line = Line::new();
        line.text("vellum: VELLUM_HEAP_PROFILE=").raw(path.to_bytes());
        line.text(" cannot be written to; this process has no heap profile\n").write();
    }
}

/// Connects to the governor that the environment names, if any.
fn heed_advice() {
    let Some(path) = variable(c"VELLUM_ADVICE") else { return };
    if !Pages::global().follow_advice(path.to_bytes()) {
        let mut line = Line::new();
        line.text("vellum: VELLUM_ADVICE=").raw(path.to_bytes());
        line.text(" is ignored: no socket can have so long a path\n").write();
    }
}

extern "C" fn end() {
    if Attach::from_u32(ATTACH.load(Relaxed)) == Attach::Serving {
        vellum_malloc::check_quarantine();
        vellum_malloc::flush_counts();
        vellum_heapprofile::finish();
        if board::is_there() {
            vellum_malloc::publish();
        }
    }
}

type Handler = unsafe extern "C" fn();
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *const c_void) -> c_int;

/// Registers the three functions below for every fork. glibc's shared object lacks `pthread_atfork`, but has
/// the function behind it. musl has `pthread_atfork`, which ignores the last argument.
fn watch_forks() {
    let register = [c"__register_atfork", c"pthread_atfork"].map(attach::first);
    if let Some(&register) = register.iter().find(|function| !function.is_null()) {
        // SAFETY: `__register_atfork` has this signature; `pthread_atfork` ignores the last argument.
        let register = unsafe { transmute::<*const c_void, Register>(register) };
        // SAFETY: the functions exist as long as the process; no owner is named that could be unloaded.
        unsafe { register(before_fork, after_fork_in_parent, after_fork_in_child, core::ptr::null()) };
    }
}

unsafe extern "C" fn before_fork() {
    Pages::global().fork_approach();
    vellum_gc::fork_prepare();
    vellum_malloc::fork_prepare();
    vellum_malloc::paged::fork_prepare();
}

unsafe extern "C" fn after_fork_in_parent() {
    vellum_malloc::paged::fork_parent();
    vellum_malloc::fork_parent();
    vellum_gc::fork_parent();
}

unsafe extern "C" fn after_fork_in_child() {
    vellum_sys::owner::claim();
    vellum_malloc::paged::fork_child();
    vellum_malloc::fork_child();
    vellum_gc::fork_child();
    board::attach_slot_in_child(Attach::from_u32(ATTACH.load(Relaxed)));
}
