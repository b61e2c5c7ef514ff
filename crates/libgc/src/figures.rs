//! Functions that return the heap's figures (sizes, times, counts), and walks over its objects.

use crate::abort::give_up;
use crate::allocate::with_end;
use crate::collect::GC_get_gc_no;
use crate::collection::{FREED, MARK};
use crate::dump::GC_dump;
use crate::forms::{nothing, passes, same, values};
use crate::variables::GC_non_gc_bytes;
use crate::{lock, say, vel};
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

values! {
    /// Bytes of blocks and large objects.
    GC_get_heap_size: usize = vel::stats().heap_bytes as usize;
    /// Bytes of the heap that were free after the last collection, less the allocations since.
    GC_get_free_bytes: usize = {
        let stats = vel::stats();
        stats.heap_bytes.saturating_sub(stats.live_bytes) as usize
    };
    /// Returns 0: returned memory is not part of the heap.
    GC_get_unmapped_bytes: usize = 0;
    /// Bytes allocated since the program's last requested collection.
    GC_get_bytes_since_gc: usize = (vel::stats().allocated_bytes as usize).saturating_sub(MARK.load(Relaxed));
    /// Bytes allocated since the start.
    GC_get_total_bytes: usize = vel::stats().allocated_bytes as usize;
    /// Bytes in use: the heap without its free memory.
    GC_get_memory_use: usize = vel::stats().live_bytes as usize;
    /// Bytes from the kernel: the heap and its metadata.
    GC_get_obtained_from_os_bytes: usize = {
        let stats = vel::stats();
        (stats.heap_bytes + stats.metadata_bytes) as usize
    };
    /// Milliseconds of all pauses.
    GC_get_full_gc_total_time: c_ulong = (vel::stats().pause_ns_total / 1_000_000) as c_ulong;
    /// The nanoseconds beyond the milliseconds of [`GC_get_full_gc_total_time`].
    GC_get_full_gc_total_ns_frac: c_ulong = (vel::stats().pause_ns_total % 1_000_000) as c_ulong;
    /// Milliseconds of marking in pauses.
    GC_get_stopped_mark_total_time: c_ulong = (stopped_mark_ns(&vel::stats()) / 1_000_000) as c_ulong;
    /// Nanoseconds of marking per pause.
    GC_get_avg_stopped_mark_time_ns: c_ulong = {
        let stats = vel::stats();
        (stopped_mark_ns(&stats) / stats.pauses.max(1)) as c_ulong
    };
    /// The size of libgc's blocks in bytes, for programs that compute with it. The heap's own are larger.
    GC_get_hblk_size: usize = 4096;
    /// Bytes that the program freed since its last requested collection.
    GC_get_expl_freed_bytes_since_gc: usize =
        (vel::stats().freed_bytes as usize).saturating_sub(FREED.load(Relaxed));
}

/// Stores the five figures; null places are skipped.
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
        // SAFETY: the place can be written, by the `# Safety` section; nulls were filtered out.
        unsafe { place.write(figure) };
    }
}

fn stopped_mark_ns(stats: &vel::Stats) -> u64 {
    stats.root_ns_total + stats.mark_ns_total
}

/// Counts the marked objects in the block that contains `address`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_count_set_marks_in_hblk(address: *const c_void) -> c_uint {
    /// The heap's block size in bytes.
    const BLOCK: usize = 16 << 10;
    let start = address.map_addr(|address| address & !(BLOCK - 1));
    let places = (0..BLOCK).step_by(vel::GRANULE).map(|offset| start.wrapping_byte_add(offset));
    // SAFETY: both functions accept any address.
    let is_marked = |&place: &*const c_void| unsafe {
        core::ptr::eq(vel::vel_gc_base(place), place) && vel::vel_gc_is_marked(place) != 0
    };
    places.filter(is_marked).count() as c_uint
}

nothing! {
    /// Has no effect: times are always measured.
    GC_start_performance_measurement();
    /// Has no effect: memory outside the heap is not counted.
    GC_incr_bytes_allocd(usize);
    /// Has no effect: see [`GC_incr_bytes_allocd`].
    GC_incr_bytes_freed(usize);
    /// Has no effect: data of finalizers is always scanned.
    GC_push_finalizer_structures();
}

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

/// Stores the first `bytes` bytes of the figures; returns how many were stored. Figures of reclaimed memory
/// are 0.
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
    // SAFETY: `place` has `bytes` bytes (`# Safety`). Unknown fields are all ones, as with libgc.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping((&raw const now).cast(), stored);
        place.cast::<u8>().add(stored).write_bytes(0xff, bytes - stored);
    }
    stored
}

passes! {
    /// [`GC_get_prof_stats`], which takes the locks that it needs.
    "The conditions of [`GC_get_prof_stats`] apply."
    GC_get_prof_stats_unsafe(place: *mut Profile, bytes: usize) -> usize = GC_get_prof_stats(place, bytes);
}

/// The size of libgc's largest small object.
const SMALL_MAX: usize = 2048;

/// The usable bytes of an object of `bytes` bytes; all ones for large ones.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_size_map_at(bytes: c_int) -> usize {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= SMALL_MAX => with_end(bytes).max(1).next_multiple_of(16),
        _ => usize::MAX,
    }
}

same! {
    /// Prints the heap's figures, which stand for its regions.
    GC_dump_regions() = GC_dump;
}

/// Prints the number of due finalizers.
#[unsafe(no_mangle)]
pub extern "C" fn GC_dump_finalization() {
    let mut digits = [0; 20];
    // SAFETY: the function has no preconditions.
    let due = unsafe { vel::vel_gc_due() } as u64;
    say::line(&[b"libgc (Vellum): finalizers due  ", say::decimal(due, &mut digits)]);
}

/// Prints that no lists of free objects exist.
#[unsafe(no_mangle)]
pub extern "C" fn GC_print_free_list(_kind: c_int, _granules: usize) {
    say::line(&[b"libgc (Vellum): free objects are in no lists"]);
}

/// `GC_reachable_object_proc`.
pub type Reachable = unsafe extern "C" fn(object: *mut c_void, bytes: usize, data: *mut c_void);

/// The objects that a walk over the heap has found.
struct Notes {
    objects: *mut (*mut c_void, usize),
    room: usize,
    count: usize,
}

unsafe extern "C" fn note(object: *mut c_void, bytes: usize, notes: *mut c_void) {
    // SAFETY: `GC_enumerate_reachable_objects_inner` passes a pointer to its local `Notes`.
    let notes = unsafe { &mut *notes.cast::<Notes>() };
    if notes.count < notes.room {
        // SAFETY: `count` is below `room`, the number of entries in the array.
        unsafe { notes.objects.add(notes.count).write((object, bytes)) };
    }
    notes.count += 1;
}

/// Calls `visit(object, bytes, data)` for every object that was alive at the last collection or is newer.
/// `visit` may call any function that is allowed with the allocation lock held.
#[unsafe(no_mangle)]
pub extern "C" fn GC_enumerate_reachable_objects_inner(visit: Reachable, data: *mut c_void) {
    lock::GC_alloc_lock();
    let mut notes = Notes { objects: null_mut(), room: 0, count: 0 };
    loop {
        // SAFETY: `note` writes only to the array, within its room.
        unsafe { vel::vel_gc_walk(note, (&raw mut notes).cast()) };
        if notes.count <= notes.room {
            break;
        }
        // Other threads may allocate in between.
        let room = notes.count + notes.count / 4;
        // SAFETY: `notes.objects` is null or came from malloc, and is not used after the call.
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
        // SAFETY: `count` entries were written, and no collection runs, so the objects exist.
        unsafe {
            let (object, bytes) = notes.objects.add(index).read();
            visit(object, bytes, data);
        }
    }
    // SAFETY: the array is null or came from malloc, and is not used any more.
    unsafe { libc::free(notes.objects.cast()) };
    lock::GC_alloc_unlock();
}

/// Returns `argument`: stacks are not cleared here.
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_stack(argument: *mut c_void) -> *mut c_void {
    argument
}

/// Has no effect, but a compiler must compute the argument.
#[unsafe(no_mangle)]
pub extern "C" fn GC_noop1(word: usize) {
    core::hint::black_box(word);
}

/// [`GC_noop1`] for a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_noop1_ptr(pointer: *mut c_void) {
    core::hint::black_box(pointer);
}
