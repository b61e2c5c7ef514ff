//! The evicting thread. It opens the store, answers requests, and limits the store's pages in memory.
//!
//! The thread works every millisecond while pages arrive, and seldom otherwise. The process's major faults,
//! which the kernel reports at no cost, are an upper bound on the pages that arrived. The thread counts pages
//! only if they may, by that bound, fill the frames (the pages allowed in memory). When less than 1/32 of the
//! frames is free, it evicts another 1/32, in batches, before the frames run out. The thread takes no lock
//! that a thread of the program takes, since such a thread may be waiting for a page.

mod ahead;
mod gate;
mod look;
mod sweep;

use crate::pager::request::Request;
use crate::pager::{Pager, phase};
use crate::share::{Beside, Share};
use crate::store::FileStore;
use crate::trouble;
use crate::units::STEP;
use ahead::Ahead;
use core::sync::atomic::Ordering;
pub(crate) use gate::Gate;
use rustix::io::Errno;
use sweep::Sweep;
use vellum_sys::{Span, clock, raw, thread, usage};
use vellum_wire::Counter;

/// Between two looks: while pages arrive, after pages were evicted, and while nothing moves.
const BUSY_NS: u64 = 1_000_000;
const HOT_NS: u64 = 250_000;
const IDLE_NS: u64 = 20_000_000;
/// Looks at which nothing has moved before pages are counted that were read.
const SETTLED: u32 = 16;
/// Looks at which nothing has moved before looks are seldom.
const QUIET: u32 = 500;
/// Pages that may be too many: 1 MiB.
const SLOW: u32 = 256;
/// The part of the frames that is evicted at once.
const BATCH: u32 = 32;
/// The part of the time that counting the pages in memory may take.
const COUNT_PART: u64 = 100;
/// Rounds of work after which a burst has all but decayed.
const BURST_ROUNDS: u32 = 16;
/// Between two looks at the process's other memory and at its control groups, while pages arrive.
const ALLOW_NS: u64 = 50_000_000;
/// The same while none do.
const ALLOW_IDLE_NS: u64 = 1_000_000_000;

/// The first page of the store is the gate's; objects' steps are behind its first step.
const HEAD: u32 = 1;

struct Evictor {
    pager: &'static Pager,
    store: &'static FileStore,
    /// The frames requested, and the number that may be used now.
    asked: u32,
    frames: u32,
    share: Share,
    beside: Beside,
    /// Pages in memory: counted, plus those arrived since, by the process's major faults.
    level: u32,
    faults: u64,
    /// The most that has lately arrived between two looks.
    burst: u32,
    places: u32,
    quiet: u32,
    next_allow: u64,
    next_count: u64,
    sweep: Sweep,
    ahead: Ahead,
}

pub(crate) extern "C" fn run(pager: usize) -> ! {
    // SAFETY: `launch` passes a pager that lives for ever.
    let pager = unsafe { &*(pager as *const Pager) };
    thread::close_inherited();
    thread::be_prompt();
    if let Err((errno, is_store)) = begin(pager) {
        pager.failure.store(errno.raw_os_error(), Ordering::Relaxed);
        pager.is_store_at_fault.store(is_store, Ordering::Relaxed);
        pager.phase.store(phase::FAILED, Ordering::Release);
        thread::wake_all(&pager.phase);
        thread::exit();
    }
    let mut evictor = Evictor::new(pager);
    evictor.allow();
    pager.phase.store(phase::SERVING, Ordering::Release);
    thread::wake_all(&pager.phase);
    loop {
        let seen = pager.post.bell.load(Ordering::Acquire);
        if pager.post.is_asked() {
            // A request may wait for the disk.
            evictor.arrivals();
            evictor.set_gate();
            evictor.serve();
            continue;
        }
        let pause = evictor.work();
        thread::wait(&pager.post.bell, seen, pause);
        pager.is_idle.store(false, Ordering::Relaxed);
    }
}

/// Opens the store and starts the gate. An error is the errno, and whether the store is at fault.
fn begin(pager: &'static Pager) -> Result<(), (Errno, bool)> {
    let store = pager.store();
    store.open().map_err(|errno| (errno, true))?;
    store.set_aside(0, HEAD * STEP).map_err(|errno| (errno, true))?;
    // What a store must do later is tried now.
    store.zero(0, 1).and_then(|()| store.punch()).map_err(|errno| (errno, true))?;
    gate::launch(pager).map_err(|errno| (errno, false))
}

fn in_store(pager: &Pager, page: u32) -> u32 {
    let place = pager.tables().steps[(page / STEP) as usize].load(Ordering::Relaxed);
    place.saturating_sub(1) * STEP + page % STEP
}

impl Evictor {
    fn new(pager: &'static Pager) -> Evictor {
        let asked = pager.frames.load(Ordering::Relaxed);
        Evictor {
            pager,
            store: pager.store(),
            asked,
            frames: asked,
            share: Share::discover(),
            beside: Beside::at_start(asked),
            level: 0,
            faults: usage::major_faults(),
            burst: 0,
            places: 0,
            quiet: 0,
            next_allow: 0,
            next_count: 0,
            sweep: Sweep::new(),
            ahead: Ahead::new(),
        }
    }

    fn serve(&mut self) {
        let mut is_over = false;
        self.pager.post.answer(|request| match request {
            Request::Open(from, to) => self.open(from, to),
            Request::Zero(from, to) => {
                self.zero(from, to);
                Ok(())
            }
            Request::Follow(change) => {
                // One that is refused what the program was allowed had fewer rights, and has no more now.
                let _ = change.apply();
                gate::follow(self.pager, change);
                Ok(())
            }
            Request::Stop => {
                is_over = true;
                gate::end(self.pager);
                Ok(())
            }
        });
        if is_over {
            thread::exit();
        }
    }

    /// Maps the store for the unmapped ones of pages `from..to`.
    fn open(&mut self, from: u32, to: u32) -> Result<(), Errno> {
        let tables = self.pager.tables();
        for step in from / STEP..to.div_ceil(STEP) {
            if tables.steps[step as usize].load(Ordering::Relaxed) != 0 {
                continue;
            }
            let place = HEAD + self.places;
            self.store.set_aside(place * STEP, STEP)?;
            self.map(step, place)?;
            tables.places[self.places as usize].store(step, Ordering::Relaxed);
            tables.steps[step as usize].store(place + 1, Ordering::Release);
            self.places += 1;
        }
        Ok(())
    }

    fn map(&self, step: u32, place: u32) -> Result<(), Errno> {
        let Span { start, bytes } = self.pager.range(step * STEP, (step + 1) * STEP);
        let (start, file, offset) = (start.get(), self.store.descriptor() as usize, place as usize * bytes);
        let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as usize;
        // SAFETY: a step of the span in which no object was yet.
        unsafe { raw::syscall(libc::SYS_mmap, [start, bytes, prot, flags, file, offset])? };
        for advice in [libc::MADV_RANDOM, libc::MADV_DONTFORK] {
            // SAFETY: this advice changes no contents.
            unsafe { raw::syscall(libc::SYS_madvise, [start, bytes, advice as usize, 0, 0, 0])? };
        }
        Ok(())
    }

    /// Makes pages `from..to`, which nobody touches meanwhile, read as zero.
    fn zero(&mut self, from: u32, to: u32) {
        let tables = self.pager.tables();
        let mut at = from;
        while at < to {
            let end = to.min((at / STEP + 1) * STEP);
            if let Err(errno) = self.store.zero(in_store(self.pager, at), end - at) {
                trouble::stop("cannot clear pages of the store", errno);
            }
            self.level = self.level.saturating_sub(tables.cached().count(at, end));
            for bits in [tables.used(), tables.contents(), tables.cached()] {
                bits.clear(at, end);
            }
            // They may be in use, by a program that has zeroed them, and be written to at any time.
            tables.needed().runs(at, end, true).for_each(|(first, last)| tables.used().set(first, last));
            at = end;
        }
    }

    /// Does all that is due now. Returns how long to wait before the next call.
    fn work(&mut self) -> u64 {
        let arrived = self.arrivals();
        self.quiet = if arrived == 0 { self.quiet.saturating_add(1) } else { 0 };
        let is_idle = self.quiet >= QUIET;
        let now = clock::now_ns();
        if now >= self.next_allow {
            self.allow();
            self.next_allow = now + if is_idle { ALLOW_IDLE_NS } else { ALLOW_NS };
        }
        if !gate::is_shut(self.pager) {
            self.read_ahead(arrived);
        }
        let limit = self.limit();
        let is_full = self.level > limit && {
            self.recount();
            self.level > limit
        };
        if is_full {
            self.set_gate();
            self.evict(limit - self.frames / BATCH);
        }
        if self.quiet == SETTLED {
            // What has come since the last round is counted now: nothing else may come for long.
            self.search(1);
        }
        self.set_gate();
        self.pager.level.store(self.level, Ordering::Relaxed);
        if arrived > 0 || is_full || self.quiet == SETTLED {
            self.pager.publish();
        }
        if self.level > limit {
            return HOT_NS;
        }
        self.pager.is_idle.store(is_idle, Ordering::Relaxed);
        if is_idle { IDLE_NS } else { BUSY_NS }
    }

    /// Counts the pages in memory, unless counting is slow and was done a moment ago.
    fn recount(&mut self) {
        let now = clock::now_ns();
        if now >= self.next_count {
            self.level = self.count();
            let counted = clock::now_ns();
            self.next_count = counted + COUNT_PART * counted.saturating_sub(now);
        }
    }

    /// Adds to the level what has arrived since the last call; how many pages.
    fn arrivals(&mut self) -> u32 {
        let faults = usage::major_faults();
        let arrived = faults.saturating_sub(self.faults).min(u64::from(u32::MAX / 2)) as u32;
        self.faults = faults;
        self.level = self.level.saturating_add(arrived);
        self.burst = arrived.max(self.burst - self.burst.div_ceil(BURST_ROUNDS));
        arrived
    }

    /// Pages in memory above which faults wait. Two further bursts would fill the frames, as one comes while
    /// this thread waits for the disk or a processor. Pages that are read come slowly enough.
    fn full(&self) -> u32 {
        self.frames - self.burst.saturating_mul(2).saturating_sub(SLOW).min(self.frames / 2)
    }

    fn limit(&self) -> u32 {
        self.full().min(self.frames - self.frames / BATCH)
    }

    /// Has faults wait where the frames are all but full.
    fn set_gate(&self) {
        gate::set(self.pager, self.level > self.full());
    }

    /// Finds out how many frames may be used.
    fn allow(&mut self) {
        self.recount();
        let shared = self.share.frames(self.asked, self.level);
        let mapped = self.level.saturating_sub(self.sweep.unmapped());
        self.beside = self.beside.measure(mapped);
        self.frames = shared.min(self.beside.leaves(self.asked));
        self.pager.frames.store(self.frames, Ordering::Relaxed);
        self.pager.show(Counter::PeakPagedFrames, u64::from(self.frames));
        if self.pager.has_units() {
            self.pager.show(Counter::PeakUnpagedPages, self.beside.most());
        }
    }
}
