//! Pagers for tests, over stores that behave and stores that do not; and random numbers whose seed is
//! printed.

use libc::iovec;
use rustix::io::Errno;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use vellum_pager::{Backing, Config, FileStore, PAGE, Pager, SlotNo, StartError};
use vellum_random::Rng;
use vellum_sys::text::Share;
use vellum_sys::{Caps, caps};

/// Random numbers.
pub(crate) struct Random(Rng);

impl Random {
    /// Seeded by VELLUM_TEST_SEED, or the clock; says which.
    pub(crate) fn new() -> Random {
        Random::seeded(vellum_random::test_seed(None))
    }

    pub(crate) fn seeded(seed: u64) -> Random {
        Random(Rng::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.index(limit)
    }
}

/// A store in memory that fails on demand. Lent, so that a test can tell it while a pager uses it.
pub(crate) struct Shaky {
    bytes: Mutex<Vec<u8>>,
    /// One call in this many fails; 0 is none, 1 is all.
    pub(crate) fails: AtomicU64,
    /// What it fails with.
    pub(crate) errno: AtomicI32,
    /// What does not fail: reads, or writes.
    pub(crate) spares: AtomicU32,
    calls: AtomicU64,
    /// How many may fail yet.
    pub(crate) left: AtomicU64,
    /// Slots there is room for.
    limit: u32,
    /// This many of the next transfers come back with one bit of their first page changed.
    pub(crate) spoil: AtomicU32,
}

impl Shaky {
    pub(crate) fn new(fails: u64, limit: u32) -> Shaky {
        Shaky {
            bytes: Mutex::new(vec![0; limit as usize * PAGE]),
            fails: AtomicU64::new(fails),
            errno: AtomicI32::new(libc::EIO),
            spares: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            left: AtomicU64::new(u64::MAX),
            limit,
            spoil: AtomicU32::new(0),
        }
    }

    /// A store that stays for as long as the test program.
    pub(crate) fn lasting(fails: u64, limit: u32) -> &'static Shaky {
        Box::leak(Box::new(Shaky::new(fails, limit)))
    }

    fn fail(&self, what: u32) -> Result<(), Errno> {
        let call = self.calls.fetch_add(1, Relaxed) + 1;
        let fails = self.fails.load(Relaxed);
        if fails != 0
            && self.spares.load(Relaxed) != what
            && call.is_multiple_of(fails)
            && self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
        {
            return Err(Errno::from_raw_os_error(self.errno.load(Relaxed)));
        }
        Ok(())
    }
}

/// Calls that a [`Shaky`] store may spare.
pub(crate) const READS: u32 = 1;
pub(crate) const WRITES: u32 = 2;

// The pager's threads may use neither `malloc` nor thread-local storage: a lock and a copy use neither.
impl Backing for Shaky {
    fn open(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn reserve(&self, slots: u32) -> Result<(), Errno> {
        if slots <= self.limit { Ok(()) } else { Err(Errno::NOSPC) }
    }

    unsafe fn read(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        self.fail(READS)?;
        let bytes = self.bytes.lock().map_err(|_| Errno::IO)?;
        let mut at = slot.0 as usize * PAGE;
        for part in parts {
            // SAFETY: the caller's parts can be written.
            unsafe { part.iov_base.cast::<u8>().copy_from(bytes[at..].as_ptr(), part.iov_len) };
            if self.spoil.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                // SAFETY: as above.
                unsafe { *part.iov_base.cast::<u8>().add(1234) ^= 4 };
            }
            at += part.iov_len;
        }
        Ok(())
    }

    unsafe fn write(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        let failed = self.fail(WRITES);
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

impl Backing for &'static Shaky {
    fn open(&self) -> Result<(), Errno> {
        (**self).open()
    }

    fn reserve(&self, slots: u32) -> Result<(), Errno> {
        (**self).reserve(slots)
    }

    unsafe fn read(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        // SAFETY: passed on.
        unsafe { (**self).read(slot, parts) }
    }

    unsafe fn write(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        // SAFETY: passed on.
        unsafe { (**self).write(slot, parts) }
    }

    fn descriptor(&self) -> Option<i32> {
        None
    }
}

/// What a process that a test has started ends with if it can test nothing here.
pub(crate) const SKIPPED: i32 = 77;

/// Ends this process, which a test has started, as one that could test nothing.
pub(crate) fn skip_alone() -> ! {
    std::process::exit(SKIPPED)
}

/// Takes from the kernel what VELLUM_MASK names, as the library does for programs.
fn mask() {
    if let Some(names) = std::env::var_os("VELLUM_MASK") {
        let names = Caps::by_names(names.as_encoded_bytes());
        caps::drop(names.expect("VELLUM_MASK has capability names separated by commas"));
    }
}

/// Starts a pager that lives until the test ends it; `None`, said, where the kernel allows none.
pub(crate) fn start<B: Backing + Send + Sync + 'static>(
    config: Config,
    store: B,
) -> Option<&'static Pager<B>> {
    mask();
    let pager: &'static Pager<B> = Box::leak(Box::new(Pager::new()));
    match pager.start(config, store) {
        Ok(()) => Some(pager),
        Err(StartError::Faults(errno)) => {
            vellum_skip::skip(format_args!("this kernel or privilege has no userfaultfd ({errno:?})"));
            None
        }
        Err(error) => panic!("the pager does not start: {error:?}"),
    }
}

/// One with as many frames, and as many more for compressed pages.
pub(crate) fn packing(frames: u32) -> Config {
    Config { compressed: Share::Percent(50), ..config(2 * frames) }
}

/// A small configuration.
pub(crate) fn config(frames: u32) -> Config {
    Config { span_pages: 8192, ..Config::of_frames(frames) }
}

/// A store in a file at `path`.
pub(crate) fn file_store(path: &Path) -> FileStore {
    FileStore::at(path.as_os_str().as_encoded_bytes()).expect("a short path")
}

/// Ends a pager whose objects the test uses no more.
pub(crate) fn end<B: Backing + Send + Sync>(pager: &'static Pager<B>) {
    pager.validate().expect("an invariant");
    // SAFETY: no object is used any more.
    unsafe { pager.stop() };
}
