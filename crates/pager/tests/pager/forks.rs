//! Children: what they see of paged memory, and what they do not.

use crate::common::{Random, config, end, file_store, packing, start};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_pager::{Config, Event, FRAMES_MIN, FileStore, PAGE, Pager};

const PAGES: usize = 6 * FRAMES_MIN as usize;

fn word(start: *mut u8, page: usize) -> *mut u64 {
    // SAFETY: within an object of PAGES pages.
    unsafe { start.add(page * PAGE).cast() }
}

/// Forks by `fork`, has the child do `work` and end with what it returns.
fn child(fork: impl FnOnce() -> libc::pid_t, work: impl FnOnce() -> i32) -> libc::pid_t {
    match fork() {
        0 => {
            let status = work();
            // SAFETY: ends the child at once, without what the test program would do at its end.
            unsafe { libc::_exit(status) }
        }
        pid => {
            assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
            pid
        }
    }
}

fn wait(pid: libc::pid_t) -> ExitStatus {
    let mut status = 0;
    // SAFETY: plain call with a place for its answer.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    ExitStatus::from_raw(status)
}

/// Forks while others page, times [`vellum_skip::scale`].
const FORKS: usize = 20;
/// Threads that page meanwhile, each in objects of its own.
const PAGING: usize = 3;
/// Pages of such an object.
const STREAM: usize = 3 * FRAMES_MIN as usize;

/// Goes through objects in order, so that pages are being read ahead, and drops and renews them in the
/// middle, until `is_over`. Every page is what it must be.
fn stream(pager: &'static Pager<FileStore>, mut random: Random, is_over: &AtomicBool) {
    let mut round = 1u64;
    while !is_over.load(Relaxed) {
        let object = pager.create(STREAM * PAGE, 1, true).expect("room");
        let start = object.as_ptr();
        // SAFETY: within the object, which this thread alone uses.
        let read = |page: usize| unsafe { word(start, page).read_volatile() };
        assert!((0..STREAM).all(|page| read(page) == 0), "a new object is zero");
        // SAFETY: as above.
        (0..STREAM).for_each(|page| unsafe { word(start, page).write_volatile(round << 32 | page as u64) });
        for _ in 0..3 {
            // Stops anywhere: what lies ahead is on its way then, and is dropped there.
            let stop = random.below(STREAM);
            for page in 0..stop {
                assert_eq!(read(page), round << 32 | page as u64, "page {page}");
            }
            let forget = [Pager::mark, Pager::discard, Pager::flush][random.below(3)];
            let address = start.wrapping_add(stop * PAGE);
            // SAFETY: discarded pages are written again below, before they are read.
            unsafe { forget(pager, address, (STREAM - stop) * PAGE) };
            pager.need(address, (STREAM - stop) * PAGE);
            for page in stop..STREAM {
                // SAFETY: as above.
                unsafe { word(start, page).write_volatile(round << 32 | page as u64) };
            }
            round += 1;
            // SAFETY: as above.
            (0..STREAM)
                .for_each(|page| unsafe { word(start, page).write_volatile(round << 32 | page as u64) });
        }
        (0..random.below(STREAM)).for_each(|page| assert_eq!(read(page), round << 32 | page as u64));
        // SAFETY: the object is used no more; what lies ahead of the last read may be on its way.
        unsafe { pager.destroy(object) }.expect("an object");
    }
}

/// A fork at any moment of heavy paging: children see what does not change as it is, and the parent loses
/// nothing.
#[test]
fn children_of_a_process_that_pages_heavily() {
    vellum_skip::alone(|| fork_while_paging(config(2 * FRAMES_MIN)));
}

#[test]
fn children_of_a_process_that_compresses_heavily() {
    vellum_skip::alone(|| fork_while_paging(packing(2 * FRAMES_MIN)));
}

fn fork_while_paging(config: Config) {
    let mut random = Random::new();
    let directory = tempfile::tempdir().expect("a directory");
    let store = file_store(directory.path());
    let Some(pager) = start(config, store) else { return };
    let start = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr().addr();
    // SAFETY: within the object.
    let word = |page: usize| unsafe { word(start as *mut u8, page).as_mut().expect("a page") };
    (0..PAGES).for_each(|page| *word(page) = page as u64 * 7);
    let sees = || (0..PAGES).all(|page| *word(page) == page as u64 * 7);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..PAGING {
            let seed = random.next();
            let is_over = &is_over;
            scope.spawn(move || stream(pager, Random::seeded(seed), is_over));
        }
        for fork in 0..FORKS * vellum_skip::scale() {
            let pid = child(with_handlers(pager), || i32::from(!sees()));
            // What the parent shares with the child, it changes and puts back.
            let page = random.below(PAGES);
            *word(page) = 1;
            *word(page) = page as u64 * 7;
            assert!(sees(), "the parent has lost a page at fork {fork}");
            let status = wait(pid);
            assert!(status.success(), "fork {fork}: {status:?}");
        }
        is_over.store(true, Relaxed);
    });
    end(pager);
}

fn with_handlers(pager: &'static Pager<FileStore>) -> impl FnOnce() -> libc::pid_t {
    move || {
        pager.fork_prepare();
        // SAFETY: the child uses system calls and memory only.
        let pid = unsafe { libc::fork() };
        match pid {
            0 => pager.fork_child(),
            _ => pager.fork_parent(),
        }
        pid
    }
}

#[test]
fn children_see_everything_and_change_nothing() {
    vellum_skip::alone(|| {
        look_from_children(config(FRAMES_MIN), Event::Written);
        look_from_children(packing(FRAMES_MIN), Event::Packed);
    });
}

fn look_from_children(config: Config, out: Event) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = file_store(directory.path());
    let Some(pager) = start(config, store) else { return };
    let start = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr();
    // Every third page stays fresh.
    let expected = |page: usize| if page.is_multiple_of(3) { 0 } else { page as u64 * 7 };
    for page in (0..PAGES).filter(|page| page % 3 != 0) {
        // SAFETY: within the object.
        unsafe { word(start, page).write_volatile(expected(page)) };
    }
    assert!(pager.count(out) > 0);
    // Pages free by then have been used, and are still mapped.
    let used = pager.create(3 * PAGE, 1, false).expect("room");
    // SAFETY: within the object, which is used no more afterwards.
    unsafe {
        used.as_ptr().write_bytes(9, 3 * PAGE);
        pager.destroy(used).expect("an object");
    }
    // SAFETY: within the object.
    let sees = move || (0..PAGES).all(|page| unsafe { word(start, page).read_volatile() } == expected(page));
    let pid = child(with_handlers(pager), || {
        if !sees() {
            return 1;
        }
        // A child of its own, new objects, and ends of old ones: ordinary memory.
        let Ok(new) = pager.create(3 * PAGE, 1, true) else { return 2 };
        // SAFETY: within the object.
        if (0..3 * PAGE).any(|byte| unsafe { new.as_ptr().add(byte).read() } != 0) {
            return 7;
        }
        // SAFETY: within the object, which is used no more afterwards.
        unsafe {
            new.as_ptr().write_bytes(1, 3 * PAGE);
            if pager.destroy(new).is_err() {
                return 3;
            }
        }
        let Ok(again) = pager.create(3 * PAGE, 1, true) else { return 4 };
        // SAFETY: within the object.
        if (0..3 * PAGE).any(|byte| unsafe { again.as_ptr().add(byte).read() } != 0) {
            return 5;
        }
        let grandchild = child(with_handlers(pager), || i32::from(!sees()));
        // SAFETY: within the object; the parent must not see this.
        unsafe { word(start, 1).write_volatile(1) };
        if wait(grandchild).success() { 0 } else { 6 }
    });
    // The parent goes on meanwhile, with pages that the child shares.
    for page in 0..PAGES {
        // SAFETY: within the object.
        unsafe { word(start, page).write_volatile(page as u64 + 1) };
    }
    let status = wait(pid);
    assert!(status.success(), "{status:?}");
    for page in 0..PAGES {
        // SAFETY: within the object.
        assert_eq!(unsafe { word(start, page).read_volatile() }, page as u64 + 1);
    }
    pager.validate().expect("an invariant");

    // Behind our back: no memory rather than zeros.
    // SAFETY: as `fork`, without any handler; the child only touches memory.
    let raw_fork = || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t };
    // SAFETY: the touch is what is tested.
    let status = wait(child(raw_fork, || unsafe { word(start, 5).read_volatile() } as i32));
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status:?}");
    end(pager);
}
