//! Mappings: claiming address space, and telling the kernel what is known of its pages.
//!
//! All ranges are given as a page-aligned start and a length in bytes. The `unsafe` functions here share one
//! condition: the range belongs to the caller, and nobody holds a reference into what the call throws away or
//! moves.

use crate::PAGE;
use crate::caps::{self, Caps};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

/// Maps fresh zero pages, readable and writable, at exactly `start`, where nothing is mapped. They become
/// huge only where that is asked for: else sparse memory could become dense.
///
/// # Errors
/// `EXIST` if something is mapped there; `NOMEM` if a limit (`RLIMIT_AS`, `vm.max_map_count`, commit
/// accounting) forbids it.
pub fn claim(start: usize, len: usize) -> Result<(), Errno> {
    let mut flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    if caps::has(Caps::NOREPLACE) {
        flags |= MapFlags::FIXED_NOREPLACE;
    }
    // SAFETY: without FIXED the kernel places new pages only where nothing is mapped.
    let got = unsafe {
        rustix::mm::mmap_anonymous(start as *mut _, len, ProtFlags::READ | ProtFlags::WRITE, flags)? as usize
    };
    if got != start {
        // Kernels before 4.17 take the flag for a hint.
        caps::drop(Caps::NOREPLACE);
        // SAFETY: the mapping was made a moment ago and nobody knows of it.
        unsafe { rustix::mm::munmap(got as *mut _, len)? };
        return Err(Errno::EXIST);
    }
    advise_huge(start, len, false);
    Ok(())
}

/// Makes the range readable as zeros, at no cost in memory or accounting, without taking the place of
/// anything.
///
/// # Errors
/// As [`claim`].
pub fn claim_readable(start: usize, len: usize) -> Result<(), Errno> {
    claim(start, len)?;
    // SAFETY: mapped a moment ago; nobody writes there.
    unsafe { rustix::mm::mprotect(start as *mut _, len, rustix::mm::MprotectFlags::READ)? };
    leave_out_of_dumps(start, len);
    Ok(())
}

/// Reserves exactly this address space without access to it, without taking the place of anything. It costs
/// neither memory nor accounting, is left out of core dumps, and is taken into use by [`renew`].
///
/// # Errors
/// As [`claim`].
pub fn reserve(start: usize, len: usize) -> Result<(), Errno> {
    let mut flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    if caps::has(Caps::NOREPLACE) {
        flags |= MapFlags::FIXED_NOREPLACE;
    }
    // SAFETY: without FIXED the kernel places new pages only where nothing is mapped.
    let got =
        unsafe { rustix::mm::mmap_anonymous(start as *mut _, len, ProtFlags::empty(), flags)? as usize };
    if got != start {
        caps::drop(Caps::NOREPLACE);
        // SAFETY: the mapping was made a moment ago and nobody knows of it.
        unsafe { rustix::mm::munmap(got as *mut _, len)? };
        return Err(Errno::EXIST);
    }
    leave_out_of_dumps(start, len);
    Ok(())
}

/// Puts reserved address space, without access, in the place of whatever is mapped in the range.
///
/// # Errors
/// `NOMEM` if no map entry is left; nothing has changed then.
///
/// # Safety
/// The range is the caller's and nothing in it is needed.
pub unsafe fn close(start: usize, len: usize) -> Result<(), Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: by this function's condition the range may be replaced.
    unsafe {
        rustix::mm::mmap_anonymous(start as *mut _, len, ProtFlags::empty(), flags)?;
        let _ = rustix::mm::madvise(start as *mut _, len, Advice::LinuxDontDump);
    }
    Ok(())
}

/// Leaves the range out of core dumps, whose size would be that of all address space in them.
pub fn leave_out_of_dumps(start: usize, len: usize) {
    // SAFETY: this advice changes no contents.
    let _ = unsafe { rustix::mm::madvise(start as *mut _, len, Advice::LinuxDontDump) };
}

/// Undoes [`leave_out_of_dumps`]; whether that was possible.
pub fn include_in_dumps(start: usize, len: usize) -> bool {
    // SAFETY: this advice changes no contents.
    unsafe { rustix::mm::madvise(start as *mut _, len, Advice::LinuxDoDump) }.is_ok()
}

/// Makes reserved address space readable as zeros.
///
/// # Errors
/// `NOMEM` if no map entry is left.
///
/// # Safety
/// The range is the caller's.
pub unsafe fn make_readable(start: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: by this function's condition; contents stay.
    unsafe { rustix::mm::mprotect(start as *mut _, len, rustix::mm::MprotectFlags::READ) }
}

/// Reserves `len` bytes of address space wherever there is room, readable as zeros, at no cost in memory or
/// accounting.
///
/// # Errors
/// `NOMEM` if a limit on address space forbids it.
pub fn reserve_readable(len: usize) -> Result<usize, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the kernel chooses the place, so nothing is replaced.
    let start = unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::READ, flags)? };
    leave_out_of_dumps(start as usize, len);
    Ok(start as usize)
}

/// Makes reserved pages writable; from here on they may count against commit limits.
///
/// # Errors
/// `NOMEM` if accounting or the number of map entries forbids it.
///
/// # Safety
/// The range is the caller's.
pub unsafe fn make_writable(start: usize, len: usize) -> Result<(), Errno> {
    let both = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
    // SAFETY: by this function's condition; contents stay.
    unsafe { rustix::mm::mprotect(start as *mut _, len, both) }
}

/// Makes pages inaccessible: any access faults. Contents stay.
///
/// # Errors
/// `NOMEM` if the number of map entries forbids it.
///
/// # Safety
/// The range is the caller's, and nobody touches it until it is made writable again.
pub unsafe fn make_inaccessible(start: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: by this function's condition.
    unsafe { rustix::mm::mprotect(start as *mut _, len, rustix::mm::MprotectFlags::empty()) }
}

/// Inaccessible pages at a place of the kernel's choice: address space only. They are the caller's until it
/// [releases](release) them.
///
/// # Errors
/// `NOMEM` if there is no room.
pub fn reserve_inaccessible(len: usize) -> Result<usize, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the kernel chooses the place, so nothing is replaced.
    let start = unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::empty(), flags)? };
    Ok(start as usize)
}

/// Zeroed pages at a place of the kernel's choice, readable and writable: address space until they are
/// touched. They are the caller's until it [releases](release) them.
///
/// # Errors
/// `NOMEM` as of [`reserve_readable`] and [`make_writable`]; nothing stays reserved then.
pub fn reserve_writable(len: usize) -> Result<usize, Errno> {
    let start = reserve_readable(len)?;
    // SAFETY: reserved a moment ago, nobody knows of it.
    unsafe { make_writable(start, len) }.inspect_err(|_| {
        // SAFETY: reserved a moment ago and still unknown to anybody else.
        let _ = unsafe { release(start, len) };
    })?;
    Ok(start)
}

/// Puts fresh zero pages, as of [`claim`], in the place of whatever is mapped in the range.
///
/// # Safety
/// The range is the caller's and nothing in it is needed.
pub unsafe fn renew(start: usize, len: usize) -> Result<(), Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: by this function's condition the range may be replaced.
    unsafe {
        rustix::mm::mmap_anonymous(start as *mut _, len, ProtFlags::READ | ProtFlags::WRITE, flags)?;
    }
    advise_huge(start, len, false);
    Ok(())
}

/// Unmaps the range.
///
/// # Safety
/// The range is the caller's and nothing in it is needed.
pub unsafe fn release(start: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: by this function's condition.
    unsafe { rustix::mm::munmap(start as *mut _, len) }
}

/// Gives the range's frames back now; the next touch finds zeros (`MADV_DONTNEED`).
///
/// # Safety
/// Nothing in the range is needed.
pub unsafe fn flush(start: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: by this function's condition.
    unsafe { rustix::mm::madvise(start as *mut _, len, Advice::LinuxDontNeed) }
}

/// Marks the range's pages discardable (`MADV_FREE`): the kernel takes the frames when it wants them, a write
/// before that keeps them. Falls back to [`flush`]. Returns whether the frames are still there.
///
/// # Safety
/// Nothing in the range is needed.
pub unsafe fn discard(start: usize, len: usize) -> Result<bool, Errno> {
    if caps::has(Caps::LAZY_FREE) {
        // SAFETY: by this function's condition.
        match unsafe { rustix::mm::madvise(start as *mut _, len, Advice::LinuxFree) } {
            Ok(()) => return Ok(true),
            Err(errno) if caps::means_missing(errno) => caps::refuse(Caps::LAZY_FREE, errno),
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: by this function's condition.
    unsafe { flush(start, len)? };
    Ok(false)
}

/// Asks for huge pages in the range, or forbids them. Changes nothing in memory that is there already.
pub fn advise_huge(start: usize, len: usize, wanted: bool) -> bool {
    if !caps::has(Caps::HUGE_PAGES) {
        return false;
    }
    let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    // SAFETY: this advice changes how future faults are served, never contents.
    match unsafe { rustix::mm::madvise(start as *mut _, len, advice) } {
        Ok(()) => true,
        Err(errno) => {
            if caps::means_missing(errno) {
                caps::refuse(Caps::HUGE_PAGES, errno);
            }
            false
        }
    }
}

/// Fetches the range's frames, as writing to each page would.
pub fn populate(start: usize, len: usize) -> Result<(), Errno> {
    if !caps::has(Caps::POPULATE) {
        return Err(Errno::NOSYS);
    }
    // SAFETY: populating keeps contents.
    let done = unsafe { rustix::mm::madvise(start as *mut _, len, Advice::LinuxPopulateWrite) };
    if done == Err(Errno::INVAL) && !can_populate() {
        caps::refuse(Caps::POPULATE, Errno::INVAL);
    }
    done
}

/// Whether this kernel knows the call: it answers the same where it does and a page of the range may not be
/// written.
fn can_populate() -> bool {
    // SAFETY: a page of our own, which nobody else knows of and which is gone again before this returns.
    unsafe {
        let page = rustix::mm::mmap_anonymous(
            core::ptr::null_mut(),
            PAGE,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        );
        let Ok(page) = page else { return true };
        let done = rustix::mm::madvise(page, PAGE, Advice::LinuxPopulateWrite);
        let _ = rustix::mm::munmap(page, PAGE);
        done != Err(Errno::INVAL)
    }
}

/// Moves the pages of `from` to `to` by moving page tables; the mapping at `to` goes, `from` stays mapped and
/// empty. Costs map entries (the destination keeps the source's page offsets): see [`crate::transfer`].
///
/// # Safety
/// Both ranges are the caller's, do not overlap, and nothing at `to` is needed.
pub unsafe fn remap(from: usize, to: usize, len: usize) -> Result<(), Errno> {
    if !caps::has(Caps::REMAP) {
        return Err(Errno::NOSYS);
    }
    // By its number: rustix names it for one of its two backends only.
    let keep = MremapFlags::MAYMOVE | MremapFlags::from_bits_retain(libc::MREMAP_DONTUNMAP as u32);
    // SAFETY: by this function's condition.
    let moved = unsafe { rustix::mm::mremap_fixed(from as *mut _, len, len, keep, to as *mut _) };
    match moved {
        Ok(_) => Ok(()),
        Err(Errno::NOMEM | Errno::FAULT | Errno::INVAL) => {
            // Before 5.7 the source cannot stay: move it whole and map the hole anew.
            // SAFETY: by this function's condition both ranges are the caller's; `from` is mapped anew.
            unsafe {
                rustix::mm::mremap_fixed(from as *mut _, len, len, MremapFlags::MAYMOVE, to as *mut _)?;
                renew(from, len)
            }
        }
        Err(errno) => Err(errno),
    }
}

/// Which pages of a range are resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// How many are.
    pub pages: usize,
    /// From the first that is to behind the last.
    pub span: usize,
}

/// Looks which of the `count` pages from `start` (at most [`RESIDENCY_MAX`]) are resident; `None` where this
/// cannot be learnt.
pub fn residency(start: usize, count: usize) -> Option<Residency> {
    let mut states = [0u8; RESIDENCY_MAX];
    let count = count.min(RESIDENCY_MAX);
    residency_into(start, &mut states[..count])?;
    let mut there = (0..count).filter(|&page| states[page] & 1 != 0);
    let Some(first) = there.next() else { return Some(Residency { pages: 0, span: 0 }) };
    let (pages, last) = there.fold((1, first), |(pages, _), page| (pages + 1, page));
    Some(Residency { pages, span: last + 1 - first })
}

/// Looks which pages from `start` are resident, one for each of `states`, whose lowest bit says so then;
/// `None` where this cannot be learnt.
pub fn residency_into(start: usize, states: &mut [u8]) -> Option<()> {
    if !caps::has(Caps::RESIDENCY) {
        return None;
    }
    let args = [start, states.len() * crate::PAGE, states.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes one byte a page.
    unsafe { crate::raw::syscall(libc::SYS_mincore, args) }.ok().map(drop)
}

/// Whether the page at `start` is resident; `None` where this cannot be learnt.
pub fn is_resident(start: usize) -> Option<bool> {
    residency(start, 1).map(|found| found.pages == 1)
}

/// The most pages one call of [`residency`] looks at: one huge page's.
pub const RESIDENCY_MAX: usize = crate::HUGE / crate::PAGE;

/// Looks at `SAMPLES` spread pages of the huge page at `start` and counts those whose first bytes are not all
/// zero, or `None` where this cannot be learnt. The kernel does the reading: memory that the program has
/// protected, or is unmapping this moment, makes the call fail and not the process.
pub fn written_samples(start: usize) -> Option<usize> {
    /// Bytes looked at in each sampled place.
    const PEEK: usize = 16;
    let mut seen = [0u8; SAMPLES * PEEK];
    let mut remote = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: PEEK }; SAMPLES];
    for (index, part) in remote.iter_mut().enumerate() {
        // One page of each stride, another in each: a program that strides itself must not meet them all.
        let stride = crate::HUGE / SAMPLES;
        let page = (index * 7 + 3) % (stride / crate::PAGE);
        part.iov_base = (start + index * stride + page * crate::PAGE) as *mut _;
    }
    let local = libc::iovec { iov_base: seen.as_mut_ptr().cast(), iov_len: seen.len() };
    let own = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let args = [own, &raw const local as usize, 1, remote.as_ptr() as usize, SAMPLES, 0];
    // SAFETY: the kernel writes at most the length of `seen` through `local`.
    let read = unsafe { crate::raw::syscall(libc::SYS_process_vm_readv, args) }.ok()?;
    (read == seen.len())
        .then(|| seen.chunks(PEEK).filter(|bytes| bytes.iter().any(|&byte| byte != 0)).count())
}

/// Copies what is at `from`, as far as it can be read: how many bytes. The kernel does the reading, as for
/// [`written_samples`].
pub fn copy_from(from: usize, into: &mut [u8]) -> usize {
    let remote = libc::iovec { iov_base: from as *mut _, iov_len: into.len() };
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let own = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let args = [own, &raw const local as usize, 1, &raw const remote as usize, 1, 0];
    // SAFETY: the kernel writes at most the length of `into` through `local`.
    unsafe { crate::raw::syscall(libc::SYS_process_vm_readv, args) }.unwrap_or(0)
}

/// Pages that [`written_samples`] looks at.
pub const SAMPLES: usize = 32;
