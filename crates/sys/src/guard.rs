//! Finds written pages by page protection and SIGSEGV, where [`crate::track`] is not available.
//!
//! ```text
//! open    ──▶ makes a table with a byte for each page of a span, and sets a SIGSEGV handler
//! arm     ──▶ makes pages read-only
//! take    ──▶ returns the written pages, which are read-only again
//! release ──▶ makes pages writable
//! ```
//!
//! A write to an armed page faults. The handler makes the page and those around it writable and marks them as
//! written; then the write is retried. Guarding is coarser than `track`, and visible to the program:
//!
//! * a *system call* that writes to an armed page fails with `EFAULT`, and no signal frame can lie there;
//! * a write by a thread that has blocked SIGSEGV ends the process;
//! * each writable hole in armed memory costs two map entries. Holes have [`AROUND`] bytes if possible. If
//!   the process may have no more entries, the whole armed range around the page becomes writable.
//!
//! # Invariants
//! * Every other SIGSEGV goes to the program's own action ([`segv`]). If the program replaces the handler
//!   without `segv`, no page is armed any more ([`open`]).
//! * The handler touches its table and the faulting range only, by system calls that are async-signal-safe.
//! * Pages that were not armed are never changed, because pages around an armed one may be another owner's.
//! * Pages are armed and taken while no other thread writes there or is in the handler. The handler blocks
//!   all signals, so a thread that a signal has stopped has left it. The handler runs on any number of
//!   threads at once. A handler may run late, after the page was released.
//!
//! Source: Appel, Ellis and Li 1988, "Real-time concurrent collection on stock multiprocessors"; and libgc.
//! Departure: only pages that the caller armed are protected.

use crate::caps::{self, Caps};
use crate::track::{Taken, Written};
use crate::{Addr, PAGE, Span, map, raw, segv};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use rustix::io::Errno;

/// Bytes that become writable at a write, if they are armed.
pub const AROUND: usize = 64 << 10;

const FREE: u8 = 0;
const ARMED: u8 = 1;
const WRITTEN: u8 = 2;

static START: AtomicUsize = AtomicUsize::new(0);
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// The state of the page at [`START`], and of those behind it.
static STATES: AtomicPtr<AtomicU8> = AtomicPtr::new(core::ptr::null_mut());

/// Finds writes to armed pages in `span` from now on. Later calls only report whether that still holds.
///
/// # Errors
/// `NOSYS` if it is masked, `NOMEM` without address space for the table, those of [`segv::open`].
pub fn open(span: Span) -> Result<(), Errno> {
    if !caps::has(Caps::PROTECT) {
        return Err(Errno::NOSYS);
    }
    if STATES.load(Ordering::Acquire).is_null() {
        let pages = span.page_count().get();
        let table = map::reserve_writable(pages)?;
        START.store(span.start.get(), Ordering::Relaxed);
        PAGES.store(pages, Ordering::Relaxed);
        STATES.store(table.start.ptr(), Ordering::Release);
    }
    segv::open(on_fault)
}

/// Unblocks the signal for the calling thread: a fault with the signal blocked would end the process.
pub fn let_through() {
    // SAFETY: the set is local and lives across the calls, which only change this thread's signal mask.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigaddset(&raw mut set, libc::SIGSEGV);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, core::ptr::null_mut());
    }
}

/// The state of the page that `address` lies in, if it is in the span.
fn state(address: Addr) -> Option<&'static AtomicU8> {
    let states = STATES.load(Ordering::Acquire);
    let page = address.since(Addr::new(START.load(Ordering::Relaxed))) / PAGE;
    // SAFETY: the table, which is never unmapped, has a byte for each page of the span.
    (!states.is_null() && page < PAGES.load(Ordering::Relaxed)).then(|| unsafe { &*states.add(page) })
}

fn is_in(address: Addr, wanted: u8) -> bool {
    state(address).is_some_and(|state| state.load(Ordering::Acquire) == wanted)
}

fn set(span: Span, to: u8) {
    span.pages().filter_map(state).for_each(|state| state.store(to, Ordering::Release));
}

fn protect(span: Span, writable: bool) -> Result<(), Errno> {
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    let args = [span.start.get(), span.bytes, protection as usize, 0, 0, 0];
    // SAFETY: callers pass memory of the user that armed it; contents stay.
    unsafe { raw::syscall(libc::SYS_mprotect, args) }.map(drop)
}

/// Makes the pages of `part`, private writable memory in the guarded span, read-only until written to.
///
/// # Errors
/// The kernel's errno; nothing there is armed then. `NOMEM` if there are too many map entries.
pub fn arm(part: Span) -> Result<(), Errno> {
    set(part, ARMED);
    protect(part, false).inspect_err(|_| {
        // Some pages may be protected already. To undo that takes no further map entry.
        let _ = protect(part, true);
        set(part, FREE);
    })
}

/// Counts the pages of `part`, which are not armed, as written.
pub fn note(part: Span) {
    set(part, WRITTEN);
}

/// Makes the pages of `part` writable. They are not guarded any more.
pub fn release(part: Span) {
    // Armed pages are mapped, and to make them writable takes no further map entry.
    let _ = protect(part, true);
    set(part, FREE);
}

/// Finds written pages in `part`, as many ranges as `out` has room for, and if `again` arms those found.
///
/// # Errors
/// The kernel's errno: some pages stay writable without being noted.
pub fn take(part: Span, again: bool, out: &mut [Written]) -> Result<Taken, Errno> {
    let (mut ranges, mut at, end) = (0, part.start, part.end());
    while at < end {
        if !is_in(at, WRITTEN) {
            at += PAGE;
            continue;
        }
        if ranges == out.len() {
            return Ok(Taken { ranges, end: at });
        }
        let first = at;
        while at < end && is_in(at, WRITTEN) {
            at += PAGE;
        }
        out[ranges] = Written::new(first, at);
        ranges += 1;
        if again {
            arm(Span::between(first, at))?;
        }
    }
    Ok(Taken { ranges, end })
}

/// The access's error code: word 19 of the general registers, which begin at byte 40 of the context.
const ERROR_AT: usize = 40 + 19 * size_of::<u64>();
const WRITE: u64 = 2;
/// `si_code` of an access that the protection forbids.
const SEGV_ACCERR: c_int = 2;

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes both, for this signal.
    let (code, address, error) = unsafe {
        let error = context.cast::<u8>().add(ERROR_AT).cast::<u64>().read();
        ((*info).si_code, Addr::of((*info).si_addr()), error)
    };
    let is_write = code == SEGV_ACCERR && error & WRITE != 0;
    if !(is_write && resolve(address.round_down(PAGE))) {
        segv::pass_on(signal, info, context);
    }
}

/// Makes `page` writable, if it was armed; whether it was.
fn resolve(page: Addr) -> bool {
    if is_in(page, WRITTEN) {
        // Another thread has just made it writable.
        return true;
    }
    if !is_in(page, ARMED) {
        // It was released since the fault. Then it can be written to.
        return state(page).is_some() && map::populate(Span::new(page, PAGE)).is_ok();
    }
    let mut armed = armed_around(page, Span::unit_of(page, AROUND));
    if protect(armed, true).is_err() {
        // A hole takes map entries; all of it takes none.
        armed = armed_around(page, Span::between(Addr::NULL, Addr::MAX));
        if protect(armed, true).is_err() {
            return false;
        }
    }
    set(armed, WRITTEN);
    true
}

/// The armed pages around `page`, within `most`.
fn armed_around(page: Addr, most: Span) -> Span {
    let (mut start, mut end) = (page, page + PAGE);
    while start > most.start && is_in(start - PAGE, ARMED) {
        start = start - PAGE;
    }
    while end < most.end() && is_in(end, ARMED) {
        end += PAGE;
    }
    Span::between(start, end)
}
