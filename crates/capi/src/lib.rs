//! `libvelmeasure`: measurement for C and C++ programs.
//!
//! Has the functions of `include/vellum_measure.h`, which call `vellum-timing` (clocks, recorder, suites,
//! marks), `vellum-experiment` (duels) and `vellum-measure` (samples, series, comparison). This crate only
//! converts: each function checks C's arguments, calls one Rust function, and converts its result.
//!
//! ```text
//! vellum_measure.h ── vel_stamp, vel_between: inline, no call
//!        │
//!        ├─ clock · recorder · suite · marks ─▶ vellum-timing
//!        ├─ duel ────────────────────────────▶ vellum-experiment
//!        └─ sample · series ─────────────────▶ vellum-measure
//! ```
//!
//! Rules:
//!
//! - Every object that a function returns is a `Box` turned into a pointer. Its `_free` function, or the
//!   function documented to consume it, turns the pointer back into the `Box`.
//! - A null object is reported as an error, without a crash; a null string counts as the empty string.
//! - A function that fails leaves its outputs unchanged. The calling thread reads the reason with
//!   [`vel_measure_error`](error::vel_measure_error).
//! - No panic unwinds into C: a panic means a bug in this library, and aborts.

#![allow(
    clippy::missing_safety_doc,
    reason = "the header says what each function may be given; C has no other place"
)]

/// Functions that read one object: a result for null, and the function that reads it.
macro_rules! reads {
    ($($(#[$doc:meta])* $name:ident($object:ty) -> $result:ty: $null:expr, $read:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *const $object) -> $result {
            // SAFETY: by the header, `object` is null or a live object that no other thread uses.
            unsafe { $crate::error::shared(object) }.map_or($null, $read)
        }
    )*};
}

/// Functions that free an object.
macro_rules! frees {
    ($($(#[$doc:meta])* $name:ident($object:ty);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *mut $object) {
            // SAFETY: by the header, `object` is null, or was made by this library and not freed before.
            drop(unsafe { $crate::error::taken_back(object) });
        }
    )*};
}

pub mod clock;
pub mod duel;
pub mod error;
pub mod marks;
pub mod recorder;
pub mod sample;
pub mod series;
pub mod suite;

use std::ffi::{CStr, c_char};

/// The text at `text`, or none if it is null. Invalid UTF-8 is replaced.
///
/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and by `# Safety` NUL-terminated.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
