//! Tests with threads that start and end, exchange blocks, and fork at any moment. The seed is printed;
//! `VELLUM_TEST_SEED` repeats it.

use std::sync::atomic::{AtomicPtr, Ordering};
use vellum_malloc as front;
use vellum_random::{Rng, test_seed};

/// A block on its way from one thread to another: its length is in its first word, the seed of its contents
/// in the second.
static EXCHANGE: [AtomicPtr<u8>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];

fn bytes(dice: &mut Rng) -> usize {
    let limit = [64, 300, 3_000, 40_000, 400_000][dice.index(50).min(4)];
    16 + dice.index(limit)
}

fn make(dice: &mut Rng) -> *mut u8 {
    let bytes = bytes(dice);
    let block = front::malloc(bytes);
    assert!(!block.is_null());
    let mark = dice.index(usize::MAX);
    // SAFETY: the block has at least 16 bytes.
    unsafe {
        block.cast::<usize>().write(bytes);
        block.cast::<usize>().add(1).write(mark);
        if bytes > 24 {
            block.add(bytes - 8).cast::<usize>().write_unaligned(mark);
        }
    }
    block
}

fn end(block: *mut u8) {
    // SAFETY: a block from `make`, which nobody else has.
    unsafe {
        let bytes = block.cast::<usize>().read();
        let mark = block.cast::<usize>().add(1).read();
        assert!(front::usable_size(block) >= bytes);
        if bytes > 24 {
            assert_eq!(
                block.add(bytes - 8).cast::<usize>().read_unaligned(),
                mark,
                "{block:?} was overwritten"
            );
        }
        front::free(block);
    }
}

fn work(seed: u64, steps: usize) {
    let mut dice = Rng::new(seed);
    let mut own: Vec<*mut u8> = Vec::new();
    for _ in 0..steps {
        match dice.index(10) {
            0..4 => own.push(make(&mut dice)),
            4..7 if !own.is_empty() => end(own.swap_remove(dice.index(own.len()))),
            7..9 if !own.is_empty() => {
                let block = own.swap_remove(dice.index(own.len()));
                let other = EXCHANGE[dice.index(EXCHANGE.len())].swap(block, Ordering::AcqRel);
                if !other.is_null() {
                    own.push(other);
                }
            }
            _ => {}
        }
    }
    assert_eq!(front::validate(), Ok(()));
    own.into_iter().for_each(end);
}

fn empty_exchange() {
    for place in &EXCHANGE {
        let block = place.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !block.is_null() {
            end(block);
        }
    }
}

#[test]
fn threads_exchange_blocks_and_fork() {
    vellum_skip::alone(|| {
        let seed = test_seed(None);
        std::thread::scope(|scope| {
            for worker in 0..3 {
                scope.spawn(move || {
                    for generation in 0..12 {
                        let seed = seed ^ (worker << 32) ^ (generation << 40);
                        std::thread::spawn(move || work(seed, 4_000)).join().expect("a generation ends well");
                    }
                });
            }
            for child in 0..15 {
                fork_and_work(seed ^ (child << 48));
            }
        });
        empty_exchange();
        front::trim();
        assert_eq!(vellum_pages::Pages::global().validate(), Ok(()));
    });
}

/// Forks as the shared library's handlers do; the child allocates at once, and then from a thread of its own
/// heap.
fn fork_and_work(seed: u64) {
    front::fork_prepare();
    // SAFETY: the child calls only this crate, which is made for that, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        front::fork_child();
        let mut dice = Rng::new(seed);
        for _ in 0..2_000 {
            let blocks: [*mut u8; 8] = std::array::from_fn(|_| make(&mut dice));
            blocks.into_iter().for_each(end);
        }
        let sound = front::validate().is_ok() && vellum_pages::Pages::global().validate().is_ok();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!sound)) };
    }
    front::fork_parent();
    assert!(child > 0, "fork is allowed in tests");
    let mut status = 0;
    // SAFETY: `status` lives during the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child's status");
}
