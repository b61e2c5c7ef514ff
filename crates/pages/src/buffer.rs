//! [`Buffer`]: a vector of plain data that grows in place and moves without copying.
//!
//! A buffer keeps address space behind itself and maps pages as it grows, instead of over-allocating and
//! copying (Douglas 2011, section 4.2).

use crate::error::OutOfMemory;
use crate::pages::{Pages, Request};
use crate::units::{BLOCK_MAX, PAGE};
use core::marker::PhantomData;
use core::ptr::NonNull;
use vellum_sys::{Addr, Span};

/// Values that may be moved by moving their pages and that need no drop: plain data.
///
/// # Safety
/// Any bit pattern copied from one value is that value, wherever it lies.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    // SAFETY: primitive numbers, and records of them, are their bits.
    ($($kind:ty),*) => { $(unsafe impl Plain for $kind {})* };
}
plain!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, Addr, Span);
// SAFETY: an array of plain values is plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// A vector of plain values in its own pages.
///
/// Grows to exactly the pages needed: its capacity is never more than a page above its length's need, as
/// growing costs no copy. Capacity stays when it is cleared.
///
/// ```
/// let mut squares = vellum_pages::Buffer::<u64>::new();
/// for i in 0..100_000 {
///     squares.push(i * i)?;
/// }
/// assert_eq!(squares[300], 90_000);
/// # Ok::<(), vellum_pages::OutOfMemory>(())
/// ```
pub struct Buffer<T: Plain> {
    start: NonNull<T>,
    len: usize,
    /// Bytes of the extent behind `start`; 0 before the first growth.
    bytes: usize,
    owns: PhantomData<T>,
}

// SAFETY: a buffer owns its memory like a Vec does.
unsafe impl<T: Plain + Send> Send for Buffer<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Plain + Sync> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    const FITS: () =
        assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE, "a value of no size or huge alignment");

    /// An empty buffer. Takes no memory.
    pub const fn new() -> Buffer<T> {
        let () = Self::FITS;
        Buffer { start: NonNull::dangling(), len: 0, bytes: 0, owns: PhantomData }
    }

    /// Values that fit without growing.
    pub fn capacity(&self) -> usize {
        self.bytes / size_of::<T>()
    }

    /// Makes room for `more` further values.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the buffer is unchanged then.
    pub fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let wanted = self.len.checked_add(more).and_then(|count| count.checked_mul(size_of::<T>()));
        let wanted = wanted.filter(|&bytes| bytes <= BLOCK_MAX).ok_or(OutOfMemory { bytes: usize::MAX })?;
        if wanted <= self.bytes {
            return Ok(());
        }
        let pages = Pages::global();
        let extent = if self.bytes == 0 {
            pages.alloc(Request { bytes: wanted, align: PAGE, zero: false })?
        } else {
            // SAFETY: `start` is this buffer's own block, borrowed mutably.
            unsafe { pages.resize(self.start.cast(), wanted)? }
        };
        self.start = extent.addr.cast();
        self.bytes = extent.bytes;
        Ok(())
    }

    /// Appends `value`.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the buffer is unchanged then.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), OutOfMemory> {
        if (self.len + 1) * size_of::<T>() > self.bytes {
            self.reserve(1)?;
        }
        // SAFETY: the value's place is within the block.
        unsafe { self.start.add(self.len).write(value) };
        self.len += 1;
        Ok(())
    }

    /// Appends all of `values`.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the buffer is unchanged then.
    pub fn extend_from_slice(&mut self, values: &[T]) -> Result<(), OutOfMemory> {
        self.reserve(values.len())?;
        // SAFETY: the room was made, and no slice overlaps a buffer borrowed mutably.
        unsafe { self.start.add(self.len).as_ptr().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        self.len += values.len();
        Ok(())
    }

    /// Shortens the buffer to `len` values; keeps the memory.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Exchanges the contents with `other`: for whole buffers that is exchanging their names, at no cost.
    pub fn swap(&mut self, other: &mut Buffer<T>) {
        core::mem::swap(self, other);
    }

    /// Moves the values to another place by moving pages.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the buffer is unchanged then.
    pub fn relocate(&mut self) -> Result<(), OutOfMemory> {
        if self.bytes > 0 {
            // SAFETY: this buffer's own block, borrowed mutably.
            let extent = unsafe { Pages::global().relocate(self.start.cast(), PAGE)? };
            self.start = extent.addr.cast();
            self.bytes = extent.bytes;
        }
        Ok(())
    }
}

impl<T: Plain> Default for Buffer<T> {
    fn default() -> Self {
        Buffer::new()
    }
}

impl<T: Plain> core::ops::Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values were written; a dangling start is fine for none.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> core::ops::DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` values were written, and the buffer is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: this buffer's own block. A Misuse would be a broken invariant of ours.
            let freed = unsafe { Pages::global().free(self.start.cast()) };
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
    }
}
