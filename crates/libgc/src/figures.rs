//! Figures of the heap, and walks over its objects.

use crate::abort::give_up;
use crate::allocate::with_end;
use crate::collect::GC_get_gc_no;
use crate::collection::{FREED, MARK};
use crate::dump::GC_dump;
use crate::variables::GC_non_gc_bytes;
use crate::{lock, say, vel};
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes of blocks and large objects.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_heap_size() -> usize {
    vel::stats().heap_bytes as usize
}

/// Bytes of the heap in which nothing was alive at the last collection, less what was allocated since.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_free_bytes() -> usize {
    let stats = vel::stats();
    stats.heap_bytes.saturating_sub(stats.live_bytes) as usize
}

/// 0: returned memory is no part of the heap any more.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_unmapped_bytes() -> usize {
    0
}

/// Bytes allocated since the last collection that the program asked for.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_bytes_since_gc() -> usize {
    (vel::stats().allocated_bytes as usize).saturating_sub(MARK.load(Relaxed))
}

/// Bytes allocated since the start.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_total_bytes() -> usize {
    vel::stats().allocated_bytes as usize
}

/// Bytes in use: the heap, less what is free.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_memory_use() -> usize {
    vel::stats().live_bytes as usize
}

/// Bytes that were got from the system: the heap and what describes it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_obtained_from_os_bytes() -> usize {
    let stats = vel::stats();
    (stats.heap_bytes + stats.metadata_bytes) as usize
}

/// The five figures at one moment; those whose place is null are left out.
///
/// # Safety
/// Each place is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_heap_usage_safe(
    heap: *mut usize,
    free: *mut usize,
    unmapped: *mut usize,
    since: *mut usize,
    total: *mut usize,
) {
    let figures = [
        (heap, GC_get_heap_size()),
        (free, GC_get_free_bytes()),
        (unmapped, GC_get_unmapped_bytes()),
        (since, GC_get_bytes_since_gc()),
        (total, GC_get_total_bytes()),
    ];
    for (place, figure) in figures.into_iter().filter(|(place, _)| !place.is_null()) {
        // SAFETY: the caller vouches for it.
        unsafe { place.write(figure) };
    }
}

/// Milliseconds for which collections have stopped the program.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_full_gc_total_time() -> c_ulong {
    (vel::stats().pause_ns_total / 1_000_000) as c_ulong
}

/// The nanoseconds beyond these milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_full_gc_total_ns_frac() -> c_ulong {
    (vel::stats().pause_ns_total % 1_000_000) as c_ulong
}

/// Milliseconds of marking with the program stopped.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_stopped_mark_total_time() -> c_ulong {
    (stopped_mark_ns(&vel::stats()) / 1_000_000) as c_ulong
}

/// Nanoseconds of that for each stop.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_avg_stopped_mark_time_ns() -> c_ulong {
    let stats = vel::stats();
    (stopped_mark_ns(&stats) / stats.pauses.max(1)) as c_ulong
}

fn stopped_mark_ns(stats: &vel::Stats) -> u64 {
    stats.root_ns_total + stats.mark_ns_total
}

/// Bytes of libgc's blocks, for programs that compute with them; the heap's own are larger.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_hblk_size() -> usize {
    4096
}

/// Objects beside the one at `address`, in as many bytes as a block of the heap has, that count as marked.
#[unsafe(no_mangle)]
pub extern "C" fn GC_count_set_marks_in_hblk(address: *const c_void) -> c_uint {
    /// Bytes of a block, and of its smallest object.
    const BLOCK: usize = 16 << 10;
    let start = address.map_addr(|address| address & !(BLOCK - 1));
    let places = (0..BLOCK).step_by(vel::GRANULE).map(|offset| start.wrapping_byte_add(offset));
    // SAFETY: any address may be asked about.
    let is_marked = |&place: &*const c_void| unsafe {
        core::ptr::eq(vel::vel_gc_base(place), place) && vel::vel_gc_is_marked(place) != 0
    };
    places.filter(is_marked).count() as c_uint
}

/// Times are always taken.
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_performance_measurement() {}

/// `struct GC_prof_stats_s`.
#[repr(C)]
pub struct Profile {
    heap: usize,
    free: usize,
    unmapped: usize,
    since: usize,
    before: usize,
    non_gc: usize,
    collections: usize,
    markers_less_one: usize,
    reclaimed_since: usize,
    reclaimed_before: usize,
    freed_since: usize,
    obtained: usize,
}

/// Stores the figures at one moment, the first `bytes` bytes of them; how many bytes were stored. Reclaimed
/// memory is not counted: 0.
///
/// # Safety
/// `bytes` bytes can be written at `place`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_prof_stats(place: *mut Profile, bytes: usize) -> usize {
    let since = GC_get_bytes_since_gc();
    let now = Profile {
        heap: GC_get_heap_size(),
        free: GC_get_free_bytes(),
        unmapped: 0,
        since,
        before: GC_get_total_bytes().saturating_sub(since),
        non_gc: GC_non_gc_bytes.load(Relaxed),
        collections: GC_get_gc_no(),
        markers_less_one: 0,
        reclaimed_since: 0,
        reclaimed_before: 0,
        freed_since: GC_get_expl_freed_bytes_since_gc(),
        obtained: GC_get_obtained_from_os_bytes(),
    };
    let stored = bytes.min(size_of::<Profile>());
    // SAFETY: as many as both have. What a newer program asks for beyond is all ones, as with libgc.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping((&raw const now).cast(), stored);
        place.cast::<u8>().add(stored).write_bytes(0xff, bytes - stored);
    }
    stored
}

/// The same: it takes what it needs.
///
/// # Safety
/// As [`GC_get_prof_stats`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_prof_stats_unsafe(place: *mut Profile, bytes: usize) -> usize {
    // SAFETY: passed on.
    unsafe { GC_get_prof_stats(place, bytes) }
}

/// The largest small object of libgc's.
const SMALL_MAX: usize = 2048;

/// Bytes of room in an object for which `bytes` bytes are asked; all ones for large ones.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_size_map_at(bytes: c_int) -> usize {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= SMALL_MAX => with_end(bytes).max(1).next_multiple_of(16),
        _ => usize::MAX,
    }
}

/// Bytes of objects that the program freed since the last collection it asked for.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_expl_freed_bytes_since_gc() -> usize {
    (vel::stats().freed_bytes as usize).saturating_sub(FREED.load(Relaxed))
}

/// Says nothing: what the program has elsewhere is not counted.
#[unsafe(no_mangle)]
pub extern "C" fn GC_incr_bytes_allocd(_bytes: usize) {}

/// Says nothing: see [`GC_incr_bytes_allocd`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_incr_bytes_freed(_bytes: usize) {}

/// Prints what there is to say of the heap's parts: its figures.
#[unsafe(no_mangle)]
pub extern "C" fn GC_dump_regions() {
    GC_dump();
}

/// Prints how many finalizers are due.
#[unsafe(no_mangle)]
pub extern "C" fn GC_dump_finalization() {
    let mut digits = [0; 20];
    // SAFETY: may be called whenever.
    let due = unsafe { vel::vel_gc_due() } as u64;
    say::line(&[b"libgc (Vellum): finalizers due  ", say::decimal(due, &mut digits)]);
}

/// Prints that there are no lists of free objects.
#[unsafe(no_mangle)]
pub extern "C" fn GC_print_free_list(_kind: c_int, _granules: usize) {
    say::line(&[b"libgc (Vellum): free objects are in no lists"]);
}

/// `GC_reachable_object_proc`.
pub type Reachable = unsafe extern "C" fn(object: *mut c_void, bytes: usize, data: *mut c_void);

/// What a walk over the heap notes.
struct Notes {
    objects: *mut (*mut c_void, usize),
    room: usize,
    count: usize,
}

unsafe extern "C" fn note(object: *mut c_void, bytes: usize, notes: *mut c_void) {
    // SAFETY: `GC_enumerate_reachable_objects_inner` passes its notes.
    let notes = unsafe { &mut *notes.cast::<Notes>() };
    if notes.count < notes.room {
        // SAFETY: there is room.
        unsafe { notes.objects.add(notes.count).write((object, bytes)) };
    }
    notes.count += 1;
}

/// Calls `visit(object, bytes, data)` for every object that was found alive or came since. It may call
/// anything that a program may call that holds the allocation lock.
#[unsafe(no_mangle)]
pub extern "C" fn GC_enumerate_reachable_objects_inner(visit: Reachable, data: *mut c_void) {
    lock::GC_alloc_lock();
    let mut notes = Notes { objects: null_mut(), room: 0, count: 0 };
    loop {
        // SAFETY: the function notes what it is given, where there is room.
        unsafe { vel::vel_gc_walk(note, (&raw mut notes).cast()) };
        if notes.count <= notes.room {
            break;
        }
        // Others may allocate meanwhile.
        let room = notes.count + notes.count / 4;
        // SAFETY: memory from malloc, or null, goes back; plain calls.
        notes.objects = unsafe {
            libc::free(notes.objects.cast());
            libc::malloc(room * size_of::<(*mut c_void, usize)>()).cast()
        };
        if notes.objects.is_null() {
            give_up(c"libgc: GC_enumerate_reachable_objects_inner: out of memory");
        }
        (notes.room, notes.count) = (room, 0);
    }
    for index in 0..notes.count {
        // SAFETY: that many were noted; nothing is collected meanwhile. The program's own function.
        unsafe {
            let (object, bytes) = notes.objects.add(index).read();
            visit(object, bytes, data);
        }
    }
    // SAFETY: from malloc, or null.
    unsafe { libc::free(notes.objects.cast()) };
    lock::GC_alloc_unlock();
}

/// `argument`: stacks are cleared by nobody here.
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_stack(argument: *mut c_void) -> *mut c_void {
    argument
}

/// Says nothing: the data of finalizers are always scanned.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_finalizer_structures() {}

/// Says nothing; that it takes a word keeps that from being left out by a compiler.
#[unsafe(no_mangle)]
pub extern "C" fn GC_noop1(word: usize) {
    core::hint::black_box(word);
}

/// The same of a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_noop1_ptr(pointer: *mut c_void) {
    core::hint::black_box(pointer);
}
