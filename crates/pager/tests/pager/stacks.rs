//! Tests of threads whose stacks are paged, as coroutines' are: they make and end objects meanwhile.

use crate::common::{Limit, Pages, Random, end, start};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_pager::{FRAMES_MIN, PAGE, Pager};

const STACK: usize = 1 << 20;
/// Pages of the object that drives others out.
const PAGES: usize = 6 * FRAMES_MIN as usize;

struct Job {
    pager: &'static Pager,
    random: Random,
    rounds: usize,
}

/// Goes `depth` frames of half a page down, and there makes an object and ends it.
#[inline(never)]
fn descend(job: &mut Job, depth: usize) -> u8 {
    let mut ballast = [depth as u8; PAGE / 2];
    std::hint::black_box(&mut ballast);
    if depth > 0 {
        return descend(job, depth - 1).wrapping_add(ballast[depth]);
    }
    let pages = Pages::new(job.pager, 1 + job.random.below(4));
    assert!(pages.has(0, 0));
    pages.fill(1);
    // SAFETY: what the page holds is not needed.
    unsafe { job.pager.flush(pages.from(0).split_at(PAGE)[0]) };
    pages.end(job.pager);
    0
}

extern "C" fn work(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the test's job, which nobody else uses until this thread has ended.
    let job = unsafe { &mut *argument.cast::<Job>() };
    for _ in 0..job.rounds {
        let depth = job.random.below(200);
        let sum: usize = (1..=depth).sum();
        assert_eq!(descend(job, depth), sum as u8, "what lay on the stack is there");
    }
    std::ptr::null_mut()
}

#[test]
fn threads_on_paged_stacks() {
    let _limit = Limit::of_seconds(60);
    let mut random = Random::new();
    let Some(pager) = start(FRAMES_MIN) else { return };
    let ballast = Pages::new(pager, PAGES);
    let rounds = 100 * vellum_skip::scale();
    let mut jobs: [Job; 2] =
        std::array::from_fn(|_| Job { pager, random: Random::seeded(random.next()), rounds });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            for round in (1..).take_while(|_| !is_over.load(Relaxed)) {
                ballast.fill(round);
                assert_eq!(ballast.wrong(round), None);
            }
        });
        let threads = jobs.each_mut().map(|job| {
            let stack = Pages::new(pager, STACK / PAGE);
            // SAFETY: stack and job are the thread's alone until it is joined.
            unsafe {
                let (mut attributes, mut thread) = (std::mem::zeroed(), std::mem::zeroed());
                assert_eq!(libc::pthread_attr_init(&raw mut attributes), 0);
                assert_eq!(libc::pthread_attr_setstack(&raw mut attributes, stack.at(0).cast(), STACK), 0);
                let job = std::ptr::from_mut(job).cast();
                assert_eq!(libc::pthread_create(&raw mut thread, &raw const attributes, work, job), 0);
                libc::pthread_attr_destroy(&raw mut attributes);
                thread
            }
        });
        for thread in threads {
            // SAFETY: a thread that was created above, and is joined once.
            assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
        }
        is_over.store(true, Relaxed);
    });
    end(pager);
}
