//! A watch over each input: its allocations, its time, and its panics. An input that breaks an invariant is
//! written to a file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use vellum_fuzz::Target;

/// What a target may have at once, whatever the input: caches, tables of fixed size, files mapped.
const BYTES_ALWAYS: usize = 64 << 20;
/// And for each byte of the input.
const BYTES_A_BYTE: usize = 2048;
/// An input that takes so long is a hang. Nothing here takes a second; loaded machines and sanitizers do.
const PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most that they were.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with an account for each thread.
pub(crate) struct Counted;

// SAFETY: all is passed to the system's allocator, with the same arguments; the account allocates nothing and
// has no destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        account(layout.size() as isize);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        account(-(layout.size() as isize));
        // SAFETY: the caller keeps the same contract, and blocks are the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

fn account(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    MOST.set(MOST.get().max(now));
}

/// Why an input is a find.
#[derive(Debug)]
pub(crate) enum Broken {
    Panic(String),
    /// Bytes at once.
    Memory(#[expect(dead_code, reason = "it is printed")] isize),
}

/// Runs a target on one input after the other, with a second thread that looks at the clock.
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

/// Writes an input to a file of its own.
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
