//! Tests of threads that allocate, hold objects by their stacks alone, start, end, block and collect.

use crate::heap::begin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vellum_gc as gc;

/// A list of numbers, newest first; each cell is the number and the next cell.
struct List(*mut [usize; 2]);

impl List {
    fn push(&mut self, number: usize) {
        let cell = gc::alloc(16).cast::<[usize; 2]>();
        assert!(!cell.is_null());
        // SAFETY: a new object of two words.
        unsafe {
            assert_eq!(cell.read(), [0, 0], "a new object reads zero");
            cell.write([number, self.0.expose_provenance()]);
        }
        self.0 = cell;
    }

    fn sum(&self) -> usize {
        let (mut at, mut sum) = (self.0, 0usize);
        while !at.is_null() {
            // SAFETY: the list holds its cells.
            let [number, next] = unsafe { at.read() };
            sum = sum.wrapping_add(number);
            at = std::ptr::with_exposed_provenance_mut(next);
        }
        sum
    }
}

fn work(seed: usize, rounds: usize) {
    for round in 0..rounds {
        let (mut list, mut sum) = (List(std::ptr::null_mut()), 0usize);
        for step in 0..2000 {
            let number = seed.wrapping_mul(0x9e37_79b9).wrapping_add(round * 2000 + step);
            list.push(number);
            sum = sum.wrapping_add(number);
            // Dies at once.
            std::hint::black_box(gc::alloc(16 + step % 700));
        }
        if round % 7 == seed % 7 {
            gc::blocking(|| std::thread::sleep(std::time::Duration::from_micros(50)));
        }
        assert_eq!(list.sum(), sum, "thread {seed} round {round}");
    }
}

on_every_heap! { lists_on_many_stacks a_blocked_thread_holds_what_it_has }

fn lists_on_many_stacks(plan: gc::Plan) {
    begin(plan);
    let threads: Vec<_> = (0..4).map(|seed| std::thread::spawn(move || work(seed, 60))).collect();
    for _ in 0..200 {
        gc::collect();
        std::thread::yield_now();
    }
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    gc::validate().expect("the heap's invariants hold");
    // Many that end soon: their records are used again.
    for wave in 0..20 {
        let threads: Vec<_> =
            (0..4).map(|seed| std::thread::spawn(move || work(wave * 4 + seed, 2))).collect();
        gc::collect();
        for thread in threads {
            thread.join().expect("no thread fails");
        }
    }
    gc::validate().expect("the heap's invariants hold");
    assert!(gc::stats().collections > 200);
}

/// What a blocked thread holds stays, and collections do not wait for it.
fn a_blocked_thread_holds_what_it_has(plan: gc::Plan) {
    begin(plan);
    static BLOCKED: AtomicBool = AtomicBool::new(false);
    static GO_ON: AtomicBool = AtomicBool::new(false);
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let thread = std::thread::spawn(|| {
        let mut list = List(std::ptr::null_mut());
        (1..=1000).for_each(|number| list.push(number));
        gc::blocking(|| {
            BLOCKED.store(true, Ordering::Release);
            while !GO_ON.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
        SEEN.store(list.sum(), Ordering::Release);
    });
    while !BLOCKED.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    for _ in 0..5 {
        assert!(gc::collect());
        for _ in 0..10_000 {
            // Would fall on the list's memory if that had been freed.
            let cell = gc::alloc(16).cast::<usize>();
            // SAFETY: a new object of two words.
            unsafe { cell.write(usize::MAX) };
        }
    }
    GO_ON.store(true, Ordering::Release);
    thread.join().expect("the thread ends");
    assert_eq!(SEEN.load(Ordering::Acquire), 500_500);
}

/// Threads that stop at safepoints only: at allocations, and at calls of `safepoint`.
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
                    while !OVER.load(Ordering::Acquire) {
                        let mut list = List(std::ptr::null_mut());
                        (0..1000).for_each(|number| list.push(number));
                        // No allocation: only this lets a collection pass.
                        for _ in 0..1000 * thread {
                            gc::safepoint();
                        }
                        // At each stop only a register or the stack leads to the rest of the list.
                        let mut sum = 0;
                        while !list.0.is_null() {
                            // SAFETY: the list holds its cells.
                            let [number, next] = unsafe { list.0.read() };
                            list.0 = std::ptr::with_exposed_provenance_mut(next);
                            sum += number;
                            gc::safepoint();
                        }
                        assert_eq!(sum, 499_500, "thread {thread}");
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
