//! Starting a pager: its tables, its store, its threads; and ending it.
//!
//! A step is undone if a later one fails, in the opposite order.

use super::{A_WHILE_NS, AT_FAULTS, AT_STORE, Config, Pager, StartError, phase};
use crate::inner::{Inner, Request};
use crate::share::{Beside, Share};
use crate::store::Backing;
use crate::table::Table;
use crate::units::{FRAMES_MAX, FRAMES_MIN, PAGE};
use core::sync::atomic::Ordering;
use rustix::io::Errno;
use vellum_sys::{HUGE, map, round_up, thread};

/// Address space from a multiple of [`HUGE`] on, so that an object's alignment in the span is its alignment
/// in memory.
fn reserve_aligned(bytes: usize) -> Result<usize, Errno> {
    let whole = map::reserve_readable(bytes + HUGE)?;
    let start = round_up(whole, HUGE);
    for (from, to) in [(whole, start), (start + bytes, whole + bytes + HUGE)] {
        if from < to {
            // SAFETY: reserved a moment ago, and not needed.
            let _ = unsafe { map::release(from, to - from) };
        }
    }
    Ok(start)
}

impl<B: Backing + Send> Pager<B> {
    /// Starts the pager's threads, over `store`. Called once, by one thread.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then, and nothing is paged.
    pub fn start(&'static self, config: Config, store: B) -> Result<(), StartError> {
        if !(FRAMES_MIN..=FRAMES_MAX).contains(&config.frames) {
            return Err(StartError::Frames(config.frames));
        }
        if self
            .phase
            .compare_exchange(phase::NONE, phase::STARTING, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            return Err(StartError::Again);
        }
        let started = self.settle(config, store).map_err(StartError::Memory).and_then(|()| self.launch());
        if started.is_err() {
            self.phase.store(phase::FAILED, Ordering::Release);
            self.give_back_all(config.place.is_some());
        }
        started
    }

    fn settle(&'static self, config: Config, store: B) -> Result<(), Errno> {
        let bytes = (config.span_pages as usize + 1) * PAGE;
        let base = match config.place {
            Some(place) => place,
            None => reserve_aligned(bytes)?,
        };
        let near = config.near_pages.min(config.span_pages);
        self.base.store(base, Ordering::Relaxed);
        self.pages.store(config.span_pages, Ordering::Relaxed);
        // SAFETY: reserved a moment ago.
        unsafe { map::make_writable(base, bytes)? };
        map::advise_huge(base, bytes, false);
        for stack in &self.stacks {
            let start = map::reserve_readable(thread::HELPER_BYTES)?;
            stack.store(start, Ordering::Relaxed);
            // SAFETY: reserved a moment ago.
            unsafe { map::make_writable(start, thread::HELPER_BYTES)? };
        }
        let bitmap = Table::<u64>::new(config.span_pages.div_ceil(u64::BITS) as usize)?;
        self.words.store(bitmap.as_ptr().cast_mut().cast(), Ordering::Relaxed);
        let mut inner =
            Inner::new(config.frames, base, near, config.span_pages, config.policy, config.compressed)?;
        inner.share = Share::discover().frames(config.frames, 0);
        inner.beside = Beside::at_start(config.frames);
        inner.allow();
        // None of them is in memory yet, so that none need be kept for what happens meanwhile.
        inner.frames -= inner.pool.retire(inner.surplus());
        inner.follow_allowance();
        *self.inner.lock() = inner;
        // SAFETY: nobody else knows of the pager yet.
        unsafe {
            *self.bitmap.get() = bitmap;
            *self.store.get() = Some(store);
        }
        self.keep_from_children(true);
        Ok(())
    }

    fn launch(&'static self) -> Result<(), StartError> {
        let stack = self.stacks[0].load(Ordering::Relaxed) as *mut u8;
        let argument = core::ptr::from_ref(self) as usize;
        // SAFETY: the stack is zeroed, of the right size, and stays until the thread has ended; `answer` uses
        // no thread-local storage.
        unsafe { thread::start(crate::answer::answer::<B>, argument, stack, &self.threads[0]) }
            .map_err(StartError::Thread)?;
        loop {
            match self.phase.load(Ordering::Acquire) {
                phase::SERVING => return Ok(()),
                phase::FAILED => {
                    self.join();
                    let errno = Errno::from_raw_os_error(self.failure.load(Ordering::Relaxed));
                    return Err(match self.failed_at.load(Ordering::Relaxed) {
                        AT_FAULTS => StartError::Faults(errno),
                        AT_STORE => StartError::Store(errno),
                        _ => StartError::Thread(errno),
                    });
                }
                other => thread::wait(&self.phase, other, A_WHILE_NS),
            }
        }
    }

    /// Starts the writer and the readers, from the thread whose descriptors they are to have.
    pub(crate) fn launch_helpers(&'static self) -> Result<(), Errno> {
        let argument = core::ptr::from_ref(self) as usize;
        for (index, stack) in self.stacks.iter().enumerate().skip(1) {
            let entry: extern "C" fn(usize) -> ! =
                if index == 1 { crate::writer::write::<B> } else { crate::reader::read::<B> };
            let stack = stack.load(Ordering::Relaxed) as *mut u8;
            // SAFETY: as in `launch`.
            if let Err(errno) = unsafe { thread::start(entry, argument, stack, &self.threads[index]) } {
                self.inner.lock().stopping = true;
                thread::wake(&self.work);
                thread::wake(&self.reads);
                return Err(errno);
            }
        }
        Ok(())
    }

    fn join(&self) {
        for tid in &self.threads {
            loop {
                match tid.load(Ordering::Acquire) {
                    0 => break,
                    alive => thread::wait(tid, alive, A_WHILE_NS),
                }
            }
        }
    }

    /// Gives back what was mapped. The span stays reserved if it was lent.
    fn give_back_all(&self, is_lent: bool) {
        let base = self.base.swap(0, Ordering::AcqRel);
        let bytes = (self.pages.swap(0, Ordering::Relaxed) as usize + 1) * PAGE;
        if is_lent && base != 0 {
            // SAFETY: the pager's own, which nobody has seen.
            let _ = unsafe { map::close(base, bytes) };
        }
        for (start, len) in [(if is_lent { 0 } else { base }, bytes)]
            .into_iter()
            .chain(self.stacks.iter().map(|stack| (stack.swap(0, Ordering::Relaxed), thread::HELPER_BYTES)))
        {
            if start != 0 {
                // SAFETY: the pager's own, whose threads have ended or were never started.
                let _ = unsafe { map::release(start, len) };
            }
        }
        *self.inner.lock() = Inner::none();
    }

    /// Ends the pager. Its address range is gone afterwards.
    ///
    /// # Safety
    /// Nobody uses an object any more.
    pub unsafe fn stop(&'static self) {
        if self.phase.load(Ordering::Acquire) == phase::SERVING {
            let _ = self.call(Request::Stop);
            self.join();
            self.phase.store(phase::ENDED, Ordering::Release);
            self.give_back_all(false);
        }
    }
}
