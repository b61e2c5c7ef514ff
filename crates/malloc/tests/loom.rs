//! Loom tests of the two lock-free stacks, which explore every interleaving: `RUSTFLAGS="--cfg loom" cargo
//! test -p vellum-malloc --test loom --release`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use loom::thread;

#[path = "../src/remote.rs"]
#[allow(dead_code, unreachable_pub)]
mod remote;
use remote::{Pushed, RemoteList, Taken, Wakeable, Woken};

/// A slab of four blocks, each of one granule, whose `next` words are atomics so that loom sees races on
/// them.
struct Slab {
    list: RemoteList,
    next: [AtomicU32; 4],
    next_woken: AtomicPtr<Slab>,
}

const NOTHING: u32 = u32::MAX;

impl Wakeable for Slab {
    fn successor(&self) -> &AtomicPtr<Slab> {
        &self.next_woken
    }
}

impl Slab {
    fn new() -> Slab {
        Slab {
            list: RemoteList::new(),
            next: [(); 4].map(|()| AtomicU32::new(NOTHING)),
            next_woken: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn push(&self, block: u32, wake: u32) -> Pushed {
        self.list.push(block, 1, wake, |head| {
            self.next[block as usize].store(head.unwrap_or(NOTHING), Ordering::Relaxed);
        })
    }

    /// The blocks of a taken list; panics if their number is not what the word said.
    fn walk(&self, taken: Taken) -> Vec<u32> {
        let mut blocks = Vec::new();
        let mut next = taken.head;
        while let Some(block) = next {
            blocks.push(block);
            next = Some(self.next[block as usize].load(Ordering::Relaxed)).filter(|&block| block != NOTHING);
        }
        assert_eq!(blocks.len(), taken.blocks as usize, "{taken:?} leads to {blocks:?}");
        blocks
    }
}

#[test]
fn no_block_is_lost_or_doubled() {
    loom::model(|| {
        let slab = Arc::new(Slab::new());
        let pushers: Vec<_> = [[0, 1], [2, 3]]
            .into_iter()
            .map(|blocks| {
                let slab = slab.clone();
                thread::spawn(move || {
                    for block in blocks {
                        assert_ne!(slab.push(block, 100), Pushed::Twice);
                    }
                })
            })
            .collect();
        let mut found = slab.walk(slab.list.take());
        for pusher in pushers {
            pusher.join().expect("a pusher ends");
        }
        found.extend(slab.walk(slab.list.take()));
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3]);
    });
}

#[test]
fn a_slab_is_told_of_once_and_never_forgotten() {
    loom::model(|| {
        let slab = Arc::new(Slab::new());
        let woken = Arc::new(Woken::<Slab>::new());
        let pushers: Vec<_> = (0..2)
            .map(|block| {
                let (slab, woken) = (slab.clone(), woken.clone());
                thread::spawn(move || {
                    if slab.push(block, 1) == Pushed::Notify {
                        woken.push(&slab);
                    }
                })
            })
            .collect();
        let drain = || {
            let mut found = Vec::new();
            let mut next = woken.take();
            while !next.is_null() {
                // SAFETY: only `slab` is ever pushed, and it lives until the model ends.
                let told = unsafe { &*next };
                next = told.next_woken.load(Ordering::Relaxed);
                found.extend(slab.walk(told.list.drain()));
            }
            found
        };
        let mut found = drain();
        for pusher in pushers {
            pusher.join().expect("a pusher ends");
        }
        found.extend(drain());
        found.sort_unstable();
        assert_eq!(found, [0, 1], "with a threshold of one, every block is on a told list");
        assert!(!slab.list.is_notified());
    });
}

#[test]
fn a_told_slab_may_not_be_given_back_while_its_pusher_looks() {
    loom::model(|| {
        let slab = Arc::new(Slab::new());
        let woken = Arc::new(Woken::<Slab>::new());
        let pusher = {
            let (slab, woken) = (slab.clone(), woken.clone());
            thread::spawn(move || {
                if slab.push(0, 1) == Pushed::Notify {
                    woken.push(&slab);
                }
            })
        };
        // The owner visits the slab on its own account: it may take the block, but the mark stays.
        let taken = slab.list.take();
        let may_give_back = taken.blocks == 1 && !slab.list.is_notified();
        assert!(!may_give_back);
        pusher.join().expect("the pusher ends");
        assert!(slab.list.is_notified() && !woken.is_empty());
    });
}

#[test]
fn freeing_the_newest_block_again_is_seen() {
    loom::model(|| {
        let slab = Slab::new();
        assert_eq!(slab.push(2, 100), Pushed::Quiet);
        assert_eq!(slab.push(2, 100), Pushed::Twice);
        assert_eq!(slab.list.blocks(), 1);
    });
}
