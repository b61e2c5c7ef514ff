//! Puts the heap of a test program into the process's pager, in few page frames, if the environment says so
//! (`rows`).
//!
//! It is asked before `main`: the first test that uses the heap settles where it lies.

use vellum_pager::{Event, process};

/// Frames that are a fraction of what most tests use, in bytes.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) const FEW: Option<u64> = Some(2 << 20);
/// The same for a heap of given size, all of which is in use all the time.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) const TIGHT: Option<u64> = Some(8 << 20);

#[used]
#[unsafe(link_section = ".init_array")]
static ASKS: extern "C" fn() = ask;

fn bytes() -> Option<u64> {
    std::env::var("VELLUM_TEST_PAGED").ok().map(|bytes| bytes.parse().expect("a number of bytes"))
}

extern "C" fn ask() {
    if let Some(bytes) = bytes() {
        assert!(process::page_to(b"/var/tmp", bytes), "these frames, and a short path");
    }
}

/// A program whose heap was elsewhere has tested nothing.
#[used]
#[unsafe(link_section = ".fini_array")]
static LOOKS: extern "C" fn() = look;

extern "C" fn look() {
    if bytes().is_none() {
        return;
    }
    let Some(pager) = process::ready() else {
        vellum_skip::skip("this kernel or privilege has no userfaultfd, or there is no room for a store");
        return;
    };
    let touched = [Event::WriteZeroFilled, Event::WriteNotRead, Event::ReadZeroFilled, Event::ReadNotRead];
    let pages: u64 = touched.iter().map(|&event| pager.count(event)).sum();
    let counts: Vec<_> = Event::ALL.iter().map(|&event| (event, pager.count(event))).collect();
    eprintln!("{counts:?}");
    assert!(pages > 0, "the heap was not on paged blocks");
}

/// Every other heap than that of mark-sweep in memory: for programs whose own heap that is.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) const ELSEWHERE: &[(&str, Option<u64>)] = &[
    ("on_appel", None),
    ("on_copying", None),
    ("on_mark_sweep", FEW),
    ("on_copying", FEW),
    ("on_appel", FEW),
];
