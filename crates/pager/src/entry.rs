//! How a thread of the program takes the pager's lock.
//!
//! Its stack may lie in a memory object: programs make the stacks of their coroutines out of big blocks. A
//! thread that met a missing page of its own stack with the lock held would wait for a thread that waits for
//! the lock. So such a thread has the pages near its stack pointer *kept* where they are while it is in here:
//!
//! | the thread | who takes pages away, with the lock held |
//! | --- | --- |
//! | 1. says which pages it wants kept | 1. looks which pages are kept |
//! | 2. waits until it sees the lock free, once | 2. takes others |
//! | 3. touches the pages, which brings them | |
//! | 4. takes the lock, without ever sleeping for it | |
//!
//! Who looked before the thread said so is done when the lock is seen free, and a later look leaves the pages
//! alone: those that are there after the touch are there while the lock is held. It must not sleep for the
//! lock, or it could be the one that is woken when the lock is free, and could not go on before somebody else
//! has had it. A thread on a stack of another kind pays for a comparison of addresses.

use crate::inner::Inner;
use crate::pager::Pager;
use crate::store::Backing;
use crate::units::{PAGE, PageNo};
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use vellum_sys::lock::Held;
use vellum_sys::thread;

/// Bytes of stack, below and above, that the pager's own functions use under the lock. More would be safer
/// but for the guard page that a thread may have below its stack, which nobody may touch.
const OWN: usize = PAGE;
/// Bytes, below and above, that a fork needs, with whatever the C library does around it.
const FORK: usize = 4 * PAGE;
/// Bytes on both sides of the thread pointer in which the C library keeps what the kernel writes to.
const THREAD: usize = PAGE;
/// Threads on paged stacks that can be in here at a time; others wait.
const THREADS: u32 = 16;
/// Ranges that they keep.
const RANGES: usize = 2 * THREADS as usize;
/// Ranges that a thread has kept.
type Few = [Option<usize>; 2];

/// The pages that are kept: of each range the first, plus one, in the upper half, and how many in the lower;
/// 0 is none.
#[derive(Debug)]
pub(crate) struct Kept {
    ranges: [AtomicU64; RANGES],
    count: AtomicU32,
}

impl Kept {
    pub(crate) const fn new() -> Kept {
        Kept { ranges: [const { AtomicU64::new(0) }; RANGES], count: AtomicU32::new(0) }
    }

    /// Keeps two ranges of pages; by which numbers to end that.
    fn keep(&self, wanted: [Option<Range<u32>>; 2]) -> Few {
        while self.count.fetch_add(1, Ordering::SeqCst) >= THREADS {
            self.count.fetch_sub(1, Ordering::SeqCst);
            thread::give_way();
        }
        wanted.map(|pages| {
            let pages = pages?;
            let word = u64::from(pages.start + 1) << 32 | u64::from(pages.end - pages.start);
            let taken = |range: &AtomicU64| {
                range.compare_exchange(0, word, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            };
            // There is room for this many threads; one that leaves may have its count gone a moment before.
            loop {
                if let Some(which) = self.ranges.iter().position(taken) {
                    return Some(which);
                }
                thread::give_way();
            }
        })
    }

    fn end(&self, few: Few) {
        if few != [None; 2] {
            few.into_iter().flatten().for_each(|which| self.ranges[which].store(0, Ordering::Release));
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    /// In a child, where nothing is taken away.
    fn forget(&self) {
        self.ranges.iter().for_each(|range| range.store(0, Ordering::Relaxed));
        self.count.store(0, Ordering::Relaxed);
    }

    /// Whether `page` is to stay where it is. With the pager's lock held.
    pub(crate) fn has(&self, page: PageNo) -> bool {
        self.count.load(Ordering::SeqCst) != 0
            && self.ranges.iter().any(|range| {
                let word = range.load(Ordering::SeqCst);
                let (first, count) = ((word >> 32) as u32, word as u32);
                word != 0 && (first - 1..first - 1 + count).contains(&page.0)
            })
    }
}

/// Possession of the lock by a thread of the program; dropping it gives the lock back.
pub(crate) struct Entered<'a> {
    // Dropped by hand, before the pages are kept no more.
    inner: ManuallyDrop<Held<'a, Inner>>,
    kept: &'a Kept,
    few: Few,
}

impl<'a> Entered<'a> {
    fn new(inner: Held<'a, Inner>, kept: &'a Kept, few: Few) -> Entered<'a> {
        Entered { inner: ManuallyDrop::new(inner), kept, few }
    }

    /// Goes on holding the lock, and keeping pages, without the value. Which of the pages are kept.
    pub(crate) fn persist(self) -> Few {
        let few = self.few;
        core::mem::forget(self);
        few
    }
}

impl Deref for Entered<'_> {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // SAFETY: never used again.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
        self.kept.end(self.few);
    }
}

impl<B: Backing + Send> Pager<B> {
    /// Takes the lock for a thread of the program.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        self.enter_with(OWN)
    }

    /// Takes the lock for a thread that forks, and goes back to its callers with the lock held.
    pub(crate) fn enter_for_fork(&self) -> Entered<'_> {
        self.enter_with(FORK)
    }

    /// Ends what [`Entered::persist`] has gone on with, after a fork.
    pub(crate) fn leave_after_fork(&self, few: Few) {
        if self.is_child() {
            self.kept.forget();
            self.inner.raw().reset_after_fork();
        } else {
            self.inner.raw().unlock();
            self.kept.end(few);
        }
    }

    #[inline]
    fn enter_with(&self, around: usize) -> Entered<'_> {
        let here = core::hint::black_box(0u8);
        let here = &raw const here;
        if self.owns(here) && !self.is_child() {
            return self.enter_from_paged_stack(here.addr(), around);
        }
        Entered::new(self.inner.lock(), &self.kept, [None; 2])
    }

    #[cold]
    #[inline(never)]
    fn enter_from_paged_stack(&self, here: usize, around: usize) -> Entered<'_> {
        let pointer = thread::pointer();
        let wanted = [self.numbers(here, around), self.numbers(pointer, THREAD)];
        let few = self.kept.keep(wanted.clone());
        fence(Ordering::SeqCst);
        self.inner.raw().wait_until_seen_free();
        // From here downwards and upwards. Memory that nobody owns, or nobody needs, is no stack: what lies
        // beyond it may be somebody else's.
        let is_needed = |page: &u32| !self.marks().has(*page);
        for (pages, at) in wanted.into_iter().zip([here, pointer]) {
            let Some(pages) = pages else { continue };
            let here = ((at - self.span().0) / PAGE) as u32;
            let down = (pages.start..=here).rev().take_while(is_needed);
            for page in down.chain((here..pages.end).take_while(is_needed)) {
                let address = self.span().0 + page as usize * PAGE;
                // SAFETY: a page of this thread's stack, or of the object around it; the read returns when it
                // is there.
                unsafe { (address as *const u8).read_volatile() };
            }
        }
        loop {
            if let Some(inner) = self.inner.try_lock() {
                return Entered::new(inner, &self.kept, few);
            }
            thread::give_way();
        }
    }

    /// The pages of the span near `address`, if it lies there.
    fn numbers(&self, address: usize, around: usize) -> Option<Range<u32>> {
        let (base, bytes) = self.span();
        let number = |address: usize| ((address - base) / PAGE) as u32;
        self.owns(address as *const u8).then(|| {
            number(address.saturating_sub(around).max(base))
                ..number((address + around).min(base + bytes - 1)) + 1
        })
    }
}
