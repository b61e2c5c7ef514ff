//! Mappings of the program's, as memory objects: what `mmap` and `munmap` ask for.
//!
//! A program gives back any part of a mapping at any time, so that such an object ends piece by piece.
//! What it has changed of the pages' attributes (`mprotect`, `mlock`) must not be met by who gets them
//! next: from the first change on, what ends is given its usual attributes back.

use super::{Pager, Refused};
use crate::objects::{Kind, MAPPING_PAGES_MAX};
use crate::units::{PAGE, PageNo};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
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
        self.create_as(bytes, PAGE, true, &|inner, pages, align, base| {
            inner.objects.create(Kind::Mapping, pages, align, base)
        })
    }

    /// Ends what of `start..start + bytes` is part of mappings; the rest reads as zero, if it is the pager's.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn unmap(&self, start: *const u8, bytes: usize) {
        let Some((from, to)) = self.pages_within(start, bytes) else { return };
        let mut at = from;
        while at < to {
            let undisturbed = Undisturbed::new();
            let mut inner = self.inner.lock();
            let Some((first, pages)) = inner.objects.mapping(PageNo(at)) else {
                let address = self.address(at);
                drop(inner);
                drop(undisturbed);
                // SAFETY: by this function's condition.
                unsafe { self.zero(address as *const u8, PAGE) };
                at += 1;
                continue;
            };
            let end = to.min(first.0 + pages);
            if self.are_changed.load(Ordering::Relaxed) {
                // SAFETY: the range is a mapping's, and by this function's condition nobody uses it.
                unsafe { self.make_usual(at, end) };
            }
            self.end(&mut inner, at, end);
            inner.objects.cut(at, end);
            at = end;
        }
    }

    /// Whether `address` lies in a mapping: how many bytes there are from there to its end.
    pub fn mapped_from(&self, address: *const u8) -> Option<usize> {
        if !self.owns(address) {
            return None;
        }
        let page = ((address as usize - self.span().0) / PAGE) as u32;
        let _undisturbed = Undisturbed::new();
        let (first, pages) = self.inner.lock().objects.mapping(PageNo(page))?;
        Some((first.0 + pages - page) as usize * PAGE)
    }

    /// The program changes attributes of pages that may be the pager's.
    pub fn note_changes(&self) {
        self.are_changed.store(true, Ordering::Relaxed);
    }
}
