//! Pages with locks of the C library stay in memory while all others come and go, and always leave frames for
//! these.

use crate::common::{Shaky, config, end, start};
use std::os::unix::fs::FileExt;
use vellum_pager::{FRAMES_MIN, PAGE};

/// Pages of an object: several times the frames.
const PAGES: usize = 4 * FRAMES_MIN as usize;

/// Whether the page has a frame at its own address, from `/proc/self/pagemap`.
fn is_there(page: *const u8) -> bool {
    const PRESENT_OR_SWAPPED: u64 = 3 << 62;
    let mut entry = [0; 8];
    let file = std::fs::File::open("/proc/self/pagemap").expect("this process's own");
    file.read_exact_at(&mut entry, (page.addr() / PAGE * 8) as u64).expect("an entry for each page");
    u64::from_ne_bytes(entry) & PRESENT_OR_SWAPPED != 0
}

#[test]
fn pages_with_locks_stay_and_leave_frames_for_the_rest() {
    let Some(pager) = start(config(FRAMES_MIN), Shaky::lasting(0, 8192)) else { return };
    let object = pager.create(PAGES * PAGE, 1, true).expect("room");
    // SAFETY: within the object.
    let page = |number: usize| unsafe { object.as_ptr().add(number * PAGE) };
    let walk = || {
        for number in 0..PAGES {
            // SAFETY: within the object, which this thread alone uses.
            unsafe { page(number).cast::<u64>().write_volatile(number as u64) };
        }
    };
    walk();
    assert!(!is_there(page(5)), "a page that is not kept goes");
    // A lock that lies on two pages.
    // SAFETY: within the object.
    pager.keep(unsafe { page(6).sub(8) }, 56);
    for _ in 0..3 {
        walk();
        assert!(is_there(page(5)) && is_there(page(6)), "both pages stay");
    }
    // More than there may be: the program goes on, and nothing is lost.
    pager.keep(page(0), PAGES * PAGE);
    walk();
    for number in 0..PAGES {
        // SAFETY: as above.
        assert_eq!(unsafe { page(number).cast::<u64>().read_volatile() }, number as u64);
    }
    pager.validate().expect("an invariant");
    // A kept page is free again with its object.
    // SAFETY: used no more.
    unsafe { pager.destroy(object) }.expect("an object");
    let next = pager.create(PAGES * PAGE, 1, true).expect("room");
    pager.keep(next.as_ptr(), 8);
    for number in 0..PAGES {
        // SAFETY: within the object.
        unsafe { next.as_ptr().add(number * PAGE).write_volatile(1) };
    }
    assert!(is_there(next.as_ptr()), "there is room for another");
    end(pager);
}
