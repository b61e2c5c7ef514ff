//! A program's operations on memory objects: making, resizing, ending and marking them.
//!
//! Objects are runs of pages of the span, recorded in `inner`. If the store is not yet mapped at an object's
//! pages, the evicting thread maps it there before the object is handed out.

use super::request::Request;
use super::{Inner, Pager, Refused};
use crate::objects::Kind;
use crate::units::{PAGE, PageNo, STEP};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use rustix::io::Errno;
use vellum_sys::thread::{self, Undisturbed};
use vellum_sys::{Span, map, raw};
use vellum_wire::Counter;

/// Longest run of pages that is cleared by writing: requesting zeros costs less for a longer one.
const CLEARED_BY_HAND: u32 = 64;
/// The sleep of a thread that waits for pages to be dropped.
const DROP_NS: u64 = 50_000;

/// Chooses the first page of an object, by its length in pages, its alignment in pages, and the page of the
/// address space at which the span begins.
type Chooser<'c> = &'c dyn Fn(&mut Inner, u32, u32, usize) -> Option<PageNo>;

impl Pager {
    /// Makes a memory object of at least `bytes` bytes, whole pages, that starts at a multiple of `align`, a
    /// power of two. Its contents are zero if `zero`, otherwise undefined.
    ///
    /// # Errors
    /// [`Refused`] if there is no address space, or no room in the store, for any of its pages.
    pub fn create(&self, bytes: usize, align: usize, zero: bool) -> Result<NonNull<u8>, Refused> {
        self.create_as(bytes, align, zero, &|inner, pages, align, span_page| {
            inner.objects.create(Kind::Block, pages, align, span_page)
        })
    }

    /// Makes a memory object among the span's first pages ([`Config::near_pages`](super::Config)), of
    /// undefined contents and aligned to its length.
    ///
    /// # Errors
    /// As [`Pager::create`].
    pub fn create_unit(&self, bytes: usize) -> Result<NonNull<u8>, Refused> {
        self.create_as(bytes, bytes, false, &|inner, pages, align, span_page| {
            inner.units.create(Kind::Block, pages, align, span_page)
        })
    }

    pub(super) fn create_as(
        &self,
        bytes: usize,
        align: usize,
        zero: bool,
        choose: Chooser<'_>,
    ) -> Result<NonNull<u8>, Refused> {
        let span = self.pages.load(Ordering::Relaxed);
        let pages = pages_of(bytes).filter(|&pages| pages <= span).ok_or(Refused::Span)?;
        let align = u32::try_from(align / PAGE).map_err(|_| Refused::Span)?.max(1);
        let _undisturbed = Undisturbed::new();
        let page = {
            let mut inner = self.inner.lock();
            let span_page = self.address(0).get() / PAGE;
            let page = choose(&mut inner, pages, align, span_page).ok_or(Refused::Span)?;
            self.commit(&mut inner, pages);
            page
        };
        if let Err(errno) = self.open(page.0, page.0 + pages) {
            let mut inner = self.inner.lock();
            inner.committed -= pages;
            inner.objects_at(page).destroy(page, pages);
            return Err(Refused::Store(errno));
        }
        self.begin(page.0, page.0 + pages, zero);
        NonNull::new(self.address(page.0).ptr()).ok_or(Refused::Span)
    }

    fn commit(&self, inner: &mut Inner, pages: u32) {
        inner.committed += pages;
        inner.committed_max = inner.committed_max.max(inner.committed);
        self.show(Counter::PeakPagedPages, u64::from(inner.committed_max));
    }

    /// Has the store mapped where pages `from..to` lie.
    fn open(&self, from: u32, to: u32) -> Result<(), Errno> {
        let steps = from / STEP..to.div_ceil(STEP);
        let is_open = |step: u32| self.tables().steps[step as usize].load(Ordering::Acquire) != 0;
        if steps.clone().all(is_open) {
            return Ok(());
        }
        if !self.is_child() {
            return self.ask(Request::Open(from, to));
        }
        for step in steps.filter(|&step| !is_open(step)) {
            // SAFETY: a step of the span in which no object was.
            unsafe { map::renew(self.range(step * STEP, (step + 1) * STEP))? };
            self.tables().steps[step as usize].store(1, Ordering::Release);
        }
        Ok(())
    }

    /// Takes pages of an object into use.
    fn begin(&self, from: u32, to: u32, zero: bool) {
        let used = self.tables().used();
        self.high.fetch_max(to, Ordering::AcqRel);
        self.need_pages(from, to);
        if zero {
            used.runs(from, to, true).for_each(|(first, end)| self.clear(first, end));
        }
        used.set(from, to);
        if self.is_idle.swap(false, Ordering::Relaxed) {
            // Who makes an object is about to touch it.
            thread::wake_all(&self.post.bell);
        }
    }

    /// Has pages read as zero that only the caller uses.
    fn clear(&self, from: u32, to: u32) {
        if to - from <= CLEARED_BY_HAND {
            let Span { start, bytes } = self.range(from, to);
            // SAFETY: the pages are mapped, and nobody else uses them.
            unsafe { start.ptr::<u8>().write_bytes(0, bytes) };
        } else {
            self.give_zeros(from, to);
        }
    }

    /// Has pages read as zero and their frames free. In a child they are ordinary memory.
    fn give_zeros(&self, from: u32, to: u32) {
        if !self.is_child() {
            // The thread stops the program if it cannot.
            let _ = self.ask(Request::Zero(from, to));
            return;
        }
        // SAFETY: what the pages hold is not needed.
        let _ = unsafe { map::flush(self.range(from, to)) };
    }

    fn need_pages(&self, from: u32, to: u32) {
        self.tables().needed().set(from, to);
        if !self.is_child() {
            let never = core::sync::atomic::AtomicU32::new(0);
            self.announced.wait_past(from, to, || thread::wait(&never, 0, DROP_NS));
        }
    }

    /// The length in bytes of the object that starts at `address`, if one does.
    pub fn len(&self, address: *const u8) -> Option<usize> {
        let page = self.page_at(address)?;
        let _undisturbed = Undisturbed::new();
        self.inner.lock().objects_at(page).len(page).map(|pages| pages as usize * PAGE)
    }

    pub(super) fn page_at(&self, address: *const u8) -> Option<PageNo> {
        self.page_around(address).filter(|page| self.address(page.0).get() == address.addr())
    }

    /// Ends the object at `address`; returns its length in bytes.
    ///
    /// # Errors
    /// [`Refused::NoObject`] if none starts there.
    ///
    /// # Safety
    /// The object is not used any more.
    pub unsafe fn destroy(&self, address: NonNull<u8>) -> Result<usize, Refused> {
        let page = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let _undisturbed = Undisturbed::new();
        let mut inner = self.inner.lock();
        let pages = inner.objects_at(page).len(page).ok_or(Refused::NoObject)?;
        self.end(&mut inner, page.0, page.0 + pages);
        inner.objects_at(page).destroy(page, pages);
        Ok(pages as usize * PAGE)
    }

    /// Pages `from..to` are no object's any more.
    pub(super) fn end(&self, inner: &mut Inner, from: u32, to: u32) {
        self.tables().needed().clear(from, to);
        if self.is_child() {
            self.give_zeros(from, to);
            self.tables().used().clear(from, to);
        }
        inner.committed -= to - from;
    }

    /// Makes the object at `address` `bytes` bytes long in place. Added pages have undefined contents.
    ///
    /// # Errors
    /// [`Refused`] if none starts there, or it cannot grow so far; it is as it was then.
    ///
    /// # Safety
    /// The part cut off is not used any more.
    pub unsafe fn resize(&self, address: NonNull<u8>, bytes: usize) -> Result<(), Refused> {
        let page = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let new = pages_of(bytes).ok_or(Refused::Span)?;
        let _undisturbed = Undisturbed::new();
        let mut inner = self.inner.lock();
        let old = inner.objects_at(page).len(page).ok_or(Refused::NoObject)?;
        if new <= old {
            self.end(&mut inner, page.0 + new, page.0 + old);
            inner.objects_at(page).resize(page, old, new);
            return Ok(());
        }
        if !inner.objects_at(page).resize(page, old, new) {
            return Err(Refused::Span);
        }
        self.commit(&mut inner, new - old);
        drop(inner);
        if let Err(errno) = self.open(page.0 + old, page.0 + new) {
            let mut inner = self.inner.lock();
            inner.committed -= new - old;
            inner.objects_at(page).resize(page, new, old);
            return Err(Refused::Store(errno));
        }
        self.begin(page.0 + old, page.0 + new, false);
        Ok(())
    }

    /// The whole pages of the pager's in `range`, which begins in the span.
    pub(super) fn pages_within(&self, range: Span) -> Option<(u32, u32)> {
        let span = self.span();
        range.start.checked_add(range.bytes).filter(|_| range.start >= span.start)?;
        let pages = range.whole(PAGE).intersect(span).non_empty()?;
        let [from, to] = [pages.start, pages.end()].map(|at| ((at - span.start) / PAGE) as u32);
        Some((from, to))
    }

    /// Marks the whole pages of a range as discardable, and nothing more: no lock, no system call. Their
    /// frames go before others when frames are needed.
    ///
    /// # Safety
    /// Their contents are not needed.
    pub unsafe fn mark(&self, range: Span) {
        if let Some((from, to)) = self.pages_within(range) {
            self.tables().needed().clear(from, to);
        }
    }

    /// True if the page at `address`, which is the pager's, is marked as discardable.
    pub fn is_marked(&self, address: *const u8) -> bool {
        self.page_around(address).is_some_and(|page| !self.tables().needed().has(page.0))
    }

    /// Marks every page that the range touches as needed again, before a write. The contents are undefined.
    pub fn need(&self, range: Span) {
        if let Some((from, to)) = self.pages_within(range.touched(PAGE)) {
            self.need_pages(from, to);
            // The evicting thread may have dropped them, and so taken them for zero; no longer.
            self.tables().used().set(from, to);
        }
    }

    /// Does as [`Pager::mark`], and frees the frames at once (the source's `FlushDiscardable`).
    ///
    /// # Safety
    /// The condition of [`Pager::mark`], and no thread writes there meanwhile.
    pub unsafe fn flush(&self, range: Span) {
        let Some((from, to)) = self.pages_within(range).filter(|_| !self.is_child()) else { return };
        let _undisturbed = Undisturbed::new();
        self.tables().needed().clear(from, to);
        self.give_zeros(from, to);
    }

    /// Has the whole pages of a range read as zero, as `MADV_DONTNEED` does, and frees their frames. A
    /// program's own call must come here instead of going to the kernel, which would only unmap them.
    ///
    /// # Safety
    /// Their contents are not needed.
    pub unsafe fn zero(&self, range: Span) {
        let Some((from, to)) = self.pages_within(range) else { return };
        let _undisturbed = Undisturbed::new();
        // What lies in no step reads as nothing: it is no object's.
        let mut at = from;
        while at < to {
            let end = to.min((at / STEP + 1) * STEP);
            if self.tables().steps[(at / STEP) as usize].load(Ordering::Acquire) != 0 {
                self.give_zeros(at, end);
            }
            at = end;
        }
    }

    /// Gives pages the attributes that all of the span have.
    ///
    /// # Safety
    /// The range is an object's that has ended, and nobody uses it.
    pub(super) unsafe fn make_usual(&self, from: u32, to: u32) {
        let pages = self.range(from, to);
        // SAFETY: pages of an object that has ended, which nobody uses (`# Safety`); contents stay.
        unsafe {
            let _ = map::make_writable(pages);
            let _ = raw::syscall(libc::SYS_munlock, [pages.start.get(), pages.bytes, 0, 0, 0, 0]);
        }
    }
}

fn pages_of(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.max(1).div_ceil(PAGE)).ok()
}
