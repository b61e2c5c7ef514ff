//! Has the heap of a test program lie in the process's pager, in few page frames, whatever the tests do then. `paged_X` is `X` so.
//!
//! It is asked before `main`: the first test that uses the heap settles where it lies.

use vellum_pager::{Event, process};

/// The frames: a fraction of what the tests use, but for a heap of given size, all of which is in use all the time.
const BYTES: u64 = if IS_TIGHT { 8 << 20 } else { 2 << 20 };
const IS_TIGHT: bool =
    matches!(env!("CARGO_CRATE_NAME").as_bytes(), [_, _, _, _, _, _, b't', b'i', b'g', b'h', b't', ..]);

#[used]
#[unsafe(link_section = ".init_array")]
static ASKS: extern "C" fn() = ask;

extern "C" fn ask() {
    assert!(process::page_to(b"/var/tmp", BYTES), "so many frames, and a short path");
}

/// A program whose heap was elsewhere has tested nothing.
#[used]
#[unsafe(link_section = ".fini_array")]
static LOOKS: extern "C" fn() = look;

extern "C" fn look() {
    let Some(pager) = process::ready() else {
        eprintln!("skipped: this kernel or privilege has no userfaultfd, or there is no room for a store");
        return;
    };
    let touched = [Event::WriteZeroFilled, Event::WriteNotRead, Event::ReadZeroFilled, Event::ReadNotRead];
    let pages: u64 = touched.iter().map(|&event| pager.count(event)).sum();
    let counts: Vec<_> = Event::ALL.iter().map(|&event| (event, pager.count(event))).collect();
    eprintln!("{counts:?}");
    assert!(pages > 0, "the heap was not on paged blocks");
}
