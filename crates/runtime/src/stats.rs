//! The C library's functions that report on the allocator and tune it.
//!
//! They report the figures of the page layer and of slabs (memory for small blocks), in the fields with the
//! closest meaning. Tuning parameters are accepted and have no effect.

use core::ffi::{c_int, c_void};
use vellum_malloc::{self as front, Line};
use vellum_pages::Pages;
use vellum_wire::Counter;

/// `malloc_trim`: returns all free memory to the kernel; the requested padding is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(!front::is_passthrough() && front::trim() > 0)
}

/// `mallopt`: accepts every parameter and has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(_parameter: c_int, _value: c_int) -> c_int {
    1
}

/// The result of `mallinfo2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MallInfo2 {
    /// Bytes from the kernel that were not returned.
    pub arena: usize,
    /// Free extents: not counted, always 0.
    pub ordblks: usize,
    /// Always 0.
    pub smblks: usize,
    /// Always 0: no block has a separate mapping.
    pub hblks: usize,
    /// Always 0, like `hblks`.
    pub hblkhd: usize,
    /// The maximum of bytes in use.
    pub usmblks: usize,
    /// Discardable bytes.
    pub fsmblks: usize,
    /// Bytes of blocks in use.
    pub uordblks: usize,
    /// Cached bytes, and free bytes in slabs.
    pub fordblks: usize,
    /// Cached bytes.
    pub keepcost: usize,
}

/// `mallinfo2`.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> MallInfo2 {
    let slot = Pages::global().slot();
    let get = |counter| slot.get(counter) as usize;
    let (live, cached) = (get(Counter::NowLive), get(Counter::NowCached));
    let figures = front::figures(live);
    MallInfo2 {
        arena: figures.in_use + figures.free_in_slabs + cached,
        usmblks: get(Counter::PeakLive),
        fsmblks: get(Counter::NowMarked),
        uordblks: figures.in_use,
        fordblks: figures.free_in_slabs + cached,
        keepcost: cached,
        ..MallInfo2::default()
    }
}

/// The result of `mallinfo`: the same figures as `int`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MallInfo {
    /// The fields of [`MallInfo2`], in order.
    pub fields: [c_int; 10],
}

/// `mallinfo`: figures beyond `INT_MAX` are given as `INT_MAX`.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> MallInfo {
    let wide = mallinfo2();
    let fields = [
        wide.arena,
        wide.ordblks,
        wide.smblks,
        wide.hblks,
        wide.hblkhd,
        wide.usmblks,
        wide.fsmblks,
        wide.uordblks,
        wide.fordblks,
        wide.keepcost,
    ];
    MallInfo { fields: fields.map(|value| c_int::try_from(value).unwrap_or(c_int::MAX)) }
}

/// `malloc_stats`: a few lines on standard error.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    let info = mallinfo2();
    let figures = [
        ("in use bytes", info.uordblks),
        ("free in slabs", info.fordblks - info.keepcost),
        ("cached bytes", info.keepcost),
        ("most in use", info.usmblks),
    ];
    for (name, value) in figures {
        Line::new().text("vellum: ").text(name).text(" = ").decimal(value as u64).text("\n").write();
    }
}

/// `malloc_info`: an XML document with the same figures, in the C library's outer form.
///
/// # Safety
/// `stream` is a stdio stream open for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let info = mallinfo2();
    let mut text = Line::new();
    text.text("<malloc version=\"1\">\n<system type=\"current\" size=\"").decimal(info.arena as u64);
    text.text("\"/>\n<system type=\"max\" size=\"").decimal(info.usmblks as u64);
    text.text("\"/>\n<total type=\"rest\" count=\"0\" size=\"").decimal(info.fordblks as u64);
    text.text("\"/>\n</malloc>\n");
    let bytes = text.bytes();
    // SAFETY: `stream` is open for writing, by the `# Safety` section; `bytes` is a local slice.
    let written = unsafe { libc::fwrite(bytes.as_ptr().cast::<c_void>(), 1, bytes.len(), stream) };
    if written == bytes.len() { 0 } else { -1 }
}
