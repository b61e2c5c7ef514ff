//! Runs a fuzz target on each input, and checks its allocations, its time, and that it does not panic. An
//! input that breaks an invariant is written to a file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use vellum_fuzz::Target;

/// Bytes that a target may allocate for any input: caches, tables of fixed size, mapped files.
const BYTES_ALWAYS: usize = 64 << 20;
/// Additional bytes for each byte of the input.
const BYTES_A_BYTE: usize = 2048;
/// An input that takes this long is a hang. Every input takes less than a second, but loaded machines and
/// sanitizers are slower.
const PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    /// Bytes that this thread has allocated and not freed, and their peak.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
pub(crate) struct Counted;

// SAFETY: all calls go to the system's allocator with the same arguments; the count allocates nothing and has
// no destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        account(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is also that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        account(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`, and every block came from
        // `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

fn account(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    MOST.set(MOST.get().max(now));
}

/// Why an input fails.
#[derive(Debug)]
pub(crate) enum Broken {
    Panic(String),
    /// The peak of allocated bytes.
    Memory(#[expect(dead_code, reason = "it is printed")] isize),
}

/// Runs a target on one input after the other, while a second thread checks the time.
pub(crate) struct Watch {
    target: Target,
    began: Sender<Option<Vec<u8>>>,
}

impl Watch {
    pub(crate) fn new(target: Target) -> Watch {
        let (began, beginnings) = channel::<Option<Vec<u8>>>();
        std::thread::spawn(move || {
            let mut under_way: Option<Vec<u8>> = None;
            loop {
                match beginnings.recv_timeout(PATIENCE) {
                    Ok(input) => under_way = input,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        if let Some(input) = &under_way {
                            eprintln!(
                                "{}: no end after {PATIENCE:?}; the input is in {}",
                                target.name,
                                save(&target, input).display()
                            );
                            std::process::abort();
                        }
                    }
                }
            }
        });
        Watch { target, began }
    }

    pub(crate) fn run(&self, input: &[u8]) -> Result<(), Broken> {
        let _ = self.began.send(Some(input.to_vec()));
        let before = NOW.get();
        MOST.set(before);
        let ended = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        let most = MOST.get() - before;
        let _ = self.began.send(None);
        if let Err(why) = ended {
            let text = why.downcast_ref::<String>().cloned();
            let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            return Err(Broken::Panic(text.unwrap_or_default()));
        }
        let allowed = BYTES_ALWAYS + BYTES_A_BYTE * input.len();
        if most > allowed as isize { Err(Broken::Memory(most)) } else { Ok(()) }
    }
}

/// Writes an input to a new file.
pub(crate) fn save(target: &Target, input: &[u8]) -> PathBuf {
    let sum = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}-{sum:016x}", target.name));
    if let Err(error) = std::fs::write(&path, input) {
        eprintln!("{}: {error}", path.display());
    }
    path
}
