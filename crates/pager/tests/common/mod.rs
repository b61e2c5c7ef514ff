//! Pagers for tests, over stores that behave and stores that do not; and random numbers whose seed is printed.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

use libc::iovec;
use rustix::io::Errno;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use vellum_pager::{Backing, Config, PAGE, Pager, SlotNo, StartError};

/// Random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    /// Seeded by VELLUM_TEST_SEED, or the clock; says which.
    pub fn new() -> Random {
        let given = std::env::var("VELLUM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |since| since.as_nanos() as u64)
        });
        eprintln!("VELLUM_TEST_SEED={seed}");
        Random(seed)
    }

    pub fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A store in memory that fails when it is told to.
pub struct Shaky {
    bytes: Mutex<Vec<u8>>,
    /// One call in so many fails; 0 is none.
    fails: u64,
    calls: AtomicU64,
    /// Slots there is room for.
    limit: u32,
    /// The next page that is read comes back with one bit changed.
    pub spoil: AtomicU32,
}

impl Shaky {
    pub fn new(fails: u64, limit: u32) -> Shaky {
        let bytes = Mutex::new(vec![0; limit as usize * PAGE]);
        Shaky { bytes, fails, calls: AtomicU64::new(0), limit, spoil: AtomicU32::new(0) }
    }

    fn fail(&self) -> Result<(), Errno> {
        let call = self.calls.fetch_add(1, Relaxed) + 1;
        if self.fails != 0 && call.is_multiple_of(self.fails) { Err(Errno::IO) } else { Ok(()) }
    }
}

// The pager's threads may use neither `malloc` nor thread-local storage: a lock and a copy use neither.
impl Backing for Shaky {
    fn open(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn reserve(&self, slots: u32) -> Result<(), Errno> {
        if slots <= self.limit { Ok(()) } else { Err(Errno::NOSPC) }
    }

    unsafe fn read(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        self.fail()?;
        let bytes = self.bytes.lock().map_err(|_| Errno::IO)?;
        let mut at = slot.0 as usize * PAGE;
        for part in parts {
            // SAFETY: the caller's parts can be written.
            unsafe { part.iov_base.cast::<u8>().copy_from(bytes[at..].as_ptr(), part.iov_len) };
            if self.spoil.swap(0, Relaxed) != 0 {
                // SAFETY: as above.
                unsafe { *part.iov_base.cast::<u8>().add(1234) ^= 4 };
            }
            at += part.iov_len;
        }
        Ok(())
    }

    unsafe fn write(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        let failed = self.fail();
        let mut bytes = self.bytes.lock().map_err(|_| Errno::IO)?;
        let mut at = slot.0 as usize * PAGE;
        for part in parts {
            // A write that fails leaves anything behind.
            let len = if failed.is_err() { part.iov_len / 2 } else { part.iov_len };
            // SAFETY: the caller's parts can be read.
            let part_bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), len) };
            bytes[at..at + len].copy_from_slice(part_bytes);
            at += part.iov_len;
        }
        failed
    }

    fn descriptor(&self) -> Option<i32> {
        None
    }
}

/// Starts a pager that lives until the test ends it; `None`, said, where the kernel allows none.
pub fn start<B: Backing + Send + Sync + 'static>(config: Config, store: B) -> Option<&'static Pager<B>> {
    let pager: &'static Pager<B> = Box::leak(Box::new(Pager::new()));
    match pager.start(config, store) {
        Ok(()) => Some(pager),
        Err(StartError::Faults(errno)) => {
            eprintln!("skipped: this kernel or privilege has no userfaultfd ({errno:?})");
            None
        }
        Err(error) => panic!("the pager does not start: {error:?}"),
    }
}

/// A small configuration.
pub fn config(frames: u32) -> Config {
    Config { frames, span_pages: 8192, policy: vellum_pager::Choice::Clock }
}
