//! Which pages have been written to, by page protection: for kernels and privileges that do not track
//! ([`crate::track`]).
//!
//! ```text
//! open    ──▶ a byte for each page of a span of addresses, and a handler of SIGSEGV
//! arm     ──▶ pages are read-only                      a write faults: the handler makes the page and those
//! take    ──▶ which were written, and read-only again  around it writable, notes them; the write is retried
//! release ──▶ writable, and nobody's concern
//! ```
//!
//! It is coarser than tracking, and the program meets it:
//!
//! * a *system call* that is to write to an armed page fails with `EFAULT`, and no signal's frame can be put
//!   there;
//! * a write by a thread that has blocked SIGSEGV ends the process;
//! * each hole in armed memory costs two map entries. Holes are [`AROUND`] bytes where they can be; where the
//!   kernel has no more entries, all of the armed memory around goes at once.
//!
//! # Invariants
//! * Whatever else raises SIGSEGV goes to the program's own action ([`segv`]). A program that sets one past
//!   that has the last word: nothing is armed any more ([`open`]).
//! * The handler touches its table and the faulting range only, by system calls that are async-signal-safe.
//! * Pages that were not armed are never touched: what lies around may be anybody's.
//! * Pages are armed and taken while no other thread writes there or is in the handler: it lets no signal in,
//!   so that a thread that was stopped by one has left it. The handler runs on any number of threads at once.
//!   It may come late, when the page was released already.
//!
//! Source: Appel, Ellis and Li 1988; as in libgc. Departure: only the pages of its user.

use crate::caps::{self, Caps};
use crate::track::Written;
use crate::{PAGE, map, round_down, segv};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use rustix::io::Errno;

/// Bytes that become writable at a write, as far as they are armed.
pub const AROUND: usize = 64 << 10;

/// Not this module's.
const FREE: u8 = 0;
/// Read-only.
const ARMED: u8 = 1;
/// Written to since it was armed.
const WRITTEN: u8 = 2;

static BASE: AtomicUsize = AtomicUsize::new(0);
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// The state of the page at [`BASE`], and of those behind it.
static STATES: AtomicPtr<AtomicU8> = AtomicPtr::new(core::ptr::null_mut());

/// Has writes in the `bytes` bytes from `base` found out from now on, where pages are armed. Once; later
/// calls say whether that still holds.
///
/// # Errors
/// `NOSYS` if it is masked, `NOMEM` without address space for the table, those of [`segv::open`].
pub fn open(base: usize, bytes: usize) -> Result<(), Errno> {
    if !caps::has(Caps::PROTECT) {
        return Err(Errno::NOSYS);
    }
    if STATES.load(Ordering::Acquire).is_null() {
        let table = map::reserve_writable(bytes / PAGE)?;
        BASE.store(base, Ordering::Relaxed);
        PAGES.store(bytes / PAGE, Ordering::Relaxed);
        STATES.store(core::ptr::with_exposed_provenance_mut(table), Ordering::Release);
    }
    segv::open(on_fault)
}

/// Lets the calling thread receive the signal: a fault of one that has it blocked ends the process.
pub fn let_through() {
    // SAFETY: the set is local and lives across the calls, which only change this thread's signal mask.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigaddset(&raw mut set, libc::SIGSEGV);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, core::ptr::null_mut());
    }
}

/// The state of the page that `address` lies in, if it is in the span.
fn state(address: usize) -> Option<&'static AtomicU8> {
    let states = STATES.load(Ordering::Acquire);
    let page = address.wrapping_sub(BASE.load(Ordering::Relaxed)) / PAGE;
    // SAFETY: the table, which is never unmapped, has a byte for each page of the span.
    (!states.is_null() && page < PAGES.load(Ordering::Relaxed)).then(|| unsafe { &*states.add(page) })
}

fn is_in(address: usize, wanted: u8) -> bool {
    state(address).is_some_and(|state| state.load(Ordering::Acquire) == wanted)
}

fn set(start: usize, end: usize, to: u8) {
    for page in (start..end).step_by(PAGE) {
        if let Some(state) = state(page) {
            state.store(to, Ordering::Release);
        }
    }
}

fn protect(start: usize, end: usize, writable: bool) -> Result<(), Errno> {
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    let args = [start, end - start, protection as usize, 0, 0, 0];
    // SAFETY: callers pass memory of the user that armed it; contents stay.
    unsafe { crate::raw::syscall(libc::SYS_mprotect, args) }.map(drop)
}

/// Makes the pages from `start` up to `end`, which are private, anonymous, writable and in the span,
/// read-only until each is written to.
///
/// # Errors
/// The kernel's errno; nothing there is armed then. `NOMEM` if there are too many map entries.
pub fn arm(start: usize, end: usize) -> Result<(), Errno> {
    set(start, end, ARMED);
    protect(start, end, false).inspect_err(|_| {
        // It may have come a part of the way, and what it did can be undone without an entry more.
        let _ = protect(start, end, true);
        set(start, end, FREE);
    })
}

/// Counts the pages from `start` up to `end`, which are not armed, as written.
pub fn note(start: usize, end: usize) {
    set(start, end, WRITTEN);
}

/// Makes the pages from `start` up to `end` writable and forgets them.
pub fn release(start: usize, end: usize) {
    // What was armed is mapped, and to be as it was takes no entry more.
    let _ = protect(start, end, true);
    set(start, end, FREE);
}

/// Finds written pages from `start` up to `end`, as many ranges as `out` has room for, and if `again` arms
/// those found. Returns how many ranges, and up to where it looked.
///
/// # Errors
/// The kernel's errno: some pages stay writable without being noted.
pub fn take(start: usize, end: usize, again: bool, out: &mut [Written]) -> Result<(usize, usize), Errno> {
    let (mut count, mut at) = (0, start);
    while at < end {
        if !is_in(at, WRITTEN) {
            at += PAGE;
            continue;
        }
        if count == out.len() {
            return Ok((count, at));
        }
        let first = at;
        while at < end && is_in(at, WRITTEN) {
            at += PAGE;
        }
        out[count] = Written::new(first, at);
        count += 1;
        if again {
            arm(first, at)?;
        }
    }
    Ok((count, end))
}

/// Where the machine says what kind of access has faulted: word 19 of the general registers, which begin at
/// byte 40 of the context.
const ERROR_AT: usize = 40 + 19 * size_of::<u64>();
const WRITE: u64 = 2;
/// `si_code` of an access that the protection forbids.
const SEGV_ACCERR: c_int = 2;

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes both, for this signal.
    let (code, address, error) = unsafe {
        let error = context.cast::<u8>().add(ERROR_AT).cast::<u64>().read();
        ((*info).si_code, (*info).si_addr() as usize, error)
    };
    let is_write = code == SEGV_ACCERR && error & WRITE != 0;
    if !(is_write && resolve(round_down(address, PAGE))) {
        segv::pass_on(signal, info, context);
    }
}

/// Makes `page` writable, if it was armed; whether it was.
fn resolve(page: usize) -> bool {
    if is_in(page, WRITTEN) {
        // Another thread has just made it writable.
        return true;
    }
    if !is_in(page, ARMED) {
        // It was released since the fault. Then it can be written to.
        return state(page).is_some() && map::populate(page, PAGE).is_ok();
    }
    let window = round_down(page, AROUND);
    let (mut start, mut end) = armed_around(page, window, window + AROUND);
    if protect(start, end, true).is_err() {
        // A hole takes map entries; all of it takes none.
        (start, end) = armed_around(page, 0, usize::MAX);
        if protect(start, end, true).is_err() {
            return false;
        }
    }
    set(start, end, WRITTEN);
    true
}

/// The armed pages around `page`, from `low` up to `high` at most.
fn armed_around(page: usize, low: usize, high: usize) -> (usize, usize) {
    let (mut start, mut end) = (page, page + PAGE);
    while start > low && is_in(start - PAGE, ARMED) {
        start -= PAGE;
    }
    while end < high && is_in(end, ARMED) {
        end += PAGE;
    }
    (start, end)
}
