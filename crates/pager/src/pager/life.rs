//! Starts a pager (its tables, its store, its threads) and ends it.
//!
//! If a step of the start fails, the earlier steps are undone in the opposite order.

use super::request::Request;
use super::{A_WHILE_NS, Config, Inner, Pager, StartError, Tables, phase};
use crate::evict;
use crate::objects::Objects;
use crate::store::FileStore;
use crate::table::Table;
use crate::units::{FRAMES_MAX, FRAMES_MIN, PAGE, STEP};
use core::sync::atomic::Ordering;
use rustix::io::Errno;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{HUGE, Span, map, thread};

/// Between two looks whether a thread has ended.
const ENDING_NS: u64 = 1_000_000;

/// Address space from a multiple of [`HUGE`] on: objects are aligned in memory as they are in the span.
fn reserve_aligned(bytes: usize) -> Result<Span, Errno> {
    let whole = map::reserve_inaccessible(bytes + HUGE)?;
    let span = Span::new(whole.start.round_up(HUGE), bytes);
    for unused in [whole.before(span.start), whole.from(span.end())] {
        if !unused.is_empty() {
            // SAFETY: reserved by this function, and not needed.
            let _ = unsafe { map::release(unused) };
        }
    }
    Ok(span)
}

impl Pager {
    /// Starts the pager's threads, over `store`. Called once, by one thread.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then, and nothing is paged.
    pub fn start(&'static self, config: Config, store: FileStore) -> Result<(), StartError> {
        if !(FRAMES_MIN..=FRAMES_MAX).contains(&config.frames) {
            return Err(StartError::Frames(config.frames));
        }
        let begun =
            self.phase.compare_exchange(phase::NONE, phase::STARTING, Ordering::AcqRel, Ordering::Acquire);
        if begun.is_err() {
            return Err(StartError::Again);
        }
        let started = self.prepare(config, store).map_err(StartError::Memory).and_then(|()| self.launch());
        if started.is_err() {
            self.phase.store(phase::FAILED, Ordering::Release);
            self.give_back_all(config.place.is_some());
        }
        started
    }

    fn prepare(&self, config: Config, store: FileStore) -> Result<(), Errno> {
        // Whole steps: none is shared with what lies behind the span.
        let pages = config.span_pages / STEP * STEP;
        let start = match config.place {
            Some(place) => place,
            None => reserve_aligned(pages as usize * PAGE)?.start,
        };
        self.start.store(start.get(), Ordering::Relaxed);
        self.pages.store(pages, Ordering::Relaxed);
        self.frames.store(config.frames, Ordering::Relaxed);
        for stack in &self.stacks {
            stack.store(map::reserve_writable(thread::HELPER_BYTES)?.start.get(), Ordering::Relaxed);
        }
        let words = || Table::new(pages.div_ceil(u64::BITS) as usize);
        let steps = || Table::new((pages / STEP) as usize);
        let near = config.near_pages.min(pages);
        self.near.store(near, Ordering::Relaxed);
        *self.inner.lock() = Inner {
            objects: Objects::new(near, pages)?,
            units: Objects::new(0, near)?,
            near,
            ..Inner::none()
        };
        let tables = Tables {
            needed: words()?,
            used: words()?,
            contents: words()?,
            cached: words()?,
            steps: steps()?,
            places: steps()?,
        };
        // SAFETY: nobody else knows of the pager yet.
        unsafe {
            *self.tables.get() = tables;
            *self.store.get() = Some(store);
        }
        Ok(())
    }

    fn launch(&'static self) -> Result<(), StartError> {
        let stack = self.stack(0).ptr();
        let argument = core::ptr::from_ref(self) as usize;
        // SAFETY: the stack is zeroed and outlives the thread; `evict::run` uses no thread-local storage.
        unsafe { thread::start(evict::run, argument, stack, &self.threads[0]) }
            .map_err(StartError::Thread)?;
        loop {
            match self.phase.load(Ordering::Acquire) {
                phase::SERVING => return Ok(()),
                phase::FAILED => {
                    self.join();
                    let errno = Errno::from_raw_os_error(self.failure.load(Ordering::Relaxed));
                    return Err(match self.is_store_at_fault.load(Ordering::Relaxed) {
                        true => StartError::Store(errno),
                        false => StartError::Thread(errno),
                    });
                }
                other => thread::wait(&self.phase, other, A_WHILE_NS),
            }
        }
    }

    fn join(&self) {
        for tid in &self.threads {
            loop {
                match tid.load(Ordering::Acquire) {
                    0 => break,
                    // The kernel's wake at a thread's end is of the shared kind, and ends no private wait.
                    alive => thread::wait(tid, alive, ENDING_NS),
                }
            }
        }
    }

    /// Unmaps all memory of the pager. The span stays reserved if it was lent.
    fn give_back_all(&self, is_lent: bool) {
        let span = self.span();
        self.start.store(0, Ordering::Release);
        self.pages.store(0, Ordering::Relaxed);
        if is_lent && !span.start.is_null() {
            // SAFETY: the pager's own, which nobody has seen.
            let _ = unsafe { map::close(span) };
        }
        let stacks = [0, 1].map(|which| Span::new(self.stack(which), thread::HELPER_BYTES));
        self.stacks.iter().for_each(|stack| stack.store(0, Ordering::Relaxed));
        for memory in [if is_lent { Span::EMPTY } else { span }].into_iter().chain(stacks) {
            if !memory.start.is_null() {
                // SAFETY: the pager's own, whose threads have ended or were never started.
                let _ = unsafe { map::release(memory) };
            }
        }
        *self.inner.lock() = Inner::none();
        // SAFETY: the threads have ended, and nobody uses the pager any more.
        unsafe { *self.tables.get() = Tables::none() };
    }

    /// Ends the pager. Its address range is gone afterwards.
    ///
    /// # Safety
    /// The pager and its objects are not used any more.
    pub unsafe fn stop(&'static self) {
        if self.phase.load(Ordering::Acquire) == phase::SERVING {
            let _undisturbed = Undisturbed::new();
            let _ = self.ask(Request::Stop);
            self.join();
            self.phase.store(phase::ENDED, Ordering::Release);
            self.give_back_all(false);
        }
    }
}
