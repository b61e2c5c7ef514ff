//! Threads that come and go, exchange blocks, and fork at any moment. The seed is printed; `VELLUM_TEST_SEED` repeats it.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use vellum_malloc as front;

/// A block on its way from one thread to another: its length is in its first word, the seed of its contents in the
/// second.
static EXCHANGE: [AtomicPtr<u8>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((value ^ (value >> 31)) % sides as u64) as usize
    }
}

fn seed() -> u64 {
    let seed =
        std::env::var("VELLUM_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_nanos() as u64
        });
    println!("VELLUM_TEST_SEED={seed}");
    seed
}

fn bytes(dice: &mut Dice) -> usize {
    let limit = [64, 300, 3_000, 40_000, 400_000][dice.roll(50).min(4)];
    16 + dice.roll(limit)
}

fn make(dice: &mut Dice) -> *mut u8 {
    let bytes = bytes(dice);
    let block = front::malloc(bytes);
    assert!(!block.is_null());
    let mark = dice.roll(usize::MAX);
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
    let mut dice = Dice(seed);
    let mut own: Vec<*mut u8> = Vec::new();
    for _ in 0..steps {
        match dice.roll(10) {
            0..4 => own.push(make(&mut dice)),
            4..7 if !own.is_empty() => end(own.swap_remove(dice.roll(own.len()))),
            7..9 if !own.is_empty() => {
                let block = own.swap_remove(dice.roll(own.len()));
                let other = EXCHANGE[dice.roll(EXCHANGE.len())].swap(block, Ordering::AcqRel);
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
    let seed = seed();
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
}

/// Forks as the shared library's handlers do; the child allocates at once, and then from a thread of its own heap.
fn fork_and_work(seed: u64) {
    front::fork_prepare();
    // SAFETY: the child calls only this crate, which is made for that, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        front::fork_child();
        let mut dice = Dice(seed);
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
    // SAFETY: plain call for our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child's status");
}
