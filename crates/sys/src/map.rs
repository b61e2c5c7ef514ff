//! System calls on mappings: they reserve address space, return page frames, give advice, and read residency.
//!
//! Every [`Span`] given here is page-aligned. The `unsafe` functions share one condition: the span belongs
//! to the caller, and no reference points into what the call discards or moves.

use crate::caps::{self, Caps};
use crate::{Addr, HUGE, PAGE, Span, raw};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Maps zero pages in exactly this span, where nothing is mapped.
fn map_new(span: Span, access: ProtFlags) -> Result<(), Errno> {
    let mut flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    if caps::has(Caps::NOREPLACE) {
        flags |= MapFlags::FIXED_NOREPLACE;
    }
    // SAFETY: without FIXED the kernel places new pages only where nothing is mapped.
    let got = unsafe { rustix::mm::mmap_anonymous(span.start.ptr(), span.bytes, access, flags)? };
    if got != span.start.ptr() {
        // Kernels before 4.17 take the flag for a hint.
        caps::drop(Caps::NOREPLACE);
        // SAFETY: the kernel has just made this mapping, and no other code has its address.
        unsafe { rustix::mm::munmap(got, span.bytes)? };
        return Err(Errno::EXIST);
    }
    Ok(())
}

/// Maps zero pages in the place of whatever is mapped in the span.
///
/// # Safety
/// The span is the caller's and nothing in it is needed.
unsafe fn map_over(span: Span, access: ProtFlags) -> Result<(), Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: `# Safety` of this function allows replacing the span.
    unsafe { rustix::mm::mmap_anonymous(span.start.ptr(), span.bytes, access, flags) }.map(drop)
}

/// Maps `bytes` bytes of zero pages at a place of the kernel's choice.
fn map_anywhere(bytes: usize, access: ProtFlags) -> Result<Span, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the kernel chooses the place, so nothing is replaced.
    let start = unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), bytes, access, flags)? };
    Ok(Span::new(Addr::of(start), bytes))
}

/// Maps zero pages, readable and writable, in exactly this span, where nothing is mapped. They become huge
/// only by [`advise_huge`]: otherwise sparse memory could become dense.
///
/// # Errors
/// `EXIST` if something is mapped there; `NOMEM` if a limit (`RLIMIT_AS`, `vm.max_map_count`, commit
/// accounting) forbids it.
pub fn claim(span: Span) -> Result<(), Errno> {
    map_new(span, READ_WRITE)?;
    advise_huge(span, false);
    Ok(())
}

/// Makes the span readable as zeros, where nothing is mapped, at no cost in memory or accounting.
///
/// # Errors
/// As [`claim`].
pub fn claim_readable(span: Span) -> Result<(), Errno> {
    claim(span)?;
    // SAFETY: `claim` has just mapped the span, and no other code has its address.
    unsafe { make_readable(span)? };
    leave_out_of_dumps(span);
    Ok(())
}

/// Reserves exactly this address space, where nothing is mapped, without access to it. Reserved address space
/// costs neither memory nor accounting, is left out of core dumps, and is taken into use by [`renew`].
///
/// # Errors
/// As [`claim`].
pub fn reserve(span: Span) -> Result<(), Errno> {
    map_new(span, ProtFlags::empty())?;
    leave_out_of_dumps(span);
    Ok(())
}

/// Replaces whatever is mapped in the span by reserved address space, without access.
///
/// # Errors
/// `NOMEM` if no map entry is left; nothing has changed then.
///
/// # Safety
/// The span is the caller's and nothing in it is needed.
pub unsafe fn close(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function is that of `map_over`.
    unsafe { map_over(span, ProtFlags::empty())? };
    leave_out_of_dumps(span);
    Ok(())
}

/// Gives advice that changes no contents.
fn advise(span: Span, advice: Advice) -> Result<(), Errno> {
    // SAFETY: callers pass only advice that keeps contents.
    unsafe { rustix::mm::madvise(span.start.ptr(), span.bytes, advice) }
}

/// Leaves the span out of core dumps, which would otherwise be as large as all address space in them.
pub fn leave_out_of_dumps(span: Span) {
    let _ = advise(span, Advice::LinuxDontDump);
}

/// Undoes [`leave_out_of_dumps`]. Returns whether that was possible.
pub fn include_in_dumps(span: Span) -> bool {
    advise(span, Advice::LinuxDoDump).is_ok()
}

/// Changes the access to the span. Contents stay.
///
/// # Safety
/// The span is the caller's, and no code makes an access that is forbidden from now on.
unsafe fn protect(span: Span, access: MprotectFlags) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function says that the span is the caller's; the call keeps contents.
    unsafe { rustix::mm::mprotect(span.start.ptr(), span.bytes, access) }
}

/// Makes reserved address space readable as zeros.
///
/// # Errors
/// `NOMEM` if no map entry is left.
///
/// # Safety
/// The span is the caller's.
pub unsafe fn make_readable(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function is that of `protect`; nobody writes to reserved address space.
    unsafe { protect(span, MprotectFlags::READ) }
}

/// Reserves `bytes` bytes of address space anywhere, readable as zeros, without memory or accounting.
///
/// # Errors
/// `NOMEM` if a limit on address space forbids it.
pub fn reserve_readable(bytes: usize) -> Result<Span, Errno> {
    let span = map_anywhere(bytes, ProtFlags::READ)?;
    leave_out_of_dumps(span);
    Ok(span)
}

/// Makes reserved pages writable. From here on they may count against commit limits.
///
/// # Errors
/// `NOMEM` if accounting or the number of map entries forbids it.
///
/// # Safety
/// The span is the caller's.
pub unsafe fn make_writable(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function is that of `protect`; every access is allowed afterwards.
    unsafe { protect(span, MprotectFlags::READ | MprotectFlags::WRITE) }
}

/// Makes pages inaccessible: any access faults. Contents stay.
///
/// # Errors
/// `NOMEM` if the number of map entries forbids it.
///
/// # Safety
/// The span is the caller's, and nobody touches it until it is made writable again.
pub unsafe fn make_inaccessible(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function is that of `protect`.
    unsafe { protect(span, MprotectFlags::empty()) }
}

/// Reserves `bytes` bytes of address space anywhere, without access. The caller [releases](release) them.
///
/// # Errors
/// `NOMEM` if there is no room.
pub fn reserve_inaccessible(bytes: usize) -> Result<Span, Errno> {
    map_anywhere(bytes, ProtFlags::empty())
}

/// Maps `bytes` bytes of zero pages anywhere, readable and writable. The caller [releases](release) them.
///
/// # Errors
/// `NOMEM` as of [`reserve_readable`] and [`make_writable`]; nothing stays reserved then.
pub fn reserve_writable(bytes: usize) -> Result<Span, Errno> {
    let span = reserve_readable(bytes)?;
    // SAFETY: reserved by the line before, and no other code has its address.
    unsafe { make_writable(span) }.inspect_err(|_| {
        // SAFETY: reserved by this function and never published.
        let _ = unsafe { release(span) };
    })?;
    Ok(span)
}

/// Replaces whatever is mapped in the span by zero pages, as of [`claim`].
///
/// # Safety
/// The span is the caller's and nothing in it is needed.
pub unsafe fn renew(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function is that of `map_over`.
    unsafe { map_over(span, READ_WRITE)? };
    advise_huge(span, false);
    Ok(())
}

/// Unmaps the span.
///
/// # Safety
/// The span is the caller's and nothing in it is needed.
pub unsafe fn release(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function allows losing the mapping.
    unsafe { rustix::mm::munmap(span.start.ptr(), span.bytes) }
}

/// Gives the span's frames back now; the next touch finds zeros (`MADV_DONTNEED`).
///
/// # Safety
/// The contents are not needed.
pub unsafe fn flush(span: Span) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function allows losing the contents.
    unsafe { rustix::mm::madvise(span.start.ptr(), span.bytes, Advice::LinuxDontNeed) }
}

/// Marks the span's pages discardable (`MADV_FREE`): the kernel may take the frames until the next write.
/// Falls back to [`flush`]. Returns whether the frames are still there.
///
/// # Safety
/// The contents are not needed.
pub unsafe fn discard(span: Span) -> Result<bool, Errno> {
    if caps::has(Caps::LAZY_FREE) {
        // SAFETY: `# Safety` of this function allows losing the contents.
        match unsafe { rustix::mm::madvise(span.start.ptr(), span.bytes, Advice::LinuxFree) } {
            Ok(()) => return Ok(true),
            Err(errno) if caps::means_missing(errno) => caps::refuse(Caps::LAZY_FREE, errno),
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: `# Safety` of this function is that of `flush`.
    unsafe { flush(span)? };
    Ok(false)
}

/// Requests huge pages in the span, or forbids them. Memory that is already there does not change.
pub fn advise_huge(span: Span, is_wanted: bool) -> bool {
    if !caps::has(Caps::HUGE_PAGES) {
        return false;
    }
    match advise(span, if is_wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage }) {
        Ok(()) => true,
        Err(errno) => {
            if caps::means_missing(errno) {
                caps::refuse(Caps::HUGE_PAGES, errno);
            }
            false
        }
    }
}

/// Fetches the span's frames, as writing to each page would.
pub fn populate(span: Span) -> Result<(), Errno> {
    if !caps::has(Caps::POPULATE) {
        return Err(Errno::NOSYS);
    }
    let done = advise(span, Advice::LinuxPopulateWrite);
    if done == Err(Errno::INVAL) && !can_populate() {
        caps::refuse(Caps::POPULATE, Errno::INVAL);
    }
    done
}

/// True if this kernel has the call. It answers `INVAL` also for a page that may not be written.
fn can_populate() -> bool {
    let Ok(page) = map_anywhere(PAGE, READ_WRITE) else { return true };
    let done = advise(page, Advice::LinuxPopulateWrite);
    // SAFETY: mapped by this function and never published.
    let _ = unsafe { release(page) };
    done != Err(Errno::INVAL)
}

/// Moves the pages of `from` to `to` by moving page tables. The mapping at `to` is replaced; `from` stays
/// mapped and empty. Costs map entries: see [`crate::transfer`].
///
/// # Safety
/// Both spans are the caller's, do not overlap, and nothing at `to` is needed.
pub unsafe fn remap(from: Span, to: Addr) -> Result<(), Errno> {
    if !caps::has(Caps::REMAP) {
        return Err(Errno::NOSYS);
    }
    // By its number: rustix names it for one of its two backends only.
    let keep = MremapFlags::MAYMOVE | MremapFlags::from_bits_retain(libc::MREMAP_DONTUNMAP as u32);
    let (place, bytes) = (from.start.ptr(), from.bytes);
    // SAFETY: `# Safety` of this function: the source is the caller's and the destination may be replaced.
    match unsafe { rustix::mm::mremap_fixed(place, bytes, bytes, keep, to.ptr()) } {
        Ok(_) => Ok(()),
        Err(Errno::NOMEM | Errno::FAULT | Errno::INVAL) => {
            // Before 5.7 the source cannot stay: move it whole and map the hole anew.
            // SAFETY: `# Safety` of this function, and after the first call nothing is mapped at `from`.
            unsafe {
                rustix::mm::mremap_fixed(place, bytes, bytes, MremapFlags::MAYMOVE, to.ptr())?;
                renew(from)
            }
        }
        Err(errno) => Err(errno),
    }
}

/// Which pages of a span are resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// The number of resident pages.
    pub pages: usize,
    /// Pages from the first resident one up to the last one.
    pub spread: usize,
}

/// Finds the resident pages among the first [`RESIDENCY_MAX`]. `None` if the kernel does not report them.
pub fn residency(span: Span) -> Option<Residency> {
    let mut states = [0u8; RESIDENCY_MAX];
    let count = span.page_count().get().min(RESIDENCY_MAX);
    residency_into(span.start, &mut states[..count])?;
    let mut resident = (0..count).filter(|&page| states[page] & 1 != 0);
    let Some(first) = resident.next() else { return Some(Residency { pages: 0, spread: 0 }) };
    let (pages, last) = resident.fold((1, first), |(pages, _), page| (pages + 1, page));
    Some(Residency { pages, spread: last + 1 - first })
}

/// Sets the lowest bit of each of `states` where the page is resident, one for each page from `start` on.
/// `None` where the kernel does not report it.
pub fn residency_into(start: Addr, states: &mut [u8]) -> Option<()> {
    caps::has(Caps::RESIDENCY).then(|| mincore(start, states).ok())?
}

/// [`residency_into`] whatever [`Caps`] allow.
///
/// # Errors
/// The kernel's errno: `NOMEM` where something is not mapped.
pub fn mincore(start: Addr, states: &mut [u8]) -> Result<(), Errno> {
    let args = [start.get(), states.len() * PAGE, states.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes one byte a page into `states`, which is that long.
    unsafe { raw::syscall(libc::SYS_mincore, args) }.map(drop)
}

/// Returns whether the page at `page` is resident. `None` where the kernel does not report it.
pub fn is_resident(page: Addr) -> Option<bool> {
    let mut state = [0];
    residency_into(page, &mut state)?;
    Some(state[0] & 1 != 0)
}

/// The most pages that one call of [`residency`] covers: those of one huge page.
pub const RESIDENCY_MAX: usize = HUGE / PAGE;

/// Counts, among [`SAMPLES`] spread pages of the huge page at `huge`, those whose first bytes are not all
/// zero. `None` where that cannot be found out. The kernel reads them: if the program protects or unmaps the
/// memory meanwhile the call fails, and no signal is raised.
pub fn written_samples(huge: Addr) -> Option<usize> {
    const PEEK: usize = 16;
    let mut seen = [0u8; SAMPLES * PEEK];
    let mut remote = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: PEEK }; SAMPLES];
    for (index, part) in remote.iter_mut().enumerate() {
        // One page of each stride, another in each: a program that strides itself must not meet them all.
        let stride = HUGE / SAMPLES;
        let page = (index * 7 + 3) % (stride / PAGE);
        part.iov_base = (huge + index * stride + page * PAGE).ptr();
    }
    let read = read_own(&remote, &mut seen).ok()?;
    (read == seen.len())
        .then(|| seen.chunks(PEEK).filter(|bytes| bytes.iter().any(|&byte| byte != 0)).count())
}

/// Copies memory from `from` on, up to the first byte that cannot be read, and returns the number of bytes.
/// The kernel reads them, as for [`written_samples`].
pub fn copy_from(from: Addr, into: &mut [u8]) -> usize {
    read_own(&[libc::iovec { iov_base: from.ptr(), iov_len: into.len() }], into).unwrap_or(0)
}

/// Has the kernel read the `parts` of this process into `into`, up to the first that cannot be read.
///
/// # Errors
/// `FAULT` if the first cannot be read; others where the call is forbidden.
pub(crate) fn read_own(parts: &[libc::iovec], into: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let own = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let args = [own, &raw const local as usize, 1, parts.as_ptr() as usize, parts.len(), 0];
    // SAFETY: the kernel writes at most the length of `into` through `local`.
    unsafe { raw::syscall(libc::SYS_process_vm_readv, args) }
}

/// Pages of a huge page that [`written_samples`] reads.
pub const SAMPLES: usize = 32;
