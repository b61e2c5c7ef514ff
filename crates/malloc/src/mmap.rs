//! The program's own anonymous mappings, served from the page layer.
//!
//! Some programs take most of their memory by `mmap` (a compiler's collected heap, an interpreter's arenas).
//! Vellum serves a private, anonymous, readable and writable mapping at any address as a block of zeroed
//! pages. These pages come from the page layer's cache or from memory that gets huge pages; `munmap` returns
//! them to the page layer. The kernel serves all other mappings. The address range of a call is divided into
//! regions of one owner each ([`vellum_pages::Owner`]); the kernel gets the regions that are not Vellum's.
//!
//! | call | on a served mapping | on free memory of Vellum's |
//! | --- | --- | --- |
//! | `mmap` with `MAP_FIXED` | replaces it; Vellum maps the range anew after `munmap` | claims it first: no other request gets it |
//! | `mmap` with `MAP_FIXED_NOREPLACE` | `EEXIST` | as `MAP_FIXED` |
//! | `munmap` | returns it to the page layer | nothing to do, as for any hole |
//! | `mremap` | resizes it, or the kernel moves it | `EFAULT` |
//! | `mprotect`, `mlock`, … | the kernel's call; Vellum maps the range anew after `munmap` | `ENOMEM`, as for a hole |
//! | `madvise` | the kernel's call, but Vellum decides on huge pages | `ENOMEM` |
//!
//! A program can see two departures from the kernel's behaviour: unmapped memory may still be readable, and
//! address space that Vellum has reserved is occupied. The C library's own calls of `mmap` do not come here.

use crate::state::MALLOC;
use crate::{mode, paged, units};
use core::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use core::sync::atomic::Ordering::Relaxed;
use libc::{EEXIST, EFAULT, EINVAL, ENOMEM, c_int};
use vellum_pages::{Owner, PAGE, Pages, Unclaimed};
use vellum_sys::{Addr, Span, raw};
use vellum_wire::Counter;

/// The smallest mapping served: below, a map entry is cheaper than what the page layer would save.
const SERVED_MIN: usize = 64 << 10;
/// The largest mapping served: above, mappings tend to be reservations of which little is touched.
const SERVED_MAX: usize = 256 << 20;
/// Advice that leaves a mapping's attributes as they are.
const HARMLESS: &[c_int] = &[
    libc::MADV_NORMAL,
    libc::MADV_WILLNEED,
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_COLD,
    libc::MADV_PAGEOUT,
    libc::MADV_POPULATE_READ,
    libc::MADV_POPULATE_WRITE,
];
const MAP_FIXED: c_int = libc::MAP_FIXED;
const MAP_FIXED_NOREPLACE: c_int = libc::MAP_FIXED_NOREPLACE;

/// The outcome of a call: a value, or an error number.
pub type Outcome = Result<usize, c_int>;

/// Serves mappings from now on, or no longer; mappings served before stay so.
#[inline(never)]
pub fn serve_mappings(on: bool) {
    MALLOC.serves_mappings.store(on, Relaxed);
}

/// The arguments of `mmap`.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// The requested address, or null.
    pub addr: *mut u8,
    /// Bytes.
    pub len: usize,
    /// Protection flags.
    pub prot: c_int,
    /// Mapping flags.
    pub flags: c_int,
    /// The file, or -1.
    pub file: c_int,
    /// The offset in the file.
    pub offset: usize,
}

fn kernel(number: libc::c_long, args: [usize; 6]) -> Outcome {
    // SAFETY: the program's own call; its effects on Vellum's memory are recorded by the caller.
    unsafe { raw::syscall(number, args) }.map_err(|errno| errno.raw_os_error())
}

/// True if a range may touch Vellum's span: a quick test, without a lock.
#[inline]
fn may_be_ours(range: Span) -> bool {
    let ours = Pages::global().reserved();
    !ours.is_empty() && range.start < ours.end() && range.start.saturating_add(range.bytes) > ours.start
}

impl Mapping {
    /// True for memory most of which will be written: no stack, no reservation, no file.
    fn will_be_written(&self) -> bool {
        let memory = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let others = libc::MAP_STACK | libc::MAP_GROWSDOWN;
        self.flags & (memory | others) == memory
            && self.prot & libc::PROT_WRITE != 0
            && self.len <= SERVED_MAX
    }

    fn ask_kernel(&self, addr: Addr, flags: c_int) -> Outcome {
        let args =
            [addr.get(), self.len, self.prot as usize, flags as usize, self.file as usize, self.offset];
        kernel(libc::SYS_mmap, args)
    }

    /// Makes the mapping at a fixed place that is paged; `None` if it is not.
    fn at_paged_place(&self) -> Option<Outcome> {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let is_plain =
            self.flags & (kind | libc::MAP_SHARED) == kind && (self.addr as usize).is_multiple_of(PAGE);
        if self.flags & MAP_FIXED_NOREPLACE != 0 {
            return paged::owns(self.addr).then_some(Err(EEXIST));
        }
        let made = paged::map_at(self.addr, self.len, self.prot, is_plain)?;
        Some(made.map(|()| self.addr.expose_provenance()))
    }

    /// Makes the mapping at its fixed place, of which parts may be Vellum's.
    fn at_its_place(&self) -> Outcome {
        let replace = self.flags & MAP_FIXED_NOREPLACE == 0;
        let start = Addr::of(self.addr);
        let len = self.len.checked_next_multiple_of(PAGE).ok_or(ENOMEM)?;
        if !start.is_aligned(PAGE) || len == 0 {
            return self.ask_kernel(start, self.flags);
        }
        let pages = Pages::global();
        if replace {
            gone(Span::between(start, start.saturating_add(len)));
        }
        let flags = self.flags & !MAP_FIXED_NOREPLACE | MAP_FIXED;
        let place = Span::new(start, len);
        match pages.claim(place, replace) {
            Ok(false) => self.ask_kernel(start, self.flags),
            Ok(true) => {
                let made = self.ask_kernel(start, flags);
                match made {
                    Ok(_) => pages.confirm_claim(place),
                    Err(_) => pages.withdraw_claim(place),
                }
                made
            }
            Err(Unclaimed::Occupied) => Err(EEXIST),
            Err(Unclaimed::Refused) => Err(ENOMEM),
        }
    }
}

/// `mmap`.
pub fn map(wanted: &Mapping) -> Outcome {
    let plain = wanted.addr.is_null()
        && wanted.prot == libc::PROT_READ | libc::PROT_WRITE
        && wanted.flags == libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    if plain && (SERVED_MIN..=SERVED_MAX).contains(&wanted.len) && MALLOC.serves_mappings.load(Relaxed) {
        let pages = Pages::global();
        let count = |bytes: usize| {
            let slot = pages.slot();
            slot.add(Counter::MmapServed, 1);
            slot.add(Counter::MmapServedBytes, bytes as u64);
        };
        if let Some(paged) = paged::map(wanted.len) {
            count(wanted.len.next_multiple_of(PAGE));
            return Ok(paged.expose_provenance());
        }
        if let Ok(extent) = pages.map(wanted.len) {
            count(extent.bytes);
            units::note_unpaged(extent.bytes);
            let start = Addr::of(extent.addr.as_ptr());
            if let Some(hooks) = mode::sampler() {
                (hooks.mapped)(Span::new(start, wanted.len));
            }
            return Ok(start.get());
        }
    }
    let is_fixed = wanted.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
    if is_fixed && let Some(answer) = wanted.at_paged_place() {
        return answer;
    }
    if wanted.addr.is_null() || !may_be_ours(Span::at(wanted.addr, wanted.len)) {
        let made = wanted.ask_kernel(Addr::of(wanted.addr), wanted.flags);
        if made.is_ok() && wanted.will_be_written() {
            Pages::global().mapped_elsewhere(wanted.len);
        }
        return made;
    }
    if is_fixed {
        return wanted.at_its_place();
    }
    // A hint at address space that Vellum uses, or will: the kernel may choose any place.
    wanted.ask_kernel(Addr::NULL, wanted.flags)
}

/// Notifies the sampler that these pages are gone.
fn gone(pages: Span) {
    if let Some(hooks) = mode::sampler()
        && !pages.is_empty()
    {
        (hooks.unmapped)(pages);
    }
}

/// `munmap`.
///
/// # Safety
/// The conditions of the system call.
pub unsafe fn unmap(addr: *mut u8, len: usize) -> Outcome {
    // SAFETY: the program gives this memory up.
    if let Some(answer) = unsafe { paged::unmap(addr, len) } {
        return answer.map(|()| 0);
    }
    let start = Addr::of(addr);
    let end = len.checked_next_multiple_of(PAGE).and_then(|bytes| start.checked_add(bytes));
    let end = end.filter(|&end| start.is_aligned(PAGE) && start < end);
    // Sampled mappings may have moved out of Vellum's memory.
    gone(Span::between(start, end.unwrap_or(start)));
    if !may_be_ours(Span::new(start, len)) {
        if len <= SERVED_MAX {
            Pages::global().unmaps_elsewhere(len);
        }
        return kernel(libc::SYS_munmap, [start.get(), len, 0, 0, 0, 0]);
    }
    let mut rest = Span::between(start, end.ok_or(EINVAL)?);
    while !rest.is_empty() {
        // SAFETY: the program gives this memory up.
        let (owner, part) = unsafe { Pages::global().unmap(rest) };
        if owner == Owner::Kernel {
            kernel(libc::SYS_munmap, [part.start.get(), part.bytes, 0, 0, 0, 0])?;
        }
        rest = rest.from(part.end());
    }
    Ok(0)
}

/// A call that changes attributes of mappings (`mprotect`, `mlock`); the first two arguments are address and
/// length. Like the kernel, it changes the mappings before the first hole, and fails there.
pub fn change(number: libc::c_long, args: [usize; 6]) -> Outcome {
    let (start, len) = (Addr::new(args[0]), args[1]);
    if paged::note_changes(start.ptr(), len) {
        return kernel(number, args);
    }
    if !may_be_ours(Span::new(start, len)) || !start.is_aligned(PAGE) {
        return kernel(number, args);
    }
    let bytes = len.checked_next_multiple_of(PAGE).ok_or(ENOMEM)?;
    let mapped = Pages::global().taint(start.ptr::<u8>(), bytes);
    if mapped >= bytes {
        return kernel(number, args);
    }
    if mapped > 0 {
        let mut part = args;
        part[1] = mapped;
        kernel(number, part)?;
    }
    Err(ENOMEM)
}

/// Marks memory that is about to get a lasting state: it is mapped again before its next use.
pub fn taint(range: Span) {
    let addr = range.start.ptr();
    if !paged::note_changes(addr, range.bytes) && may_be_ours(range) {
        Pages::global().taint(addr, range.bytes.saturating_add(range.start.get() % PAGE));
    }
}

/// Makes pages of zeros missing, like fresh pages. Only a program with `userfaultfd` sees the difference.
///
/// # Safety
/// The program does not write to the range during the call.
pub unsafe fn flush_zeros(range: Span) {
    let ends = range.start.checked_add(range.bytes).is_some();
    if ends && range.start.is_aligned(PAGE) && may_be_ours(range) {
        // SAFETY: nobody writes to the range: this function asks the same of its caller.
        unsafe { Pages::global().flush_zeros(range) };
    }
}

/// `mseal`, with the call's arguments. Sealed memory stays the kernel's for good.
pub fn seal(args: [usize; 6]) -> Outcome {
    let sealed = kernel(libc::SYS_mseal, args);
    let range = Span::new(Addr::new(args[0]), args[1]);
    if sealed.is_ok() && may_be_ours(range) {
        Pages::global().seal(range.touched(PAGE));
    }
    sealed
}

/// `madvise`. Like the kernel, it advises all that is mapped, and fails with `ENOMEM` if there is a hole.
///
/// # Safety
/// The conditions of the system call.
pub unsafe fn advise(addr: *mut u8, len: usize, advice: c_int) -> Outcome {
    // SAFETY: the program's own call, with its own arguments.
    if let Some(answer) = unsafe { paged::advise(addr, len, advice) } {
        return answer.map(|()| 0);
    }
    let start = Addr::of(addr);
    let ask =
        |range: Span| kernel(libc::SYS_madvise, [range.start.get(), range.bytes, advice as usize, 0, 0, 0]);
    let named = Span::new(start, len);
    if HARMLESS.contains(&advice) || !may_be_ours(named) || !start.is_aligned(PAGE) {
        return ask(named);
    }
    let pages = Pages::global();
    let end = len.checked_next_multiple_of(PAGE).and_then(|len| start.checked_add(len)).ok_or(EINVAL)?;
    let (mut rest, mut holes) = (Span::between(start, end), false);
    while !rest.is_empty() {
        let (owner, part) = pages.owner(rest);
        match owner {
            Owner::Nobody => holes = true,
            Owner::Mapping | Owner::Block if advice == libc::MADV_HUGEPAGE => pages.request_huge(part),
            Owner::Kernel => {
                ask(part)?;
            }
            Owner::Mapping | Owner::Block => {
                pages.taint(part.start.ptr::<u8>(), part.bytes);
                ask(part)?;
            }
        }
        rest = rest.from(part.end());
    }
    if holes { Err(ENOMEM) } else { Ok(0) }
}

/// `mremap`.
///
/// # Safety
/// The conditions of the system call.
pub unsafe fn remap(addr: *mut u8, old: usize, new: usize, flags: c_int, place: *mut u8) -> Outcome {
    // SAFETY: the caller of this function meets the conditions of `mremap`.
    let outcome = unsafe { moved_or_resized(addr, old, new, flags, place) };
    if flags & libc::MREMAP_DONTUNMAP == 0
        && old != 0
        && let (Ok(to), Some(hooks)) = (outcome, mode::sampler())
    {
        (hooks.remapped)(addr as usize, to, [old, new]);
    }
    outcome
}

/// Safety: the conditions of [`remap`].
unsafe fn moved_or_resized(addr: *mut u8, old: usize, new: usize, flags: c_int, place: *mut u8) -> Outcome {
    if paged::owns(addr) {
        // The pager's memory has one place, and its blocks move by `realloc`.
        if flags & !libc::MREMAP_MAYMOVE != 0 {
            return Err(EINVAL);
        }
        // SAFETY: the caller of this function meets the conditions of `mremap`.
        let answer = unsafe { paged::remap(addr, old, new, flags & libc::MREMAP_MAYMOVE != 0) };
        return answer.unwrap_or(Err(EINVAL));
    }
    let (start, place) = (Addr::of(addr), Addr::of(place));
    let fixed = flags & libc::MREMAP_FIXED != 0;
    let ask = |flags: c_int, place: Addr| {
        kernel(libc::SYS_mremap, [start.get(), old, new, flags as usize, place.get(), 0])
    };
    let source = may_be_ours(Span::new(start, old.max(1)));
    if !(source || fixed && may_be_ours(Span::new(place, new))) {
        let outcome = ask(flags, place);
        if outcome.is_ok() && old.max(new) <= SERVED_MAX {
            match new.checked_sub(old) {
                Some(more) => Pages::global().mapped_elsewhere(more),
                None => Pages::global().unmaps_elsewhere(old - new),
            }
        }
        if outcome != Err(EFAULT) || !MALLOC.divided.load(Relaxed) {
            return outcome;
        }
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(ENOMEM);
        }
        // SAFETY: the caller of this function meets the conditions of `mremap`.
        return unsafe { once_ours(start, old, new, flags, place) };
    }
    let (Some(old), Some(new)) = (old.checked_next_multiple_of(PAGE), new.checked_next_multiple_of(PAGE))
    else {
        return Err(EINVAL);
    };
    if !start.is_aligned(PAGE) || new == 0 || flags & !KNOWN != 0 {
        return ask(flags, place);
    }
    if source && has_hole(Span::between(start, start.saturating_add(old.max(PAGE)))) {
        return Err(EFAULT);
    }
    if fixed {
        // SAFETY: the caller of this function meets the conditions of `mremap`.
        return unsafe { to_its_place(start, old, new, flags, place) };
    }
    if old == 0 {
        return ask(flags, Addr::NULL);
    }
    if flags & libc::MREMAP_DONTUNMAP != 0 {
        // SAFETY: the caller meets the conditions of `mremap`; the old place stays mapped.
        return unsafe { elsewhere(start, old, new, flags) };
    }
    // SAFETY: the caller of this function meets the conditions of `mremap`.
    unsafe { resize(start, old, new, flags & libc::MREMAP_MAYMOVE != 0) }
}

/// Moves what the kernel refused to move as a whole, in case it came from Vellum in pieces. Safety: the
/// conditions of `mremap`.
unsafe fn once_ours(start: Addr, old: usize, new: usize, flags: c_int, place: Addr) -> Outcome {
    let (Some(old), Some(new)) = (old.checked_next_multiple_of(PAGE), new.checked_next_multiple_of(PAGE))
    else {
        return Err(EINVAL);
    };
    // SAFETY: the caller of this function meets the conditions of `mremap`.
    unsafe {
        if flags & libc::MREMAP_FIXED != 0 {
            in_pieces(start, old, new, flags, place)
        } else {
            elsewhere(start, old, new, flags)
        }
    }
}

const KNOWN: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;

/// True if some of the memory is free, by the page layer's records.
fn has_hole(mut rest: Span) -> bool {
    while !rest.is_empty() {
        let (owner, part) = Pages::global().owner(rest);
        if owner == Owner::Nobody {
            return true;
        }
        rest = rest.from(part.end());
    }
    false
}

/// Has the kernel move a mapping to a place of the program's choice, from Vellum's memory or into it. Safety:
/// the conditions of `mremap`.
unsafe fn to_its_place(start: Addr, old: usize, new: usize, flags: c_int, place: Addr) -> Outcome {
    let pages = Pages::global();
    if !place.is_aligned(PAGE) {
        return Err(EINVAL);
    }
    gone(Span::between(place, place.saturating_add(new)));
    let claim = Span::new(place, new);
    let claimed = match pages.claim(claim, true) {
        Ok(claimed) => claimed,
        Err(_) => return Err(ENOMEM),
    };
    // SAFETY: the caller of this function meets the conditions of `mremap`.
    let moved = unsafe { in_pieces(start, old, new, flags, place) };
    match moved {
        Ok(_) if claimed => pages.confirm_claim(claim),
        Err(_) if claimed => pages.withdraw_claim(claim),
        _ => {}
    }
    if moved.is_ok() && flags & libc::MREMAP_DONTUNMAP == 0 {
        // SAFETY: the pages have left.
        unsafe { left(Span::new(start, old)) };
    }
    moved
}

/// Records that the kernel has moved pages away: their place is a hole, mapped again before its next use.
/// Safety: the program does not use the old place any more.
unsafe fn left(mut rest: Span) {
    if rest.is_empty() || !may_be_ours(rest) {
        return;
    }
    let pages = Pages::global();
    pages.taint(rest.start.ptr::<u8>(), rest.bytes);
    while !rest.is_empty() {
        // SAFETY: the program does not use the old place any more, and the kernel's part is a hole already.
        rest = rest.from(unsafe { pages.unmap(rest) }.1.end());
    }
}

/// Changes the length of a mapping of Vellum's own, in place or elsewhere if it `may_move`. Safety: the
/// conditions of `mremap`.
unsafe fn resize(start: Addr, old: usize, new: usize, may_move: bool) -> Outcome {
    let pages = Pages::global();
    if new <= old {
        if new < old {
            // SAFETY: the program gives the tail up.
            unsafe { unmap((start + new).ptr(), old - new)? };
        }
        return Ok(start.get());
    }
    let addr = NonNull::new(start.ptr::<u8>()).ok_or(EFAULT)?;
    if pages.separate_mapping(addr, old) {
        // SAFETY: the block is the program's, which lets it move if it says so.
        let grown = unsafe {
            if may_move {
                pages.resize_zeroed(addr, new).ok()
            } else {
                pages.resize_in_place_zeroed(addr, new)
            }
        };
        let grown = grown.ok_or(ENOMEM)?;
        pages.make_mapping(grown.addr);
        return Ok(grown.addr.as_ptr().expose_provenance());
    }
    if !may_move {
        return Err(ENOMEM);
    }
    // SAFETY: the caller of this function meets the conditions of `mremap`.
    let moved = unsafe { elsewhere(start, old, new, libc::MREMAP_MAYMOVE) }?;
    // SAFETY: the pages have left.
    unsafe { left(Span::new(start, old)) };
    Ok(moved)
}

/// Lets the kernel move memory of Vellum's to a new place outside the arenas. Safety: the conditions of
/// `mremap`.
unsafe fn elsewhere(start: Addr, old: usize, new: usize, flags: c_int) -> Outcome {
    let plain = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let place = kernel(libc::SYS_mmap, [0, new, libc::PROT_NONE as usize, plain, usize::MAX, 0])?;
    let place = Addr::new(place);
    // SAFETY: the caller of this function meets the conditions of `mremap`, and the place is new.
    unsafe { in_pieces(start, old, new, flags | libc::MREMAP_FIXED, place) }.inspect_err(|_| {
        let _ = kernel(libc::SYS_munmap, [place.get(), new, 0, 0, 0, 0]);
    })
}

/// `mremap` to a fixed place. Vellum's map entries (at the ends of huge pages, where blocks were joined) may
/// divide a mapping of the program, and the kernel moves one entry at a time. A mapping that it refuses to
/// move moves in pieces, each half as long as the piece refused before. Safety: the conditions of `mremap`.
unsafe fn in_pieces(start: Addr, old: usize, new: usize, flags: c_int, place: Addr) -> Outcome {
    let ask = |from: Addr, old: usize, new: usize, flags: c_int, to: Addr| {
        kernel(libc::SYS_mremap, [from.get(), old, new, flags as usize, to.get(), 0])
    };
    // Newer kernels move several entries of one length in one call, and leave them divided.
    MALLOC.divided.store(true, Relaxed);
    let whole = ask(start, old, new, flags, place);
    if whole != Err(EFAULT) || old == 0 {
        return whole;
    }
    let common = old.min(new);
    let (mut done, mut piece) = (0, common);
    while done < common {
        piece = piece.min(common - done);
        let rest = if done + piece == common { new - common } else { 0 };
        match ask(start + done, piece, piece + rest, flags, place + done) {
            Ok(_) => {
                done += piece;
                piece = common;
            }
            Err(EFAULT) if piece > PAGE => piece = (piece / 2).next_multiple_of(PAGE),
            Err(errno) => {
                let back = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                for page in (0..done).step_by(PAGE) {
                    let _ = ask(place + page, PAGE, PAGE, back, start + page);
                }
                return Err(errno);
            }
        }
    }
    // The rest is unmapped, as when the kernel moves the whole; Vellum's memory is the caller's to return.
    if new < old && flags & libc::MREMAP_DONTUNMAP == 0 && !may_be_ours(Span::new(start, old)) {
        kernel(libc::SYS_munmap, [start.get() + new, old - new, 0, 0, 0, 0])?;
    }
    Ok(place.get())
}

/// `mlockall`. Everything mapped becomes resident, so what Vellum has mapped ahead, or reserved, is unmapped
/// first.
pub fn lock_all(flags: c_int) -> Outcome {
    Pages::global().on_mlockall();
    kernel(libc::SYS_mlockall, [flags as usize, 0, 0, 0, 0, 0])
}

/// A call's outcome as C functions give it: an address, or `MAP_FAILED` and `errno`.
pub fn answer(outcome: Outcome) -> *mut u8 {
    match outcome {
        Ok(value) => with_exposed_provenance_mut(value),
        Err(errno) => {
            crate::set_errno(errno);
            null_mut::<u8>().wrapping_byte_sub(1)
        }
    }
}
