//! Tests of a store without room: a limit on file sizes, and file systems that keep files in memory.

use crate::common::{Limit, Pages, end, start, start_in};
use rustix::io::Errno;
use vellum_pager::{FRAMES_MIN, PAGE, Refused, StartError};

/// Pages of an object: four steps.
const PAGES: usize = 2048;

fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads the limit, which lives here.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

/// No object is made without room in the store. Others keep every page, and more are made with room.
#[test]
fn without_room_objects_are_refused() {
    vellum_skip::alone(|| {
        let _limit = Limit::of_seconds(60);
        let Some(pager) = start(FRAMES_MIN) else { return };
        // The head of the store, and room for three objects.
        limit_files((4 * PAGES * PAGE) as u64);
        let mut objects = Vec::new();
        let refused = loop {
            match pager.create(PAGES * PAGE, 1, false) {
                // SAFETY: the object is used no more.
                Ok(start) => unsafe { pager.destroy(start) }.map(drop).expect("an object"),
                Err(refused) => break refused,
            }
            let pages = Pages::new(pager, PAGES);
            pages.fill(objects.len() as u64);
            objects.push(pages);
            assert!(objects.len() < 8, "objects beyond the limit");
        };
        assert_eq!(refused, Refused::Store(Errno::FBIG));
        assert_eq!(objects.len(), 3);
        let first = std::ptr::NonNull::new(objects[2].at(0)).expect("an address");
        // SAFETY: nothing is cut off.
        let resized = unsafe { pager.resize(first, 2 * PAGES * PAGE) };
        assert_eq!((resized, pager.len(first.as_ptr())), (Err(refused), Some(PAGES * PAGE)));
        for (round, pages) in objects.iter().enumerate() {
            assert_eq!(pages.wrong(round as u64), None);
            pages.fill(9);
        }
        assert!(objects.iter().all(|pages| pages.wrong(9).is_none()));
        // The room of an object that has ended is another's.
        objects.pop().expect("an object").end(pager);
        let again = Pages::new(pager, PAGES);
        assert!((0..PAGES).all(|page| again.has(page, 0)));
        objects.push(again);
        limit_files(libc::RLIM_INFINITY);
        objects.push(Pages::new(pager, PAGES));
        assert!(objects[..2].iter().all(|pages| pages.wrong(9).is_none()));
        end(pager);
    });
}

#[test]
fn a_file_system_in_memory_is_refused() {
    let shm = std::path::Path::new("/dev/shm");
    let Ok(state) = rustix::fs::statfs(shm) else { return vellum_skip::skip("no /dev/shm") };
    if state.f_type as u64 != 0x0102_1994 {
        return vellum_skip::skip("/dev/shm is no tmpfs");
    }
    let refused = start_in(shm, FRAMES_MIN).err();
    assert_eq!(refused, Some(StartError::Store(Errno::OPNOTSUPP)));
    assert_eq!(start_in(std::path::Path::new("/proc"), 1).err(), Some(StartError::Frames(1)));
    let nowhere = std::path::Path::new("/nowhere/at/all");
    assert_eq!(start_in(nowhere, FRAMES_MIN).err(), Some(StartError::Store(Errno::NOENT)));
}
