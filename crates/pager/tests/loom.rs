//! Explores, by loom, every interleaving of the program's and the evicting thread's steps on a discardable
//! page: `RUSTFLAGS="--cfg loom" cargo test -p vellum-pager --test loom --release`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

#[path = "../src/bits.rs"]
#[allow(dead_code, unreachable_pub)]
mod bits;
use bits::{Announced, Bits};

/// The page's old contents, and those that the program writes.
const OLD: u64 = 3;
const NEW: u64 = 7;
/// The page, and the range that is dropped.
const PAGE: u32 = 5;
const RANGE: (u32, u32) = (4, 8);

struct Shared {
    needed: [AtomicU64; 1],
    announced: Announced,
    /// The contents of the page. Relaxed: nothing but the rule orders the two writes.
    contents: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Shared> {
        let needed = [AtomicU64::new(0)];
        Arc::new(Shared { needed, announced: Announced::nothing(), contents: AtomicU64::new(OLD) })
    }

    /// The program uses a discardable page again.
    fn need(&self) {
        Bits::new(&self.needed).set(PAGE, PAGE + 1);
        self.announced.wait_past(PAGE, PAGE + 1, thread::yield_now);
        self.contents.store(NEW, Relaxed);
    }

    /// The evicting thread drops discardable pages; whether it has dropped the page.
    fn drop_unneeded(&self) -> bool {
        self.announced.during(RANGE.0, RANGE.1, || {
            let is_dropped = !Bits::new(&self.needed).has(PAGE);
            if is_dropped {
                self.contents.store(0, Relaxed);
            }
            is_dropped
        })
    }
}

/// Runs the steps of the program beside those of the evicting thread, in every order.
fn explore(evict: impl Fn(&Shared) + Copy + Send + Sync + 'static, program: fn(&Shared)) {
    loom::model(move || {
        let shared = Shared::new();
        let evicting = {
            let shared = shared.clone();
            thread::spawn(move || evict(&shared))
        };
        program(&shared);
        evicting.join().expect("the evicting thread");
        assert_eq!(shared.contents.load(Relaxed), NEW);
    });
}

#[test]
fn what_is_written_to_a_page_in_use_again_stays() {
    explore(|shared| _ = shared.drop_unneeded(), Shared::need);
}

/// The second range is announced while the program may still read the first, as when the hand goes round.
#[test]
fn what_is_written_survives_every_later_drop() {
    explore(
        |shared| {
            let first = shared.drop_unneeded();
            assert!(first || !shared.drop_unneeded(), "a page in use was dropped");
        },
        Shared::need,
    );
}

/// The model can find a fault: a program that does not wait loses its writes.
#[test]
#[should_panic(expected = "assertion")]
fn without_the_wait_a_write_is_lost() {
    explore(
        |shared| _ = shared.drop_unneeded(),
        |shared| {
            Bits::new(&shared.needed).set(PAGE, PAGE + 1);
            shared.contents.store(NEW, Relaxed);
        },
    );
}
