//! The collector's C interface, declared in `include/vellum_gc.h`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use vellum_gc as gc;
use vellum_malloc as front;

/// `struct vel_gc_config`.
#[repr(C)]
pub struct Settings {
    config_bytes: usize,
    plan: c_int,
    only_starts: c_int,
    limit_bytes: usize,
    fixed_bytes: usize,
    percent: c_uint,
    poison: c_int,
    slice_us: c_uint,
    safepoints: c_int,
    tells_writes: c_int,
    max_bytes: usize,
    paranoid: c_int,
    eager: c_int,
    idle_thread: c_int,
    markers: c_uint,
    sizing: c_int,
    ratio: c_uint,
    mem_limit: usize,
    mem_lim: usize,
    min_new_size: usize,
    min_old_incr: usize,
    c_thousandths: c_uint,
    after_major: c_int,
    precise_stacks: c_int,
}

impl Settings {
    /// How the heap is to be sized; `None` if that is not served. A parameter of another policy than the one named is a mistake, which would
    /// otherwise show in measurements only.
    fn sizing(&self) -> Option<gc::Sizing> {
        let or = |value: c_uint, default| if value == 0 { default } else { value };
        let original = (self.mem_limit, self.ratio);
        let modified = (self.mem_lim, self.min_new_size, self.min_old_incr);
        let (sizing, is_clean) = match self.sizing {
            0 => (gc::Sizing::Knee, original == (0, 0) && modified == (0, 0, 0) && self.c_thousandths == 0),
            1 => {
                let ratio = or(self.ratio, gc::Sizing::RATIO);
                let sizing = gc::Sizing::Original { mem_limit: self.mem_limit, ratio };
                (sizing, modified == (0, 0, 0) && self.c_thousandths == 0)
            }
            2 => {
                let (mem_lim, min_new_size, min_old_incr) = modified;
                let sizing = gc::Sizing::Modified { mem_lim, min_new_size, min_old_incr };
                (sizing, original == (0, 0) && self.c_thousandths == 0)
            }
            3 => {
                let sizing = gc::Sizing::SquareRoot { c: or(self.c_thousandths, gc::Sizing::C) };
                (sizing, original == (0, 0) && modified == (0, 0, 0))
            }
            _ => return None,
        };
        (is_clean && sizing.check().is_ok()).then_some(sizing)
    }
}

/// The plans, by their numbers in the header.
const PLANS: [gc::Plan; 3] = [gc::Plan::MarkSweep, gc::Plan::MostlyCopying, gc::Plan::Appel];
/// What becomes of vacated regions, by their numbers in the header.
const AFTER_MAJOR: [gc::AfterMajor; 3] =
    [gc::AfterMajor::Reuse, gc::AfterMajor::Drift, gc::AfterMajor::CopyBack];

/// Bytes of the structure in its first version.
const SETTINGS_MIN: usize = core::mem::offset_of!(Settings, slice_us);

fn refuse(errno: c_int) -> c_int {
    front::set_errno(errno);
    -1
}

pub(crate) fn refused(why: gc::Refused) -> c_int {
    refuse(match why {
        gc::Refused::NoObject => libc::EINVAL,
        gc::Refused::OutOfMemory => libc::ENOMEM,
    })
}

/// An object, or null and `errno`.
#[inline]
fn object(object: *mut u8) -> *mut c_void {
    if object.is_null() {
        front::set_errno(libc::ENOMEM);
    }
    object.cast()
}

/// Starts the heap.
///
/// # Safety
/// `settings` is null, or points to as many bytes as its first field says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_init(settings: *const Settings) -> c_int {
    let mut config = gc::Config::DEFAULT;
    if !settings.is_null() {
        // SAFETY: the caller vouches for the first field.
        let bytes = unsafe { (&raw const (*settings).config_bytes).read() };
        if bytes < SETTINGS_MIN {
            return refuse(libc::EINVAL);
        }
        // What an older program does not know of is zero.
        let mut known = core::mem::MaybeUninit::<Settings>::zeroed();
        let bytes = bytes.min(size_of::<Settings>());
        // SAFETY: both have so many bytes; all fields are numbers.
        let settings = unsafe {
            known.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(settings.cast(), bytes);
            known.assume_init()
        };
        let plan = usize::try_from(settings.plan).ok().and_then(|plan| PLANS.get(plan));
        let is_served = settings.percent <= gc::Config::PERCENT_MAX
            && (settings.max_bytes == 0 || settings.max_bytes >= gc::Config::MAX_LEAST);
        let Some(&plan) = plan.filter(|_| is_served) else { return refuse(libc::EINVAL) };
        let Some(sizing) = settings.sizing() else { return refuse(libc::EINVAL) };
        config.sizing = sizing;
        let after_major = usize::try_from(settings.after_major).ok().and_then(|way| AFTER_MAJOR.get(way));
        let Some(&after_major) = after_major else { return refuse(libc::EINVAL) };
        config.plan = plan;
        config.after_major = after_major;
        config.precise_stacks = settings.precise_stacks != 0;
        config.only_starts = settings.only_starts != 0;
        config.fixed_bytes = settings.fixed_bytes;
        config.poison = settings.poison != 0;
        config.slice_ns = u64::from(settings.slice_us) * 1000;
        config.safepoints = settings.safepoints != 0;
        config.tells_writes = settings.tells_writes != 0;
        config.paranoid = settings.paranoid != 0;
        config.eager = settings.eager != 0;
        config.idle_thread = settings.idle_thread != 0;
        config.markers = settings.markers;
        if settings.max_bytes != 0 {
            config.max_bytes = settings.max_bytes;
        }
        if settings.limit_bytes != 0 {
            config.limit_bytes = settings.limit_bytes;
        }
        if settings.percent != 0 {
            config.percent = settings.percent;
        }
    }
    match gc::init(config) {
        Ok(()) => 0,
        Err(gc::Already::Started) => refuse(libc::EBUSY),
        Err(gc::Already::OutOfMemory) => refuse(libc::ENOMEM),
        Err(gc::Already::NotServed(_)) => refuse(libc::EINVAL),
    }
}

/// A type.
///
/// # Safety
/// `pointers` has a bit for every word of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_type_of(bytes: usize, pointers: *const u64) -> *const gc::Layout {
    if bytes == 0 || bytes > gc::TYPE_MAX || pointers.is_null() {
        refuse(libc::EINVAL);
        return core::ptr::null();
    }
    // SAFETY: the caller vouches for the bitmap, of which only words with bits for the object are read.
    made(gc::type_of(bytes, |word| unsafe { pointers.add(word).read() }))
}

/// A type whose pointers a procedure names.
///
/// # Safety
/// The procedure may be called with every object of the type whenever collections happen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_type_by(
    procedure: Option<gc::TraceFn>,
    data: *mut c_void,
) -> *const gc::Layout {
    let Some(procedure) = procedure else {
        refuse(libc::EINVAL);
        return core::ptr::null();
    };
    // SAFETY: the caller vouches for it.
    made(unsafe { gc::type_by(procedure, data.expose_provenance()) })
}

/// A type, or null and `errno`.
fn made(layout: Option<&'static gc::Layout>) -> *const gc::Layout {
    if layout.is_none() {
        refuse(libc::ENOMEM);
    }
    layout.map_or(core::ptr::null(), core::ptr::from_ref)
}

/// Names a pointer.
///
/// # Safety
/// `visitor` is what a procedure was given, and the procedure has not returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_visit(visitor: *const gc::Visitor, pointer: *const c_void) {
    // SAFETY: the caller vouches for it.
    unsafe { (*visitor).visit(pointer.cast()) };
}

/// Names all pointers of a range.
///
/// # Safety
/// As [`vel_gc_visit`]; the range may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_visit_words(
    visitor: *const gc::Visitor,
    start: *const c_void,
    end: *const c_void,
) {
    // SAFETY: the caller vouches for both.
    unsafe { (*visitor).visit_words(start.cast(), end.cast()) };
}

/// Sets what names further roots.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_roots(hook: Option<gc::RootsFn>) -> Option<gc::RootsFn> {
    gc::on_roots(hook)
}

/// Sets what is called when a collection begins.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_begin(hook: Option<gc::ToldFn>) -> Option<gc::ToldFn> {
    gc::on_begin(hook)
}

/// Sets what is called when finalizers are due.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_due(hook: Option<gc::ToldFn>) -> Option<gc::ToldFn> {
    gc::on_due(hook)
}

/// Calls `function(argument)` from within a blocking region as if outside of it.
///
/// # Safety
/// The function may be called so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_active(
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller vouches for it.
    gc::active(|| unsafe { function(argument) })
}

/// An array of a type's elements.
///
/// # Safety
/// `layout` came from [`vel_gc_type_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_new_array(layout: *const gc::Layout, count: usize) -> *mut c_void {
    // SAFETY: types live for ever.
    object(gc::alloc_array(unsafe { &*layout }, count))
}

/// An object that is kept until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_uncollectable(bytes: usize) -> *mut c_void {
    let new = gc::alloc(bytes);
    if new.is_null() || gc::keep(new).is_err() {
        return object(null_mut());
    }
    new.cast()
}

/// Has an object stay until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_keep(object: *mut c_void) -> c_int {
    match gc::keep(object.cast()) {
        Ok(()) => 0,
        Err(why) => refused(why),
    }
}

/// An aligned object.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_alloc_aligned(bytes: usize, align: usize, atomic: c_int) -> *mut c_void {
    object(gc::alloc_aligned(bytes, align, atomic != 0))
}

/// Changes an object's size.
///
/// # Safety
/// As `realloc` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes == 0 && !old.is_null() {
        // SAFETY: passed on.
        unsafe { vel_gc_free(old) };
        return null_mut();
    }
    // SAFETY: passed on.
    object(unsafe { gc::realloc(old.cast(), bytes) })
}

/// Gives an object back.
///
/// # Safety
/// Nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_free(old: *mut c_void) {
    // SAFETY: passed on.
    if !old.is_null() && unsafe { gc::free(old.cast()) }.is_err() {
        let mut line = front::Line::new();
        line.text("vellum: vel_gc_free: ")
            .hex(old as usize)
            .text(": not the start of a live object\n")
            .write();
        // SAFETY: abort has no preconditions.
        unsafe { libc::abort() }
    }
}

/// The slow path of `vel_gc_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_slow(bytes: usize) -> *mut c_void {
    object(gc::alloc(bytes))
}

/// The slow path of `vel_gc_alloc_atomic`.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_slow_atomic(bytes: usize) -> *mut c_void {
    object(gc::alloc_atomic(bytes))
}

/// The slow path of `vel_gc_new`.
///
/// # Safety
/// `layout` came from [`vel_gc_type_of`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_slow_type(layout: *const gc::Layout) -> *mut c_void {
    // SAFETY: types live for ever.
    object(gc::alloc_typed(unsafe { &*layout }))
}

/// Collects now.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_collect() -> c_int {
    if gc::collect() { 0 } else { -1 }
}

/// Collects in idle time.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_idle(us: c_uint) -> c_int {
    c_int::from(gc::idle(u64::from(us) * 1000))
}

/// Sets what is called after each pause.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_pause(hook: Option<gc::PauseFn>) -> Option<gc::PauseFn> {
    gc::on_pause(hook)
}

/// Holds collection off.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_hold() {
    gc::hold(true);
}

/// Lets collection on again.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_let() {
    gc::hold(false);
}

/// Sets the heap's limit.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_limit(bytes: usize) {
    gc::set_limit(if bytes == 0 { usize::MAX } else { bytes });
}

/// Sets the maximum of the heap with its metadata.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_max(bytes: usize) -> c_int {
    if bytes != 0 && bytes < gc::Config::MAX_LEAST {
        return refuse(libc::EINVAL);
    }
    gc::set_max(if bytes == 0 { usize::MAX } else { bytes });
    0
}

/// Sets what is called when there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_on_full(hook: Option<gc::FullFn>) -> Option<gc::FullFn> {
    gc::on_full(hook)
}

/// Adds roots.
///
/// # Safety
/// The range may be read until it is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_add(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::add_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Adds roots whose objects may move.
///
/// # Safety
/// The range may be read and written until it is removed; its words hold pointers, or what is no address in the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_add_precise(start: *mut c_void, end: *mut c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::add_precise_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Removes roots.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_roots_remove(start: *const c_void, end: *const c_void) -> usize {
    gc::remove_roots(start.cast(), end.cast())
}

/// Leaves static data out.
///
/// # Safety
/// No word there is the only one that leads to an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_roots_exclude(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::exclude_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Looks through static data again.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_roots_include(start: *const c_void, end: *const c_void) -> usize {
    gc::include_roots(start.cast(), end.cast())
}

/// Makes the calling thread known.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_thread_enter() -> c_int {
    if gc::enter() { 0 } else { refuse(libc::ENOMEM) }
}

/// Adds roots of the calling thread.
///
/// # Safety
/// The range may be read until it is removed or the thread ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_thread_roots_add(start: *const c_void, end: *const c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::add_thread_roots(start.cast(), end.cast()) }.map_or_else(refused, |()| 0)
}

/// Stops if a collection waits.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_safepoint() {
    gc::safepoint();
}

/// Sets an object's ephemeron.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_set_ephemeron(key: *mut c_void, value: *mut c_void) -> c_int {
    gc::set_ephemeron(key.cast(), value.cast()).map_or_else(refused, |()| 0)
}

/// An object's ephemeron.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_ephemeron(key: *const c_void) -> *mut c_void {
    gc::ephemeron(key.cast()).cast()
}

/// Calls a function that does not touch the heap.
///
/// # Safety
/// `function` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_blocking(
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller vouches for it.
    gc::blocking(|| unsafe { function(argument) })
}

/// The start of the object that holds a byte.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_base(address: *const c_void) -> *mut c_void {
    gc::base(address.cast()).cast()
}

/// Bytes of room in an object.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_size(object: *const c_void) -> usize {
    gc::size(object.cast())
}

/// Fills in the counters.
///
/// # Safety
/// `stats` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_get_stats(stats: *mut gc::Stats, bytes: usize) {
    let now = gc::stats();
    let bytes = bytes.min(size_of::<gc::Stats>());
    // SAFETY: as many bytes as both have.
    unsafe { stats.cast::<u8>().copy_from_nonoverlapping((&raw const now).cast(), bytes) };
}

/// Visits every object.
///
/// # Safety
/// `visit` may be called with every object and `argument`, with the world stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_walk(
    visit: unsafe extern "C" fn(*mut c_void, usize, *mut c_void),
    argument: *mut c_void,
) {
    // SAFETY: the caller vouches for it.
    gc::walk(|object, bytes| unsafe { visit(object.cast(), bytes, argument) });
}

/// Checks every invariant. The names of those that are broken are static, and a broken heap prints them too.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_validate() -> *const c_char {
    let Err(broken) = gc::validate() else { return core::ptr::null() };
    let mut line = front::Line::new();
    line.text("vellum: broken: ").text(broken).text("\n").write();
    c"an invariant of the heap is broken; it was written to standard error".as_ptr()
}

/// The order that a number of the header's stands for.
fn order(unordered: c_int) -> gc::Order {
    match unordered {
        0 => gc::Order::Ordered,
        2 => gc::Order::IgnoringItself,
        3 => gc::Order::Last,
        _ => gc::Order::Unordered,
    }
}

/// Sets a finalizer.
///
/// # Safety
/// It may be called with the object and `data` at any time after the object has died.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_set_finalizer(
    object: *mut c_void,
    finalizer: Option<gc::Function>,
    data: *mut c_void,
    unordered: c_int,
) -> c_int {
    // SAFETY: passed on.
    let set = unsafe { gc::set_finalizer(object.cast(), finalizer, data.cast(), order(unordered)) };
    set.map_or_else(refused, |_| 0)
}

/// Sets a finalizer and says which one there was.
///
/// # Safety
/// As for [`vel_gc_set_finalizer`]. What says where to put the old one is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_replace_finalizer(
    object: *mut c_void,
    finalizer: Option<gc::Function>,
    data: *mut c_void,
    unordered: c_int,
    old_finalizer: *mut Option<gc::Function>,
    old_data: *mut *mut c_void,
) -> c_int {
    // SAFETY: passed on.
    match unsafe { gc::set_finalizer(object.cast(), finalizer, data.cast(), order(unordered)) } {
        Ok(before) => {
            // SAFETY: the caller vouches that both are null or may be written.
            unsafe {
                if let Some(place) = old_finalizer.as_mut() {
                    *place = before.map(|(function, _)| function);
                }
                if let Some(place) = old_data.as_mut() {
                    *place = before.map_or(null_mut(), |(_, data)| data.cast());
                }
            }
            0
        }
        Err(why) => refused(why),
    }
}

/// Runs the finalizers that are due.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize() -> usize {
    gc::finalize()
}

/// Whether finalizers run on demand only.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_finalize_on_demand(on: c_int) {
    gc::finalize_on_demand(on != 0);
}

/// Makes a link.
///
/// # Safety
/// It may be written until its object dies or it is undone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_link(
    link: *mut *mut c_void,
    object: *mut c_void,
    after_finalizer: c_int,
) -> c_int {
    // SAFETY: passed on.
    let made = unsafe { gc::link(link.cast(), object.cast(), after_finalizer != 0) };
    made.map_or_else(refused, |()| 0)
}

/// Undoes a link.
#[unsafe(no_mangle)]
pub extern "C" fn vel_gc_unlink(link: *mut *mut c_void) -> *mut c_void {
    gc::unlink(link.cast()).cast()
}

/// Moves a link.
///
/// # Safety
/// As for [`vel_gc_link`], of `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_move_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int {
    // SAFETY: passed on.
    unsafe { gc::move_link(from.cast(), to.cast()) }.map_or_else(refused, c_int::from)
}
