//! Roots in static data. The collector finds the data of the program and its libraries; the program registers
//! any other range.

use crate::abort::give_up;
use crate::forms::values;
use crate::hooks::{FILTER, HasRoots, ask_of_images};
use crate::variables::GC_no_dls;
use crate::{say, start, state, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Relaxed, Release};

/// Adds the words from `start` up to `end` as roots.
#[unsafe(no_mangle)]
pub extern "C" fn GC_add_roots(start: *mut c_void, end: *mut c_void) {
    start::ensure();
    // SAFETY: the program keeps the range readable until it is removed (gc.h).
    if unsafe { vel::vel_gc_roots_add(start, end) } != 0 {
        // Without these roots, objects in use would be freed.
        give_up(c"libgc: GC_add_roots: out of memory");
    }
}

/// Undoes [`GC_add_roots`] for ranges within this one.
#[unsafe(no_mangle)]
pub extern "C" fn GC_remove_roots(start: *mut c_void, end: *mut c_void) {
    start::ensure();
    // SAFETY: the function accepts any range.
    unsafe { vel::vel_gc_roots_remove(start, end) };
}

/// Excludes static data from `start` up to `end`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_exclude_static_roots(start: *mut c_void, end: *mut c_void) {
    start::ensure();
    // SAFETY: the function accepts any range. Without memory the range is still scanned, which is safe.
    unsafe { vel::vel_gc_roots_exclude(start, end) };
}

/// Undoes every [`GC_add_roots`]; static data is still scanned.
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_roots() {
    start::ensure();
    // SAFETY: the function accepts any range.
    unsafe { vel::vel_gc_roots_remove(core::ptr::null(), core::ptr::without_provenance(usize::MAX)) };
}

/// Undoes every [`GC_exclude_static_roots`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_exclusion_table() {
    if state::is_started() {
        // SAFETY: the function accepts any range.
        unsafe {
            vel::vel_gc_roots_include(core::ptr::null(), core::ptr::without_provenance(usize::MAX));
        }
    }
}

/// Sets the filter for the data of each library. The filter is called with the collector's lock held and must
/// not call the collector.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_has_static_roots_callback(filter: Option<HasRoots>) {
    start::ensure();
    FILTER.store(filter.map_or(null_mut(), |filter| filter as *mut c_void), Release);
    ask_of_images();
}

/// Excludes libraries' data from the next collection on.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_no_dls(on: c_int) {
    GC_no_dls.store(on, Relaxed);
    if state::is_started() {
        ask_of_images();
    }
}

values! {
    /// The value of [`GC_set_no_dls`].
    GC_get_no_dls: c_int = GC_no_dls.load(Relaxed);
}

/// The query over the loader's segments.
struct Wanted {
    address: usize,
    is_found: bool,
}

/// Returns 1 if `address` lies in the data of a library, which may be unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_tmp_root(address: *mut c_void) -> c_int {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
        // SAFETY: the loader passes its structure with `dlpi_phnum` headers and a C string; `wanted` is the
        // local below.
        unsafe {
            let (info, wanted) = (&*info, &mut *wanted.cast::<Wanted>());
            if say::bytes(info.dlpi_name).is_empty() {
                return 0;
            }
            for header in core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) {
                let start = (info.dlpi_addr + header.p_vaddr) as usize;
                let is_data = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0;
                wanted.is_found |= is_data && wanted.address.wrapping_sub(start) < header.p_memsz as usize;
            }
            c_int::from(wanted.is_found)
        }
    }
    let mut wanted = Wanted { address: address.addr(), is_found: false };
    // SAFETY: `look` accepts the loader's structures and the pointer to `wanted`.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut wanted).cast()) };
    c_int::from(wanted.is_found)
}
