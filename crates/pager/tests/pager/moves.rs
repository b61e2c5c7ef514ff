//! Moves that the kernel answers wrongly, as it does while it migrates pages: nothing is lost, and nothing is
//! ever put in place of what is.

use crate::common::{Random, SKIPPED, Shaky, config, end, skip_alone, start};
use rustix::io::Errno;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vellum_pager::{Event, FRAMES_MIN, PAGE, Pager};
use vellum_sys::inject::{self, Wrong};

/// Many times the frames.
const PAGES: usize = 6 * FRAMES_MIN as usize;

fn word(object: *mut u8, page: usize) -> *mut u64 {
    // SAFETY: within the object.
    unsafe { object.add(page * PAGE).cast() }
}

/// Writes and reads pages, in order and not, and has the object change its place, while moves are answered
/// wrongly.
fn exercise(pager: &'static Pager<&'static Shaky>, random: &mut Random) {
    let mut object = pager.create(PAGES * PAGE, 1, true).expect("room");
    let mut model = vec![0u64; PAGES];
    for step in 0..6 * PAGES {
        let page = if (step / PAGES).is_multiple_of(2) { step % PAGES } else { random.below(PAGES) };
        let place = word(object.as_ptr(), page);
        // SAFETY: within the object, which this thread alone uses.
        unsafe {
            assert_eq!(place.read_volatile(), model[page], "page {page}");
            if random.below(2) == 0 {
                model[page] = random.next();
                place.write_volatile(model[page]);
            }
        }
        if random.below(200) == 0 {
            // SAFETY: the old place is used no more.
            object = unsafe { pager.relocate(object, PAGES * PAGE) }.expect("room");
        }
        if random.below(100) == 0 {
            let (first, count) = (random.below(PAGES), 1 + random.below(9));
            let end = (first + count).min(PAGES);
            // SAFETY: the model says that nothing of it is needed.
            unsafe { pager.zero(word(object.as_ptr(), first).cast(), (end - first) * PAGE) };
            model[first..end].fill(0);
        }
    }
    pager.validate().expect("an invariant");
    for (page, &expected) in model.iter().enumerate() {
        // SAFETY: within the object.
        assert_eq!(unsafe { word(object.as_ptr(), page).read_volatile() }, expected, "page {page}");
    }
    // SAFETY: the object is used no more.
    unsafe { pager.destroy(object) }.expect("an object");
}

/// The rule for wrong answers is the process's.
#[test]
fn what_was_moved_and_not_counted_is_not_lost() {
    vellum_skip::alone(|| {
        let mut random = Random::new();
        let Some(pager) = start(config(FRAMES_MIN), Shaky::lasting(0, 8192)) else { return };
        let wrongs = [
            (Wrong::Uncounted, Errno::EXIST),
            (Wrong::Uncounted, Errno::AGAIN),
            (Wrong::Uncounted, Errno::NOENT),
            (Wrong::Uncounted, Errno::BUSY),
            (Wrong::Short, Errno::AGAIN),
            (Wrong::Short, Errno::BUSY),
            (Wrong::Short, Errno::NOMEM),
            (Wrong::Short, Errno::INVAL),
        ];
        for (wrong, errno) in wrongs {
            for every in [2, 7, 40] {
                inject::moves(wrong, every, errno);
                exercise(pager, &mut random);
                eprintln!("{wrong:?} {errno:?}: {} of them, one in {every}", inject::given());
                inject::moves(Wrong::No, 1, errno);
            }
        }
        end(pager);
    });
}

/// Pages that a program drops read as zero, wherever they were.
#[test]
fn what_the_program_drops_reads_as_zero() {
    let Some(pager) = start(config(FRAMES_MIN), Shaky::lasting(0, 8192)) else { return };
    let object = pager.create(PAGES * PAGE, 1, false).expect("room");
    for round in 1..4u64 {
        for page in 0..PAGES {
            // SAFETY: within the object.
            unsafe { word(object.as_ptr(), page).write_volatile(round) };
        }
        // SAFETY: nothing of it is needed; the rounds differ in what is in memory.
        unsafe { pager.zero(object.as_ptr(), (PAGES - round as usize) * PAGE) };
        pager.validate().expect("an invariant");
        for page in 0..PAGES {
            let kept = page >= PAGES - round as usize;
            // SAFETY: within the object.
            let found = unsafe { word(object.as_ptr(), page).read_volatile() };
            assert_eq!(found, if kept { round } else { 0 }, "page {page}");
        }
    }
    assert!(pager.count(Event::Flushed) > 0);
    end(pager);
}

/// A hole where a page should be is the end of the program, never zeros: by a fault there, and when the page
/// is to be taken away.
#[test]
fn a_page_that_is_gone_stops_the_program() {
    let Some(by) = vellum_skip::role() else {
        for by in ["fault", "taking"] {
            let run = vellum_skip::again(a_page_that_is_gone_stops_the_program, by).output();
            let run = run.expect("this test runs");
            let said = String::from_utf8_lossy(&run.stderr);
            if run.status.code() == Some(SKIPPED) {
                // The process itself has said why.
                return eprintln!("{said}");
            }
            assert_eq!(run.status.signal(), Some(libc::SIGABRT), "{by}: {:?} {said}", run.status);
            assert!(said.contains("is gone: the kernel has lost it"), "{by}: {said}");
            assert!(!said.contains("zero"), "{by}: {said}");
        }
        return;
    };
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let Some(pager) = start(config(FRAMES_MIN), Shaky::lasting(0, 8192)) else { skip_alone() };
    let object = pager.create(PAGES * PAGE, 1, true).expect("room");
    // SAFETY: within the object; the page is there after the write, and the call that drops it is one that
    // nobody sees.
    unsafe {
        word(object.as_ptr(), 9).write_volatile(7);
        libc::madvise(word(object.as_ptr(), 9).cast(), PAGE, libc::MADV_DONTNEED);
    }
    let pages = if by == "fault" { 9..10 } else { 10..PAGES };
    for page in pages {
        // SAFETY: within the object.
        let found = unsafe { word(object.as_ptr(), page).read_volatile() };
        SEEN.fetch_add(1, Relaxed);
        if page == 9 {
            eprintln!("zeros, or what else is there: {found}");
        }
    }
    // Others go on being brought until the page's turn comes.
    for round in 0..4 * PAGES {
        // SAFETY: as above.
        unsafe { word(object.as_ptr(), 10 + round % (PAGES - 10)).write_volatile(1) };
    }
    eprintln!("not stopped");
}
