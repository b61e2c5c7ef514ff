//! The `GC_*` environment variables. Common ones have effect; each of the others is reported in one line.

use crate::say;
use core::ffi::{CStr, c_uint};

#[derive(Default, Clone, Copy)]
pub(crate) struct Wishes {
    pub maximum_bytes: Option<usize>,
    pub initial_bytes: Option<usize>,
    pub divisor: Option<usize>,
    pub slice_us: Option<c_uint>,
    pub markers: Option<c_uint>,
    pub never_collects: bool,
    pub prints: bool,
    pub finds_leaks: bool,
    /// Makes every collection a full one.
    pub only_whole: bool,
}

/// Variables without effect, with the reason.
const IGNORED: [(&CStr, &[u8]); 10] = [
    (c"GC_NPROCS", b"the collector chooses"),
    (
        c"GC_FULL_FREQUENCY",
        b"the collector chooses; GC_DISABLE_INCREMENTAL=1 makes every collection a whole one",
    ),
    (c"GC_UNMAP_THRESHOLD", b"memory is given back by age"),
    (c"GC_FORCE_UNMAP_ON_GCOLLECT", b"memory is given back by age; GC_gcollect_and_unmap does it at once"),
    (c"GC_USE_ENTIRE_HEAP", b"there is no such choice"),
    (c"GC_TRACE", b"use vellum gc-stat"),
    (c"GC_DUMP_REGULARLY", b"use vellum gc-stat"),
    (c"GC_BACKTRACES", b"use vellum cost"),
    (c"GC_PRINT_BACK_HEIGHT", b"it is not kept"),
    (c"GC_RETRY_SIGNALS", b"signals are not lost"),
];

/// Reads all variables.
pub(crate) fn read() -> Wishes {
    let mut wishes = Wishes {
        maximum_bytes: get(c"GC_MAXIMUM_HEAP_SIZE").and_then(size),
        initial_bytes: get(c"GC_INITIAL_HEAP_SIZE").and_then(size),
        divisor: get(c"GC_FREE_SPACE_DIVISOR").and_then(size),
        slice_us: None,
        markers: get(c"GC_MARKERS").and_then(size).and_then(|count| c_uint::try_from(count).ok()),
        never_collects: is_on(c"GC_DONT_GC"),
        finds_leaks: is_on(c"GC_FIND_LEAK"),
        only_whole: is_on(c"GC_DISABLE_INCREMENTAL"),
        prints: is_on(c"GC_PRINT_STATS") || is_on(c"GC_PRINT_VERBOSE_STATS"),
    };
    if is_on(c"GC_ENABLE_INCREMENTAL") {
        let milliseconds = get(c"GC_PAUSE_TIME_TARGET").and_then(size).unwrap_or(1);
        wishes.slice_us = Some(c_uint::try_from(milliseconds.clamp(1, 1000) * 1000).unwrap_or(1000));
    }
    for (name, why) in IGNORED {
        if get(name).is_some() {
            say::line(&[b"libgc (Vellum): ", name.to_bytes(), b" is ignored: ", why]);
        }
    }
    for name in [c"GC_MAXIMUM_HEAP_SIZE", c"GC_INITIAL_HEAP_SIZE", c"GC_FREE_SPACE_DIVISOR", c"GC_MARKERS"] {
        if let Some(text) = get(name)
            && size(text).is_none()
        {
            say::line(&[
                b"libgc (Vellum): ",
                name.to_bytes(),
                b"=",
                text,
                b" is ignored: not a number (k, m, g may follow)",
            ]);
        }
    }
    wishes
}

/// The value of a variable; `None` in a program with more rights than its caller, who sets the variables.
fn get(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: getauxval has no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: `name` is a C string; the text belongs to the environment, which stays.
    let text = unsafe { libc::getenv(name.as_ptr()) };
    (!text.is_null()).then(|| say::bytes(text))
}

/// True if a switch is set to a value other than 0.
fn is_on(name: &CStr) -> bool {
    get(name).is_some_and(|text| text != b"0")
}

/// Parses a number with an optional suffix k, m, g or t for powers of 1024.
fn size(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shift = match text.get(digits..)? {
        [] => 0,
        [b'k' | b'K'] => 10,
        [b'm' | b'M'] => 20,
        [b'g' | b'G'] => 30,
        [b't' | b'T'] => 40,
        _ => return None,
    };
    if digits == 0 {
        return None;
    }
    let number = text[..digits]
        .iter()
        .try_fold(0_usize, |sum, digit| sum.checked_mul(10)?.checked_add(usize::from(digit - b'0')))?;
    number.checked_mul(1 << shift)
}
