//! Tests of the collector's own thread: it collects while all others wait, yields to them, and runs in a
//! forked child.

use crate::heap::forked;
use crate::nodes::{Node, check, layout, list};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vellum_gc as gc;

/// Pauses in idle time, counted by the hook.
static IDLE: AtomicUsize = AtomicUsize::new(0);

/// Nodes of a list that stays.
const LONG: usize = 150_000;

/// The kind of a pause in idle time.
const KIND_IDLE: i32 = 2;

unsafe extern "C" fn count(kind: i32, _: u64, _: u64) {
    IDLE.fetch_add(usize::from(kind == KIND_IDLE), Ordering::Relaxed);
}

/// Makes a list that dies at once.
fn work() {
    check(list(layout(), 5000), 5000, &());
}

/// Allocates and waits until the collector's thread has made a pause. How much it takes depends on measured
/// times; collections that allocation causes may come in between.
fn work_until_idle() {
    let before = IDLE.load(Ordering::Relaxed);
    while IDLE.load(Ordering::Relaxed) == before {
        work();
        gc::blocking(|| std::thread::sleep(std::time::Duration::from_millis(1)));
    }
}

/// Allocates until there was a collection.
fn work_until_collected(head: *mut Node) {
    let before = gc::stats();
    while gc::stats().collections == before.collections {
        work();
        gc::blocking(std::thread::yield_now);
    }
    check(head, LONG, &());
}

#[test]
fn collects_while_everybody_waits() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { idle_thread: true, poison: true, ..gc::Config::DEFAULT })
            .expect("the heap starts");
        if !gc::can_slice() {
            vellum_skip::skip("the kernel does not tell what is written (userfaultfd)");
            return;
        }
        gc::on_pause(Some(count));
        let head = list(layout(), LONG);
        gc::collect();
        work_until_idle();
        check(head, LONG, &());
        assert!(gc::stats().slices > 0);

        // Two threads that wait most of the time, and this one, which works: the end of each wait has the
        // collector give way.
        static OVER: AtomicBool = AtomicBool::new(false);
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                std::thread::spawn(|| {
                    let head = list(layout(), 1000);
                    while !OVER.load(Ordering::Acquire) {
                        gc::blocking(std::thread::yield_now);
                        check(head, 1000, &());
                    }
                })
            })
            .collect();
        work_until_collected(head);
        OVER.store(true, Ordering::Release);
        for thread in waiting {
            thread.join().expect("no thread fails");
        }
        // The child has no other thread than the one that forked, and makes its own.
        let status = forked(|| {
            assert!(gc::collect());
            work_until_idle();
            check(head, LONG, &());
        });
        assert_eq!(status, 0, "the child");
        gc::validate().expect("the heap's invariants hold");
    });
}
