//! A workload that touches a block, several times as large as the memory allowed, in order and at random.
//!
//! With `kernel=1` the kernel pages: the worker makes a swap file and a memory cgroup of `frames` bytes,
//! and its child works in that cgroup. Otherwise the worker does the work, and the preloaded library pages.
//!
//! | phase | touches |
//! | --- | --- |
//! | `zero` | every page of a block half as long as the frames, for the first time, in random order |
//! | `new` | every page of the long block, for the first time, in order; most touches evict another page |
//! | `scan` | every page, read in order, twice |
//! | `read`, `write` | pages at random |

use crate::Metrics;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;
use vellum_campaign::confine::{Group, SwapFile};
use vellum_campaign::worker::meter::Meter;
use vellum_campaign::worker::{Params, WorkError};
use vellum_measure::Rng;
use vellum_process::Interrupt;

const PAGE: usize = 4096;
/// The folder of the swap file and the store.
const FOLDER: &str = "/var/tmp";
/// Memory of a process besides its block: its code and data, and page tables.
const BESIDES: usize = 6 << 20;
const PHASES: [&str; 5] = ["zero", "new", "scan", "read", "write"];

/// Touches a block of `times` times `frames` bytes in `frames` bytes, with `touches` of each random kind.
pub(super) fn run(params: &Params) -> Result<Metrics, WorkError> {
    let (frames, times) = (params.size("frames", 64 << 20), params.size("times", 4));
    let bytes = frames * times;
    let results = if params.get("kernel", 0) == 0 {
        phases(params, frames, bytes)?
    } else {
        confined(params, frames, bytes)?
    };
    let mut metrics = Metrics::new();
    for (phase, [cpu, wall]) in PHASES.into_iter().zip(results) {
        metrics.set(&format!("{phase}_cpu_ns"), cpu);
        metrics.set(&format!("{phase}_ns"), wall);
    }
    Ok(metrics)
}

fn wrong(what: &str) -> WorkError {
    WorkError::Wrong { workload: "paged", what: what.to_owned() }
}

/// CPU and wall nanoseconds a page, for each phase.
type Results = [[f64; 2]; PHASES.len()];

fn phases(params: &Params, frames: usize, bytes: usize) -> Result<Results, WorkError> {
    let mut rng = Rng::new(params.seed());
    let mut results = Results::default();
    let touches = params.size("touches", 20_000);
    let mut timed = |phase: usize, pages: usize, work: &mut dyn FnMut()| {
        let meter = Meter::start();
        work();
        let took = meter.stop();
        let each = |name| took.get(name).unwrap_or(f64::NAN) / pages as f64;
        results[phase] = [each("cpu_ns"), each("wall_ns")];
    };
    let short = Block::new(frames / 2)?;
    let mut order: Vec<usize> = (0..short.pages).collect();
    rng.shuffle(&mut order);
    timed(0, order.len(), &mut || order.iter().for_each(|&page| short.set(page, page as u64)));
    drop(short);
    let block = Block::new(bytes)?;
    let value = |page: usize| page as u64 * 3 + 1;
    timed(1, block.pages, &mut || (0..block.pages).for_each(|page| block.set(page, value(page))));
    let mut is_right = true;
    timed(2, 2 * block.pages, &mut || {
        for _ in 0..2 {
            is_right &= (0..block.pages).all(|page| block.get(page) == value(page));
        }
    });
    let mut draw = || rng.below(block.pages as u64) as usize;
    timed(3, touches, &mut || {
        is_right &= (0..touches).map(|_| draw()).all(|page| block.get(page) == value(page));
    });
    timed(4, touches, &mut || (0..touches).map(|_| draw()).for_each(|page| block.set(page, value(page))));
    if is_right { Ok(results) } else { Err(wrong("a page came back other than it went")) }
}

/// A block of base pages.
pub(super) struct Block {
    whole: Vec<u8>,
    skip: usize,
    pages: usize,
}

impl Block {
    pub(super) fn new(bytes: usize) -> Result<Self, WorkError> {
        let mut whole: Vec<u8> = Vec::new();
        whole.try_reserve_exact(bytes + PAGE).map_err(|error| wrong(&error.to_string()))?;
        let start = whole.as_ptr().addr();
        let skip = start.next_multiple_of(PAGE) - start;
        // SAFETY: the range lies in the vector's allocation; the advice does not change its contents.
        unsafe { libc::madvise(whole.as_mut_ptr().add(skip).cast(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Self { whole, skip, pages: bytes / PAGE })
    }

    /// The block as numbers, which are not initialised.
    pub(super) fn numbers(&mut self) -> &mut [MaybeUninit<u64>] {
        let len = self.pages * PAGE / size_of::<u64>();
        // SAFETY: the range lies in the vector's allocation and is aligned to a page; the mutable borrow of
        // the block lasts as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.place(0).cast(), len) }
    }

    fn place(&self, page: usize) -> *mut u64 {
        debug_assert!(page < self.pages);
        self.whole.as_ptr().cast_mut().wrapping_add(self.skip + page * PAGE).cast()
    }

    fn set(&self, page: usize, value: u64) {
        // SAFETY: the page lies in the vector's allocation and is aligned; no reference to it exists.
        unsafe { self.place(page).write_volatile(value) };
    }

    fn get(&self, page: usize) -> u64 {
        // SAFETY: the page lies in the vector's allocation and is aligned; only pages that were set are read.
        unsafe { self.place(page).read_volatile() }
    }
}

/// Runs the phases in a child in its own group, over a swap file.
fn confined(params: &Params, frames: usize, bytes: usize) -> Result<Results, WorkError> {
    // Declared first, so that it is dropped last: everything made below must be removed, also after a signal.
    let _caught = Interrupt::catch().map_err(|error| wrong(&error.to_string()))?;
    let _swap =
        SwapFile::new(Path::new(FOLDER), 2 * bytes as u64).map_err(|error| wrong(&error.to_string()))?;
    let group =
        Group::new("vellum-paged", (frames + BESIDES) as u64).map_err(|error| wrong(&error.to_string()))?;
    // SAFETY: a fresh mapping that parent and child share, long enough for the results, zero at first.
    let shared = unsafe {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), size_of::<Results>(), protection, flags, -1, 0)
    };
    if shared == libc::MAP_FAILED {
        return Err(wrong("no memory for the results"));
    }
    let shared: *mut Results = shared.cast();
    // SAFETY: the worker has one thread, so no lock is held by another thread in the child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the kernel kills the child if the worker ends; the mapping is alive; the child exits
        // without returning.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let done = group.take(std::process::id()).map_err(|error| error.to_string()).and_then(|()| {
                phases(params, frames, bytes)
                    .map(|results| shared.write(results))
                    .map_err(|error| error.to_string())
            });
            if let Err(why) = &done {
                eprintln!("{why}");
            }
            libc::_exit(i32::from(done.is_err()));
        }
    }
    if child < 0 {
        return Err(wrong("a child could not be forked"));
    }
    let mut status = 0;
    // SAFETY: `child` is our own child, and the call fills `status`, which is a live local variable.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if Interrupt::arrived().is_some() {
            // SAFETY: a signal to our own child, which has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        group.relieve();
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the mapping holds the child's results, or zeros, which are valid numbers.
    let results = unsafe { shared.read() };
    // SAFETY: the mapping is not used again.
    unsafe { libc::munmap(shared.cast(), size_of::<Results>()) };
    if status == 0 { Ok(results) } else { Err(wrong(&format!("the child failed (wait status {status:#x})"))) }
}
