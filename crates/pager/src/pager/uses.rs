//! What a program does with memory objects: making, resizing and ending them, and saying of their pages
//! whether they are needed.
//!
//! Objects are runs of pages of the span; which, `inner` knows. What needs the fault-handling thread is asked
//! of it by a touch ([`Pager::call`]).

use super::{A_WHILE_NS, Pager, Refused};
use crate::entry::Entered;
use crate::inner::{Inner, Request, SLACK, STEP};
use crate::objects::Kind;
use crate::policy::Policy;
use crate::record::State;
use crate::stats::Event;
use crate::store::Backing;
use crate::units::{PAGE, PageNo};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{map, thread};
use vellum_wire::Counter;

impl<B: Backing + Send> Pager<B> {
    /// Makes a memory object of at least `bytes` bytes, whole pages, that starts at a multiple of `align`, a
    /// power of two. Its contents are zero if `zero`, otherwise undefined.
    ///
    /// # Errors
    /// [`Refused`] if there is no address space, or no room in the store: every page is paid for before it is
    /// handed out.
    pub fn create(&'static self, bytes: usize, align: usize, zero: bool) -> Result<NonNull<u8>, Refused> {
        self.create_as(bytes, align, zero, |inner, pages, align, base| {
            inner.objects.create(Kind::Block, pages, align, base)
        })
    }

    /// A memory object among the first pages of the span, that the pager was started with
    /// ([`Config::near_pages`](super::Config)), of undefined contents and aligned as it is long.
    ///
    /// # Errors
    /// As [`Pager::create`].
    pub fn create_unit(&'static self, bytes: usize) -> Result<NonNull<u8>, Refused> {
        self.create_as(bytes, bytes, false, |inner, pages, align, base| {
            inner.units.create(Kind::Block, pages, align, base)
        })
    }

    pub(super) fn create_as(
        &'static self,
        bytes: usize,
        align: usize,
        zero: bool,
        place: impl Fn(&mut Inner, u32, u32, usize) -> Option<PageNo>,
    ) -> Result<NonNull<u8>, Refused> {
        let pages = pages_of(bytes)
            .filter(|&pages| pages <= self.pages.load(Ordering::Relaxed))
            .ok_or(Refused::Span)?;
        let align = u32::try_from(align / PAGE).map_err(|_| Refused::Span)?.max(1);
        let _undisturbed = Undisturbed::new();
        self.make_room_for(pages)?;
        let mut inner = self.enter();
        let base = inner.base;
        let Some(page) = place(&mut inner, pages, align, base / PAGE) else {
            inner.committed -= pages;
            return Err(Refused::Span);
        };
        self.begin(inner, page, pages, zero);
        NonNull::new((base + page.index() * PAGE) as *mut u8).ok_or(Refused::Span)
    }

    /// Books `pages` pages more, with room in the store for all.
    fn make_room_for(&self, pages: u32) -> Result<(), Refused> {
        loop {
            let mut inner = self.enter();
            if inner.committed.saturating_add(pages) > self.pages.load(Ordering::Relaxed) {
                return Err(Refused::Span);
            }
            let wanted = inner.committed.saturating_add(pages).saturating_add(SLACK);
            if wanted <= inner.reserved || self.is_child() {
                inner.committed += pages;
                inner.committed_max = inner.committed_max.max(inner.committed);
                self.show(Counter::PeakPagedPages, u64::from(inner.committed_max));
                return Ok(());
            }
            drop(inner);
            // As much as fits, if not a whole step does.
            if self.call(Request::Reserve(wanted.next_multiple_of(STEP))).is_err() {
                self.call(Request::Reserve(wanted)).map_err(Refused::Store)?;
            }
        }
    }

    /// Takes pages of an object into use.
    fn begin<'a>(&'a self, mut inner: Entered<'a>, page: PageNo, pages: u32, zero: bool) {
        self.marks().clear(page.0, page.0 + pages);
        inner.high = inner.high.max(page.0 + pages);
        // A child's memory is flushed when it is given back, so that it always reads as zero.
        if !zero || self.is_child() {
            return;
        }
        let base = inner.base;
        let mut at = page.0;
        // Mapped pages are cleared by hand, outside the lock: one that is taken away meanwhile comes back for
        // it.
        while at < page.0 + pages {
            if inner.renew(PageNo(at)) {
                at += 1;
                continue;
            }
            let start = at;
            while at < page.0 + pages
                && matches!(inner.record(PageNo(at)).state(), State::Mapped | State::Arriving)
            {
                at += 1;
            }
            drop(inner);
            // SAFETY: the pages are of an object that is not published yet.
            unsafe {
                ((base + start as usize * PAGE) as *mut u8).write_bytes(0, (at - start) as usize * PAGE);
            };
            inner = self.enter();
        }
    }

    /// Bytes of frames that are free, and bytes that are in the store and have no frame. `None` in a forked
    /// child, where nothing is paged.
    pub fn outlook(&self) -> Option<(u64, u64)> {
        if self.is_child() {
            return None;
        }
        let _undisturbed = Undisturbed::new();
        let inner = self.enter();
        Some((u64::from(inner.pool.free()) * PAGE as u64, u64::from(inner.stored) * PAGE as u64))
    }

    /// Frames whose memory compressed pages have now.
    pub fn compressed_frames(&self) -> u32 {
        let _undisturbed = Undisturbed::new();
        self.enter().tier.frames()
    }

    /// The length in bytes of the object that starts at `address`, if one does.
    pub fn len(&self, address: *const u8) -> Option<usize> {
        let page = self.page_at(address)?;
        let _undisturbed = Undisturbed::new();
        self.enter().objects_at(page).len(page).map(|pages| pages as usize * PAGE)
    }

    pub(super) fn page_at(&self, address: *const u8) -> Option<PageNo> {
        let offset = (address as usize).wrapping_sub(self.base.load(Ordering::Relaxed));
        (self.owns(address) && offset.is_multiple_of(PAGE)).then_some(PageNo((offset / PAGE) as u32))
    }

    /// Ends the object at `address`; returns its length in bytes.
    ///
    /// # Errors
    /// [`Refused::NoObject`] if none starts there.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn destroy(&self, address: NonNull<u8>) -> Result<usize, Refused> {
        let page = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let _undisturbed = Undisturbed::new();
        let mut inner = self.enter();
        let pages = inner.objects_at(page).len(page).ok_or(Refused::NoObject)?;
        self.end(&mut inner, page.0, page.0 + pages);
        inner.objects_at(page).destroy(page, pages);
        Ok(pages as usize * PAGE)
    }

    /// Pages `start..end` are no object's any more.
    pub(super) fn end(&self, inner: &mut Inner, start: u32, end: u32) {
        self.marks().set(start, end);
        if self.is_child() {
            let (address, bytes) = (inner.address(PageNo(start)), (end - start) as usize * PAGE);
            // SAFETY: nobody uses the pages any more.
            let _ = unsafe { map::flush(address, bytes) };
        } else {
            for page in (start..end).map(PageNo) {
                inner.forget(page);
                inner.keep_no_more(page);
            }
        }
        inner.committed -= end - start;
    }

    /// Makes the object at `address` `bytes` bytes long without moving it. Added pages have undefined
    /// contents.
    ///
    /// # Errors
    /// [`Refused`] if none starts there, or it cannot grow so far; it is as it was then.
    ///
    /// # Safety
    /// Nobody uses what is cut off.
    pub unsafe fn resize(&'static self, address: NonNull<u8>, bytes: usize) -> Result<(), Refused> {
        let page = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let new = pages_of(bytes).ok_or(Refused::Span)?;
        let _undisturbed = Undisturbed::new();
        let old = self.enter().objects_at(page).len(page).ok_or(Refused::NoObject)?;
        if new > old {
            self.make_room_for(new - old)?;
            let mut inner = self.enter();
            if !inner.objects_at(page).resize(page, old, new) {
                inner.committed -= new - old;
                return Err(Refused::Span);
            }
            self.begin(inner, page.plus(old), new - old, false);
        } else {
            let mut inner = self.enter();
            self.end(&mut inner, page.0 + new, page.0 + old);
            inner.objects_at(page).resize(page, old, new);
        }
        Ok(())
    }

    /// The whole pages within a range of the pager's.
    pub(super) fn pages_within(&self, start: *const u8, bytes: usize) -> Option<(u32, u32)> {
        let base = self.base.load(Ordering::Relaxed);
        let from = (start as usize).checked_sub(base)?.div_ceil(PAGE);
        let to = (start as usize).checked_add(bytes)?.checked_sub(base)? / PAGE;
        let to = to.min(self.pages.load(Ordering::Relaxed) as usize);
        (from < to).then_some((from as u32, to as u32))
    }

    /// Keeps the pages that a lock of the C library's lies on where they are, once they are there, until
    /// their object ends: its functions hand the kernel the lock's address, and end the program at `EFAULT`.
    /// Pages with locks may be a quarter of the frames; more are paged as any others.
    pub fn keep(&self, address: *const u8, bytes: usize) {
        let first = vellum_sys::round_down(address as usize, PAGE);
        let end = vellum_sys::round_up(address as usize + bytes, PAGE);
        let Some((from, to)) =
            self.pages_within(first as *const u8, end - first).filter(|_| !self.is_child())
        else {
            return;
        };
        let _undisturbed = Undisturbed::new();
        let mut inner = self.enter();
        (from..to).for_each(|page| inner.keep(PageNo(page)));
    }

    /// Marks the whole pages of a range as discardable, and nothing more: no lock, no system call. Their
    /// frames go when frames are needed and their turn comes (the source's "pager only").
    ///
    /// # Safety
    /// What they hold is not needed.
    pub unsafe fn mark(&self, start: *const u8, bytes: usize) {
        if let Some((from, to)) = self.pages_within(start, bytes) {
            self.marks().set(from, to);
        }
    }

    /// Whether the page at `address`, which is the pager's, is marked as discardable.
    pub fn is_marked(&self, address: *const u8) -> bool {
        let offset = (address as usize).wrapping_sub(self.base.load(Ordering::Relaxed));
        self.owns(address) && self.marks().has((offset / PAGE) as u32)
    }

    /// Says of every page that the range touches that its contents are needed again, before anything is
    /// written there. They are undefined.
    pub fn need(&self, start: *const u8, bytes: usize) {
        let first = vellum_sys::round_down(start as usize, PAGE);
        let end = vellum_sys::round_up(start as usize + bytes, PAGE);
        if let Some((from, to)) = self.pages_within(first as *const u8, end - first) {
            self.marks().clear(from, to);
        }
    }

    /// As [`Pager::mark`]; and their frames go before any others when frames are needed (the source's
    /// pager-initiated flushing).
    ///
    /// # Safety
    /// As for [`Pager::mark`].
    pub unsafe fn discard(&self, start: *const u8, bytes: usize) {
        let Some((from, to)) = self.pages_within(start, bytes).filter(|_| !self.is_child()) else { return };
        let _undisturbed = Undisturbed::new();
        let mut inner = self.enter();
        self.marks().set(from, to);
        (from..to).for_each(|page| inner.forget(PageNo(page)));
    }

    /// As [`Pager::mark`]; and their frames are free at once (the source's `FlushDiscardable`, user-initiated
    /// flushing).
    ///
    /// # Safety
    /// As for [`Pager::mark`]; nobody writes there meanwhile.
    pub unsafe fn flush(&self, start: *const u8, bytes: usize) {
        let Some((from, to)) = self.pages_within(start, bytes).filter(|_| !self.is_child()) else { return };
        let _undisturbed = Undisturbed::new();
        let mut inner = self.enter();
        self.marks().set(from, to);
        for page in (from..to).map(PageNo) {
            match inner.record(page).state() {
                State::Mapped => self.drop_mapped(&mut inner, page, State::Vague),
                State::Held => {
                    inner.policy_gone(page);
                    inner.release(page, State::Vague);
                    self.stats.count(Event::Flushed, 1);
                }
                _ => inner.forget(page),
            }
        }
    }

    /// Has the whole pages of a range read as zero, as `MADV_DONTNEED` has those of ordinary memory, and
    /// their frames free at once. A program's own call must come here instead of going to the kernel: that
    /// would find nothing to drop where pages are in the store, and leave a hole, which stops the program,
    /// where they are not.
    ///
    /// # Safety
    /// What they hold is not needed.
    pub unsafe fn zero(&self, start: *const u8, bytes: usize) {
        let Some((from, to)) = self.pages_within(start, bytes) else { return };
        let _undisturbed = Undisturbed::new();
        if self.is_child() {
            let base = self.base.load(Ordering::Relaxed);
            // SAFETY: by this function's condition.
            let _ = unsafe { map::flush(base + from as usize * PAGE, (to - from) as usize * PAGE) };
            return;
        }
        self.marks().clear(from, to);
        for page in (from..to).map(PageNo) {
            loop {
                let mut inner = self.enter();
                if inner.renew(page) {
                    break;
                }
                // What is on its way is waited for.
                if inner.record(page).state() == State::Mapped {
                    self.drop_mapped(&mut inner, page, State::Fresh);
                    break;
                }
                let seen = self.written.load(Ordering::Acquire);
                drop(inner);
                thread::wait(&self.written, seen, A_WHILE_NS);
            }
        }
    }

    /// Gives the frame of a mapped page, whose contents nobody needs, back to the kernel; the page's new
    /// state is `left`. Where the kernel will not, as the program has locked the page, it stays as it is.
    fn drop_mapped(&self, inner: &mut Inner, page: PageNo, left: State) {
        let address = inner.address(page);
        // SAFETY: by the condition of this function.
        if unsafe { map::flush(address, PAGE) }.is_err() {
            return;
        }
        inner.policy_gone(page);
        inner.drop_copies(page);
        inner.record(page).set(left);
        // The frame has gone to the kernel; the pool may have one of it for any place that is empty.
        inner.pool.return_frame();
        self.stats.count(Event::Flushed, 1);
    }

    /// Calls `each` with every page that has a frame and the CPU time, in nanoseconds of the process, up to
    /// which it was referenced as far as is known: the reference bits, finer than bits, that a working-set
    /// estimator asks for. Mapped pages may have been referenced until now and are reported as if they had.
    /// `None` under a policy that keeps no times. Slow: looks at all pages of all objects, with the lock
    /// held.
    pub fn references(&self, mut each: impl FnMut(PageNo, u64)) -> Option<()> {
        let _undisturbed = Undisturbed::new();
        let mut inner = self.enter();
        if !inner.policy.goes_by_time() {
            return None;
        }
        let now = self.now(&inner.policy);
        for page in (0..inner.high).map(PageNo) {
            match inner.record(page).state() {
                State::Mapped => each(page, now),
                State::Held => each(page, inner.links[page.index()].stamp()),
                _ => {}
            }
        }
        Some(())
    }
}

fn pages_of(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.max(1).div_ceil(PAGE)).ok()
}
