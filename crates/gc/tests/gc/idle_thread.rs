//! The collector's own thread: it collects while every other one waits, gives way, and is there in a forked
//! child, too.

use crate::heap::forked;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vellum_gc as gc;

/// Pauses in idle time, counted by the hook.
static IDLE: AtomicUsize = AtomicUsize::new(0);

/// The kind of a pause in idle time.
const KIND_IDLE: i32 = 2;

unsafe extern "C" fn count(kind: i32, _: u64, _: u64) {
    IDLE.fetch_add(usize::from(kind == KIND_IDLE), Ordering::Relaxed);
}

/// A list of `cells` cells of four words, each with its number.
struct List {
    head: *mut [usize; 4],
    cells: usize,
}

impl List {
    fn new(cells: usize) -> List {
        let mut head = std::ptr::null_mut::<[usize; 4]>();
        for number in 0..cells {
            let cell = gc::alloc(32).cast::<[usize; 4]>();
            // SAFETY: a new object of four words.
            unsafe { cell.write([number, head.expose_provenance(), 0, 0]) };
            head = cell;
        }
        List { head, cells }
    }

    fn check(&self) {
        let (mut at, mut left) = (self.head, self.cells);
        // SAFETY: null, or a cell that the list holds.
        while let Some([number, next, ..]) = unsafe { at.as_ref() } {
            left -= 1;
            assert_eq!(*number, left);
            at = std::ptr::with_exposed_provenance_mut(*next);
        }
        assert_eq!(left, 0);
    }
}

/// Allocates and waits until the collector's thread has made a pause. How much it takes depends on measured
/// times; collections that allocation causes may come in between.
fn work_until_idle() {
    let before = IDLE.load(Ordering::Relaxed);
    while IDLE.load(Ordering::Relaxed) == before {
        List::new(10_000).check();
        gc::blocking(|| std::thread::sleep(std::time::Duration::from_millis(1)));
    }
}

/// Allocates until there was a collection.
fn work_until_collected(list: &List) {
    let before = gc::stats();
    while gc::stats().collections == before.collections {
        List::new(10_000).check();
        gc::blocking(std::thread::yield_now);
    }
    list.check();
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
        let list = List::new(300_000);
        gc::collect();
        work_until_idle();
        list.check();
        assert!(gc::stats().slices > 0);

        // Two threads that wait most of the time, and this one, which works: the end of each wait has the
        // collector give way.
        static OVER: AtomicBool = AtomicBool::new(false);
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                std::thread::spawn(|| {
                    let list = List::new(1000);
                    while !OVER.load(Ordering::Acquire) {
                        gc::blocking(std::thread::yield_now);
                        list.check();
                    }
                })
            })
            .collect();
        work_until_collected(&list);
        OVER.store(true, Ordering::Release);
        for thread in waiting {
            thread.join().expect("no thread fails");
        }
        // The child has no other thread than the one that forked, and makes its own.
        let status = forked(|| {
            assert!(gc::collect());
            work_until_idle();
            list.check();
        });
        assert_eq!(status, 0, "the child");
        gc::validate().expect("the heap's invariants hold");
    });
}
