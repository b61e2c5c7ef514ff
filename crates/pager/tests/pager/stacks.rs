//! A thread whose stack is paged, as those are that a program makes in big blocks for its coroutines: it
//! makes and ends objects, and forks, while its own frames go and come.

use crate::common::{Random, config, end, file_store, start};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_pager::{FRAMES_MIN, FileStore, PAGE, Pager};
use vellum_sys::fault::Reach;

/// Bytes of the stack.
const STACK: usize = 1 << 20;
/// Pages of the object that drives others out.
const PAGES: usize = 6 * FRAMES_MIN as usize;
const ROUNDS: usize = 3000;

struct Job {
    pager: &'static Pager<FileStore>,
    random: Random,
}

/// Goes `depth` frames of half a page down, and there makes an object and ends it.
#[inline(never)]
fn descend(job: &mut Job, depth: usize) -> u8 {
    let mut ballast = [depth as u8; PAGE / 2];
    std::hint::black_box(&mut ballast);
    if depth > 0 {
        return descend(job, depth - 1).wrapping_add(ballast[depth]);
    }
    let object = job.pager.create((1 + job.random.below(4)) * PAGE, 1, false).expect("room");
    // SAFETY: within the object, which is used no more after its end.
    unsafe {
        object.as_ptr().write(ballast[0]);
        job.pager.discard(object.as_ptr(), PAGE);
        job.pager.destroy(object).expect("an object");
    }
    0
}

extern "C" fn work(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the test's job, which nobody else uses until this thread has ended.
    let job = unsafe { &mut *argument.cast::<Job>() };
    for _ in 0..ROUNDS {
        let depth = job.random.below(40);
        let sum: usize = (1..=depth).sum();
        assert_eq!(descend(job, depth), sum as u8, "what lay on the stack is there");
    }
    std::ptr::null_mut()
}

#[test]
fn a_thread_on_a_paged_stack() {
    let mut random = Random::new();
    let directory = tempfile::tempdir().expect("a directory");
    let store = file_store(directory.path());
    let Some(pager) = start(config(FRAMES_MIN), store) else { return };
    if pager.reach() != Some(Reach::Kernel) {
        // Without privilege system calls cannot be handed such a stack at all.
        return vellum_skip::skip("needs CAP_SYS_PTRACE");
    }
    let stack = pager.create(STACK, PAGE, true).expect("room");
    let rest = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr().addr();
    let mut job = Job { pager, random: Random::seeded(random.next()) };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut random = Random::seeded(random.next());
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Relaxed) {
                let page = random.below(PAGES);
                // SAFETY: within the object.
                unsafe { ((rest + page * PAGE) as *mut u64).write_volatile(1) };
            }
        });
        // SAFETY: the stack is the thread's alone until it is joined, and the job too.
        unsafe {
            let mut attributes = std::mem::zeroed();
            let mut thread = std::mem::zeroed();
            assert_eq!(libc::pthread_attr_init(&raw mut attributes), 0);
            assert_eq!(libc::pthread_attr_setstack(&raw mut attributes, stack.as_ptr().cast(), STACK), 0);
            let argument = (&raw mut job).cast();
            assert_eq!(libc::pthread_create(&raw mut thread, &raw const attributes, work, argument), 0);
            assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
            libc::pthread_attr_destroy(&raw mut attributes);
        }
        is_over.store(true, Relaxed);
    });
    end(pager);
}
