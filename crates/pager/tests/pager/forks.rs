//! Tests of forked children: the paged memory that they see, and the writes that they must not see.

use crate::common::{Limit, Pages, Random, child, end, fork, start, value, wait};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_pager::{FRAMES_MIN, PAGE, Pager};

const PAGES: usize = 6 * FRAMES_MIN as usize;

/// Makes and ends an object on used pages. Returns whether it was zero.
fn makes_zeros(pager: &Pager) -> bool {
    (0..2).all(|round| {
        let pages = Pages::new(pager, 3);
        let is_zero = (0..3 * PAGE)
            // SAFETY: within the object.
            .all(|byte| unsafe { pages.at(0).add(byte).read_volatile() } == 0);
        pages.fill(round + 5);
        pages.end(pager);
        is_zero
    })
}

/// The work of a child, and after it of a grandchild; returns the number of the first failure.
fn look(pager: &Pager, pages: Pages, marked: Pages) -> i32 {
    if pages.wrong(1).is_some() {
        return 1;
    }
    if !makes_zeros(pager) {
        return 2;
    }
    // The room of marked pages, as one of the objects of the child.
    marked.end(pager);
    let renewed = Pages::new(pager, marked.count);
    if !(0..renewed.count).all(|page| renewed.has(page, 0)) {
        return 3;
    }
    let grandchild = child(|| fork(pager), || i32::from(pages.wrong(1).is_some() || !makes_zeros(pager)));
    pages.fill(2);
    if !wait(grandchild).success() {
        return 4;
    }
    pages.end(pager);
    0
}

/// Forks while the parent goes on.
fn fork_and_look(pager: &Pager) {
    let (pages, marked) = (Pages::new(pager, PAGES), Pages::new(pager, 8));
    pages.fill(1);
    marked.fill(9);
    makes_zeros(pager);
    // SAFETY: what the pages hold is not needed.
    unsafe { pager.mark(marked.from(0)) };
    let pid = child(|| fork(pager), || look(pager, pages, marked));
    pages.fill(3);
    let status = wait(pid);
    assert!(status.success(), "{status:?}");
    assert_eq!(pages.wrong(3), None, "the child's writes are the child's");
    assert!(makes_zeros(pager));

    // Behind our back: no memory rather than zeros.
    // SAFETY: as `fork`, without any handler; the child only touches memory.
    let raw_fork = || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t };
    let status = wait(child(raw_fork, || i32::from(pages.has(5, 0))));
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status:?}");
    assert_eq!(pages.wrong(3), None);
}

#[test]
fn children_see_everything_and_change_nothing() {
    vellum_skip::alone(|| {
        let _limit = Limit::of_seconds(60);
        // The process has no other threads than the pager's.
        let status = vellum_skip::forked(|| {
            let Some(pager) = start(FRAMES_MIN) else { return 0 };
            fork_and_look(pager);
            0
        });
        assert_eq!(status, 0);
        let Some(pager) = start(FRAMES_MIN) else { return };
        fork_and_look(pager);
        end(pager);
    });
}

/// Makes objects, and drops and renews parts of them, until `is_over`. Every page is as it must be.
fn stream(pager: &Pager, mut random: Random, is_over: &AtomicBool) {
    let mut round = 1;
    while !is_over.load(Relaxed) {
        let pages = Pages::new(pager, PAGES / 2);
        assert!((0..pages.count).all(|page| pages.has(page, 0)), "a new object is zero");
        pages.fill(round);
        for _ in 0..3 {
            let stop = random.below(pages.count);
            assert!((0..stop).all(|page| pages.has(page, value(round, page))));
            let forget = [Pager::mark, Pager::flush, Pager::zero][random.below(3)];
            // SAFETY: the pages are written again before they are read.
            unsafe { forget(pager, pages.from(stop)) };
            pager.need(pages.from(stop));
            round += 1;
            pages.fill(round);
        }
        assert_eq!(pages.wrong(round), None);
        pages.end(pager);
    }
}

/// Forks during heavy paging: children find unchanged pages as they are, and the parent loses nothing.
#[test]
fn children_of_a_process_that_pages_heavily() {
    vellum_skip::alone(|| {
        let _limit = Limit::of_seconds(100);
        let mut random = Random::new();
        let Some(pager) = start(2 * FRAMES_MIN) else { return };
        let pages = Pages::new(pager, PAGES);
        pages.fill(1);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (random, is_over) = (Random::seeded(random.next()), &is_over);
                scope.spawn(move || stream(pager, random, is_over));
            }
            for fork_number in 0..8 * vellum_skip::scale() {
                let pid = child(|| fork(pager), || i32::from(pages.wrong(1).is_some()));
                // What the parent shares with the child, it changes and puts back.
                let page = random.below(PAGES);
                pages.put(page, 7);
                pages.put(page, value(1, page));
                let status = wait(pid);
                assert!(status.success(), "fork {fork_number}: {status:?}");
                assert_eq!(pages.wrong(1), None, "the parent has lost a page at fork {fork_number}");
            }
            is_over.store(true, Relaxed);
        });
        end(pager);
    });
}
