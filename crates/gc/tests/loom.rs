//! Tests of the crew (the words by which marking threads share work), in every interleaving, by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p vellum-gc --test loom --release`.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

#[path = "../src/process/work_packets.rs"]
#[allow(dead_code, unreachable_pub)]
mod crew;
use crew::Crew;

/// A crew, and what its packets hold: numbers of further packets to make.
struct Shared {
    crew: Crew,
    packets: [UnsafeCell<u32>; 4],
    done: AtomicU32,
}

// SAFETY: a packet's contents belong to the thread that claimed or took it; that is what is tested.
unsafe impl Sync for Shared {}
// SAFETY: its words are atomic; loom checks that one thread at a time uses a packet.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Shared {
        Shared { crew: Crew::new(), packets: [(); 4].map(|()| UnsafeCell::new(0)), done: AtomicU32::new(0) }
    }

    /// Shares a packet that leads to `chain` others, one behind the other.
    fn share(&self, chain: u32) {
        let packet = self.crew.claim().expect("there are more packets than the test fills");
        self.packets[packet as usize].with_mut(|place| {
            // SAFETY: claimed by this thread, loom checks that nobody else touches it.
            unsafe { place.write(chain) }
        });
        self.crew.share(packet);
    }

    fn work(&self, this: crew::Trace, is_leader: bool) {
        while let Some(packet) = self.crew.next(this, is_leader, |_| thread::yield_now()) {
            let chain = self.packets[packet as usize].with(|place| {
                // SAFETY: taken by this thread.
                unsafe { place.read() }
            });
            self.crew.give_back(packet);
            self.done.fetch_add(1, Ordering::Relaxed);
            if chain > 0 {
                self.share(chain - 1);
            }
        }
    }
}

/// Whatever is shared is done by somebody, once, before the leader finds that the trace is over.
#[test]
fn nothing_is_left_when_it_is_over() {
    loom::model(|| {
        let shared = Arc::new(Shared::new());
        let this = shared.crew.open();
        shared.share(1);
        let helper = {
            let shared = shared.clone();
            thread::spawn(move || {
                if let Some(this) = shared.crew.join() {
                    shared.work(this, false);
                }
            })
        };
        shared.share(0);
        shared.work(this, true);
        assert_eq!(shared.done.load(Ordering::Relaxed), 3);
        assert!(!shared.crew.has_work() && shared.crew.is_over(this));
        helper.join().expect("the helper ends");
    });
}

/// A helper of one trace that comes late takes part in the next, or in none.
#[test]
fn a_late_helper_finds_out_which_trace_it_is() {
    loom::model(|| {
        let shared = Arc::new(Shared::new());
        let first = shared.crew.open();
        let helper = {
            let shared = shared.clone();
            thread::spawn(move || {
                if let Some(this) = shared.crew.join() {
                    shared.work(this, false);
                }
            })
        };
        shared.work(first, true);
        let second = shared.crew.open();
        assert!(first != second);
        shared.share(0);
        shared.work(second, true);
        assert_eq!(shared.done.load(Ordering::Relaxed), 1);
        helper.join().expect("the helper ends");
    });
}
