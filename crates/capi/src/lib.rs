//! `libvelmeasure`: measurement for C and C++ programs.
//!
//! The functions of `include/vellum_measure.h`, over `vellum-timing` (clocks, recorder, suites, marks,
//! profiles), `vellum-experiment` (duels) and `vellum-measure` (samples, series, comparison). Nothing is
//! measured or computed here: each function takes C's arguments apart, calls the one function that does the
//! work, and puts the answer together.
//!
//! ```text
//! vellum_measure.h ── vel_stamp, vel_between: inline, no call
//!        │
//!        ├─ error · clock · sample · series · recorder · suite · marks · profile ─▶ vellum-timing
//!        └─ duel ─▶ vellum-experiment
//! ```
//!
//! Rules:
//!
//! - An object handed out is a `Box` turned into a pointer; its `_free` (or the function said to consume it)
//!   turns it back.
//! - A null object is a reported error, never a crash; a null string is the empty one.
//! - A function that fails leaves its outputs alone and says why in
//!   [`vel_measure_error`](error::vel_measure_error), a text of the calling thread's.
//! - No unwinding crosses into C: a panic here is a broken invariant of ours, and aborts.

#![allow(
    clippy::missing_safety_doc,
    reason = "the header says what each function may be given; C has no other place"
)]

pub mod clock;
pub mod duel;
pub mod error;
pub mod marks;
pub mod profile;
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
    // SAFETY: the caller vouches for it.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
