//! The program's mappings as memory objects, for `mmap` and `munmap`.
//!
//! A program may unmap any part of a mapping at any time, so such an object ends piece by piece. The program
//! may also change attributes of its pages (`mprotect`, `mlock`), which the next object there must not
//! inherit. From the first such change on, pages of an ended mapping get their usual attributes back.

use super::{Pager, Refused};
use crate::objects::{Kind, MAPPING_PAGES_MAX};
use crate::units::{PAGE, PageNo};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use vellum_sys::Span;
use vellum_sys::thread::Undisturbed;

/// The longest mapping that is a memory object.
pub const MAPPING_MAX: usize = MAPPING_PAGES_MAX as usize * PAGE;

impl Pager {
    /// Makes a mapping of `bytes` bytes, at most [`MAPPING_MAX`], of zeros.
    ///
    /// # Errors
    /// As [`Pager::create`].
    pub fn map(&self, bytes: usize) -> Result<NonNull<u8>, Refused> {
        if bytes > MAPPING_MAX {
            return Err(Refused::Span);
        }
        self.create_as(bytes, PAGE, true, &|inner, pages, align, span_page| {
            inner.objects.create(Kind::Mapping, pages, align, span_page)
        })
    }

    /// Ends the part of each mapping that lies in `range`; other pages of the pager's there read as zero.
    ///
    /// # Safety
    /// That memory is not used any more.
    pub unsafe fn unmap(&self, range: Span) {
        let Some((from, to)) = self.pages_within(range) else { return };
        let mut at = from;
        while at < to {
            let undisturbed = Undisturbed::new();
            let mut inner = self.inner.lock();
            let Some((first, pages)) = inner.objects.mapping(PageNo(at)) else {
                drop(inner);
                drop(undisturbed);
                // SAFETY: nobody uses the page any more (`# Safety`).
                unsafe { self.zero(self.range(at, at + 1)) };
                at += 1;
                continue;
            };
            let end = to.min(first.0 + pages);
            if self.are_changed.load(Ordering::Relaxed) {
                // SAFETY: these are a mapping's pages, and nobody uses them (`# Safety`).
                unsafe { self.make_usual(at, end) };
            }
            self.end(&mut inner, at, end);
            inner.objects.cut(at, end);
            at = end;
        }
    }

    /// The bytes from `address` to the end of its mapping, if it lies in one.
    pub fn mapped_from(&self, address: *const u8) -> Option<usize> {
        let page = self.page_around(address)?;
        let _undisturbed = Undisturbed::new();
        let (first, pages) = self.inner.lock().objects.mapping(page)?;
        Some((first.0 + pages - page.0) as usize * PAGE)
    }

    /// The program changes attributes of pages that may be the pager's.
    pub fn note_changes(&self) {
        self.are_changed.store(true, Ordering::Relaxed);
    }
}
