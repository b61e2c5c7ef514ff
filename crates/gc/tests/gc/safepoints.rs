//! Threads that stop at safepoints only: where they allocate, and where they say.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vellum_gc as gc;

const THREADS: usize = 3;
const COLLECTIONS: usize = 200;

#[test]
fn threads_stop_where_they_say() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { safepoints: true, poison: true, ..gc::Config::DEFAULT })
            .expect("the heap starts");
        static OVER: AtomicBool = AtomicBool::new(false);
        static ROUNDS: AtomicUsize = AtomicUsize::new(0);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                std::thread::spawn(move || {
                    let mut lists = 0;
                    while !OVER.load(Ordering::Acquire) {
                        let (mut list, mut sum) = (std::ptr::null_mut::<[usize; 2]>(), 0);
                        for number in 0..1000 {
                            let cell = gc::alloc(16).cast::<[usize; 2]>();
                            // SAFETY: a new object of two words.
                            unsafe { cell.write([number, list.expose_provenance()]) };
                            (list, sum) = (cell, sum + number);
                        }
                        // No allocation: only this lets a collection pass.
                        for _ in 0..1000 * thread {
                            gc::safepoint();
                        }
                        while !list.is_null() {
                            // SAFETY: the list holds its cells.
                            let [number, next] = unsafe { list.read() };
                            (list, sum) = (std::ptr::with_exposed_provenance_mut(next), sum - number);
                            gc::safepoint();
                        }
                        assert_eq!(sum, 0, "thread {thread}, list {lists}");
                        lists += 1;
                        ROUNDS.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for _ in 0..COLLECTIONS {
            assert!(gc::collect());
            std::thread::yield_now();
        }
        while ROUNDS.load(Ordering::Relaxed) < THREADS {
            gc::safepoint();
            std::thread::yield_now();
        }
        OVER.store(true, Ordering::Release);
        gc::blocking(|| threads.into_iter().for_each(|thread| thread.join().expect("no thread fails")));
        gc::validate().expect("the heap's invariants hold");
        assert!(gc::stats().collections >= COLLECTIONS as u64);
    });
}
