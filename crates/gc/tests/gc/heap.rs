//! Starts the heap of a test's process, with a plan, paged or not. Macros define a test for several heaps.

use vellum_gc as gc;
use vellum_pager::process;

/// Frames that are a fraction of what most tests use, in bytes.
pub(crate) const FEW: Option<u64> = Some(2 << 20);

/// Starts the heap by `plan`: everything moves that may.
pub(crate) fn begin(plan: gc::Plan) {
    begin_with(plan, gc::Config { restless: true, ..gc::Config::DEFAULT });
}

/// Starts the heap by `plan`, with other settings from `config`.
pub(crate) fn begin_with(plan: gc::Plan, config: gc::Config) {
    gc::init(gc::Config { plan, ..config }).expect("memory for a heap");
}

/// Runs `body`, with the process's heap on paged blocks if `frames` has bytes for their frames.
pub(crate) fn paged(frames: Option<u64>, body: impl FnOnce()) {
    let Some(bytes) = frames else { return body() };
    // The first use of the heap settles where it lies.
    assert!(process::page_to(b"/var/tmp", bytes), "these frames, and a short path");
    body();
    let Some(pager) = process::ready() else {
        return vellum_skip::skip("no cachestat by this kernel, or no room for a store on a disk");
    };
    let counts = pager.counts();
    eprintln!("{} pages read, {} written, {} discarded", counts.read, counts.written, counts.discarded);
    assert!(pager.owns(gc::alloc(16)), "the heap was not on paged blocks");
}

/// Tests of these names, one a process: on paged blocks with `frames` bytes of frames, if `in` gives them.
macro_rules! rows {
    ($($(#[$about:meta])* $name:ident $(in $frames:expr)? => $body:expr;)*) => {
        $(
            $(#[$about])*
            #[test]
            fn $name() {
                let frames: Option<u64> = [$($frames,)? None][0];
                vellum_skip::alone(|| $crate::heap::paged(frames, || $body));
            }
        )*
    };
}

/// Tests of each of these functions of a plan, for every plan, in memory and paged.
macro_rules! on_every_heap {
    ($($test:ident)*) => {
        $(
            mod $test {
                use super::$test as test;
                use vellum_gc::Plan;
                rows! {
                    mark_sweep => test(Plan::MarkSweep);
                    mark_sweep_paged in $crate::heap::FEW => test(Plan::MarkSweep);
                    copying => test(Plan::MostlyCopying);
                    copying_paged in $crate::heap::FEW => test(Plan::MostlyCopying);
                    appel => test(Plan::Appel);
                    appel_paged in $crate::heap::FEW => test(Plan::Appel);
                }
            }
        )*
    };
}

/// Forks. The child runs `body`, and ends without unwinding; returns how it ended.
pub(crate) fn forked(body: impl FnOnce()) -> i32 {
    gc::fork_prepare();
    // SAFETY: the child calls nothing but the collector, whose lock is held over the fork.
    let child = unsafe { libc::fork() };
    if child == 0 {
        gc::fork_child();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    gc::fork_parent();
    assert!(child > 0, "no child");
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Overwrites what earlier calls left on the stack.
#[inline(never)]
pub(crate) fn wipe() {
    std::hint::black_box([0usize; 16_384]);
}
