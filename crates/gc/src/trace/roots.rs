//! Static data, in which the collector finds roots: the writable segments of the program and its libraries.
//!
//! The loader's list of libraries names these segments. The list is read before the world is stopped, as
//! reading takes the loader's lock, and only if the loader's counters show a change. The list does not change
//! until the collection is over (`loader`). When the list is read, the ranges that the program excludes are
//! cut out of the segments. Examples are tables of numbers that look like pointers, and caches that should
//! not keep objects alive.

use crate::process::hooks::{IMAGE, ImageFn, ROOTS};
use crate::process::loader;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use crate::trace::root_statistics::Looks;
use core::ffi::c_void;
use vellum_pages::{Buffer, OutOfMemory, Plain};
use vellum_sys::{Addr, Span};

/// A range, and the thread with whose end it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owned {
    range: Span,
    thread: usize,
}

// SAFETY: addresses: any bits are a valid value, and it owns nothing.
unsafe impl Plain for Owned {}

/// The ranges that are scanned besides stacks.
pub(crate) struct Roots {
    images: Buffer<Span>,
    added: Buffer<Span>,
    precise: Buffer<Span>,
    /// Ranges that are removed when their thread ends.
    owned: Buffer<Owned>,
    /// Whole words of static data that are not scanned.
    excluded: Buffer<Span>,
    /// The loader's counts of objects loaded and unloaded, when `images` was read. musl's begin with 0.
    read_at: Option<(u64, u64)>,
    /// The scans of the roots so far.
    pub looks: Looks,
}

impl Roots {
    pub(crate) const fn new() -> Roots {
        Roots {
            images: Buffer::new(),
            added: Buffer::new(),
            precise: Buffer::new(),
            owned: Buffer::new(),
            excluded: Buffer::new(),
            read_at: None,
            looks: Looks::new(),
        }
    }

    /// Reads the loader's list if it has changed.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the list is not complete, so nothing may be collected.
    pub(crate) fn refresh(&mut self) -> Result<(), OutOfMemory> {
        if loader::is_stuck() {
            return Ok(());
        }
        let mut reading = Reading {
            images: &mut self.images,
            excluded: &self.excluded,
            known: self.read_at,
            now: None,
            result: Ok(()),
        };
        // SAFETY: the callback gets the pointer to `reading`, which lives across the call.
        unsafe { libc::dl_iterate_phdr(Some(image), (&raw mut reading).cast()) };
        let (now, result) = (reading.now, reading.result);
        match result {
            Ok(()) => self.read_at = now.or(self.read_at),
            Err(_) => self.read_at = None,
        }
        result
    }

    /// Keeps only readable ranges, if the list cannot be read again: a library may have gone.
    pub(crate) fn keep_readable(&mut self) {
        remove(&mut self.images, |range: Span| vellum_sys::stack::readable_from(range) != range.start);
    }

    pub(crate) fn add(&mut self, range: Span, precise: bool) -> Result<(), OutOfMemory> {
        if precise { self.precise.push(range) } else { self.added.push(range) }
    }

    /// Removes the added ranges that lie in `range`; returns how many.
    pub(crate) fn remove(&mut self, range: Span) -> usize {
        let is_within = |this: Span| this.start >= range.start && this.end() <= range.end();
        remove(&mut self.added, is_within)
            + remove(&mut self.precise, is_within)
            + remove(&mut self.owned, |owned| is_within(owned.range))
    }

    /// Excludes a range of static data.
    pub(crate) fn exclude(&mut self, range: Span) -> Result<(), OutOfMemory> {
        self.excluded.push(range)?;
        self.read_at = None;
        Ok(())
    }

    /// Undoes [`Roots::exclude`] of the ranges that lie in `range`; returns how many.
    pub(crate) fn include(&mut self, range: Span) -> usize {
        self.read_at = None;
        remove(&mut self.excluded, |this: Span| this.start >= range.start && this.end() <= range.end())
    }

    /// Sets the function that decides about libraries' segments, and has the list read again; returns the
    /// previous one.
    pub(crate) fn on_image(&mut self, hook: Option<ImageFn>) -> Option<ImageFn> {
        self.read_at = None;
        IMAGE.set(hook)
    }

    /// Adds a range that goes when [`Roots::thread_ends`].
    pub(crate) fn add_of_thread(&mut self, range: Span, thread: usize) -> Result<(), OutOfMemory> {
        self.owned.push(Owned { range, thread })
    }

    /// Removes the ranges of the thread.
    pub(crate) fn thread_ends(&mut self, thread: usize) {
        remove(&mut self.owned, |owned| owned.thread == thread);
    }

    /// Removes the ranges of all threads but this one.
    pub(crate) fn other_threads_end(&mut self, thread: usize) {
        remove(&mut self.owned, |owned| owned.thread != thread);
    }

    /// Bytes the lists take.
    pub(crate) fn bytes(&self) -> usize {
        let ranges = self.images.capacity() + self.added.capacity() + self.precise.capacity();
        (ranges + self.excluded.capacity()) * size_of::<Span>() + self.owned.capacity() * size_of::<Owned>()
    }

    /// Every range of pointers that may be changed.
    pub(crate) fn precise(&self) -> impl Iterator<Item = Span> {
        self.precise.iter().copied()
    }

    /// Every range whose aligned words may be pointers.
    pub(crate) fn each(&self) -> impl Iterator<Item = Span> {
        let owned = self.owned.iter().map(|owned| owned.range);
        self.images.iter().chain(self.added.iter()).copied().chain(owned)
    }
}

/// Marks what the roots callback names.
pub(crate) fn mark_named<M: Movement>(marker: &mut Marker<'_, M>) {
    if let Some(hook) = ROOTS.get() {
        let visitor = marker.visitor();
        // SAFETY: the program vouched when it set the hook that it may be called with the world stopped; the
        // visitor lives.
        unsafe { hook(&raw const visitor) };
    }
}

/// Removes those for which `goes` returns true; returns how many.
fn remove<T: Plain>(ranges: &mut Buffer<T>, goes: impl Fn(T) -> bool) -> usize {
    let mut kept = 0;
    for index in 0..ranges.len() {
        let this = ranges[index];
        if !goes(this) {
            ranges[kept] = this;
            kept += 1;
        }
    }
    let removed = ranges.len() - kept;
    ranges.truncate(kept);
    removed
}

/// Calls `keep` with the parts of `range` outside the excluded ones, until it fails.
fn cut<E>(range: Span, excluded: &[Span], mut keep: impl FnMut(Span) -> Result<(), E>) -> Result<(), E> {
    let mut at = range.start;
    while at < range.end() {
        let ahead = excluded.iter().filter(|this| this.end() > at && this.start < range.end());
        let next = ahead.min_by_key(|this| this.start);
        let end = next.map_or(range.end(), |next| next.start.max(at));
        if end > at {
            keep(Span::between(at, end))?;
        }
        at = next.map_or(range.end(), |next| next.end());
    }
    Ok(())
}

struct Reading<'r> {
    images: &'r mut Buffer<Span>,
    excluded: &'r [Span],
    known: Option<(u64, u64)>,
    now: Option<(u64, u64)>,
    result: Result<(), OutOfMemory>,
}

unsafe extern "C" fn image(info: *mut libc::dl_phdr_info, bytes: usize, reading: *mut c_void) -> libc::c_int {
    // SAFETY: `dl_iterate_phdr` passes the pointer it was given, which is to a `Reading` that lives.
    let reading = unsafe { &mut *reading.cast::<Reading<'_>>() };
    if bytes < size_of::<libc::dl_phdr_info>() {
        return 1;
    }
    // SAFETY: the loader's structure, of `bytes` bytes, which are enough.
    let info = unsafe { &*info };
    if reading.now.is_none() {
        let now = (info.dlpi_adds, info.dlpi_subs);
        if Some(now) == reading.known {
            return 1;
        }
        reading.now = Some(now);
        reading.images.truncate(0);
    }
    // SAFETY: the loader's table of program headers has this many entries.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let own = Addr::of(&raw const IMAGE);
    // musl gives the program's name, and not none; but the kernel says where its headers are.
    // SAFETY: `getauxval` takes a number and touches no memory of ours.
    let headers_at = unsafe { libc::getauxval(libc::AT_PHDR) };
    let is_program = info.dlpi_name.is_null() || info.dlpi_phdr as u64 == headers_at || {
        // SAFETY: the loader's name of the object: a C string, and not null.
        unsafe { *info.dlpi_name == 0 }
    };
    for header in
        headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0)
    {
        let bytes = header.p_memsz as usize;
        let segment = Span::new(Addr::new(info.dlpi_addr as usize + header.p_vaddr as usize), bytes);
        let range = segment.from(segment.start.round_up(8));
        // A library's copy of the collector has nothing else in its data: there are no roots there.
        if !is_program && range.contains(own) {
            continue;
        }
        // SAFETY: the program that set the hook allows calls of it while the loader's list is read.
        let has_roots = |hook: ImageFn| unsafe { hook(info.dlpi_name, segment.start.ptr(), bytes) } != 0;
        if !is_program && !IMAGE.get().is_none_or(has_roots) {
            continue;
        }
        reading.result = cut(range, reading.excluded, |part| reading.images.push(part));
        if reading.result.is_err() {
            return 1;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_cut_out() {
        let parts = |start, end, excluded: &[(usize, usize)]| {
            let span = |start, end| Span::between(Addr::new(start), Addr::new(end));
            let excluded: Vec<Span> = excluded.iter().map(|&(start, end)| span(start, end)).collect();
            let mut found = Vec::new();
            let all = cut::<()>(span(start, end), &excluded, |part| {
                found.push((part.start.get(), part.end().get()));
                Ok(())
            });
            assert_eq!(all, Ok(()));
            found
        };
        assert_eq!(parts(80, 160, &[]), [(80, 160)]);
        assert_eq!(parts(80, 160, &[(0, 80), (160, 200)]), [(80, 160)]);
        assert_eq!(parts(80, 160, &[(96, 104), (88, 96), (120, 128)]), [(80, 88), (104, 120), (128, 160)]);
        assert_eq!(parts(80, 160, &[(0, 88), (152, 400), (96, 128), (104, 112)]), [(88, 96), (128, 152)]);
        assert_eq!(parts(80, 160, &[(0, 400)]), []);
        assert_eq!(cut(Span::new(Addr::NULL, 8), &[], |_| Err("full")), Err("full"));
    }
}
