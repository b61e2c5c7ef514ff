//! Tests of finding writes by page protection, and of SIGSEGV for other reasons. Each case runs in a separate
//! process, because a process sets the handler once.

use crate::{child, exited};
use std::mem::MaybeUninit;
use vellum_sys::guard::{self, AROUND};
use vellum_sys::track::Written;
use vellum_sys::{Addr, PAGE, Span, map};

const PAGES: usize = 64;

fn killed(status: i32) -> Option<i32> {
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// Writable, guarded memory of this many pages, aligned to [`AROUND`].
fn memory() -> Span {
    let all = map::reserve_writable(PAGES * PAGE + AROUND).expect("memory");
    let [span, _] = all.whole(AROUND).split_at(PAGES * PAGE);
    guard::open(span).expect("address space for the table");
    span
}

/// The first `pages` pages.
fn first(span: Span, pages: usize) -> Span {
    span.split_at(pages * PAGE)[0]
}

fn write(address: Addr) {
    // SAFETY: memory of this test's own, or a fault that is meant.
    unsafe { address.ptr::<u8>().write_volatile(1) };
}

/// The written pages, by their numbers.
fn taken(span: Span, again: bool) -> Vec<(usize, usize)> {
    let mut found = [Written::default(); PAGES];
    let taken = guard::take(span, again, &mut found).expect("armed memory");
    assert_eq!(taken.end, span.end());
    let page = |address| (address - span.start) / PAGE;
    found[..taken.ranges].iter().map(|range| (page(range.start), page(range.end))).collect()
}

#[test]
fn writes_are_seen_and_nothing_else() {
    let status = child(|| {
        let span = memory();
        let start = span.start;
        let around = AROUND / PAGE;
        guard::arm(first(span, 2 * around)).expect("mapped memory");
        assert_eq!(taken(span, true), []);
        // SAFETY: armed memory may be read.
        assert_eq!(unsafe { (start + PAGE).ptr::<u8>().read_volatile() }, 0);
        write(start + PAGE);
        write(start + 40 * PAGE);
        assert_eq!(taken(span, false), [(0, around)], "what is not armed is not seen");
        assert_eq!(taken(span, true), [(0, around)]);
        assert_eq!(taken(span, true), []);
        write(start + (around + 3) * PAGE);
        assert_eq!(taken(span, false), [(around, 2 * around)]);
        guard::note(Span::new(start + 40 * PAGE, PAGE));
        assert_eq!(taken(span, false), [(around, 2 * around), (40, 41)]);
        // What the kernel is to write is refused, and can be made once the page is writable.
        let mut pipe = [0; 2];
        // SAFETY: the array has room for both ends; the memory is this test's own.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            assert_eq!(libc::write(pipe[1], c"x".as_ptr().cast(), 1), 1);
            assert_eq!(libc::read(pipe[0], start.ptr(), 1), -1);
            guard::release(span);
            assert_eq!(libc::read(pipe[0], start.ptr(), 1), 1);
        }
        assert_eq!(taken(span, false), []);
        0
    });
    assert_eq!(exited(status), Some(0), "status {status:#x}");
}

#[test]
fn threads_that_write_at_the_same_time_all_go_on() {
    let status = child(|| {
        let span = memory();
        for _ in 0..200 {
            guard::arm(span).expect("mapped memory");
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || span.pages().for_each(|page| write(page + thread)));
                }
            });
            assert_eq!(taken(span, false), [(0, PAGES)]);
        }
        0
    });
    assert_eq!(exited(status), Some(0), "status {status:#x}");
}

extern "C" fn ends(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passed it.
    let address = unsafe { (*info).si_addr().addr() };
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(if address == PAGE { 42 } else { 43 }) };
}

/// Has `function` handle the signal, by `flags`.
fn handle(function: usize, flags: i32) {
    // SAFETY: a zeroed action is a valid one; the function is one of this file.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = function;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()), 0);
    }
}

#[test]
fn other_faults_go_where_they_went() {
    let by_handler = child(|| {
        handle(ends as *const () as usize, libc::SA_SIGINFO);
        let span = memory();
        guard::arm(first(span, 1)).expect("mapped memory");
        write(span.start);
        write(Addr::new(PAGE));
        0
    });
    assert_eq!(exited(by_handler), Some(42), "status {by_handler:#x}");
    // Memory in the span that somebody else has made read-only.
    let in_span = child(|| {
        handle(ends as *const () as usize, libc::SA_SIGINFO);
        let start = memory().start;
        // SAFETY: the test's own memory.
        assert_eq!(unsafe { libc::mprotect(start.ptr(), PAGE, libc::PROT_READ) }, 0);
        write(start);
        0
    });
    assert_eq!(exited(in_span), Some(43), "status {in_span:#x}");
    let by_default = child(|| {
        handle(libc::SIG_DFL, 0);
        memory();
        write(Addr::new(PAGE));
        0
    });
    assert_eq!(killed(by_default), Some(libc::SIGSEGV), "status {by_default:#x}");
    let sent = child(|| {
        handle(libc::SIG_DFL, 0);
        memory();
        // SAFETY: raise takes no pointers; this child is to end by the signal or to ignore it.
        unsafe { libc::raise(libc::SIGSEGV) };
        0
    });
    assert_eq!(killed(sent), Some(libc::SIGSEGV), "status {sent:#x}");
    let ignored = child(|| {
        handle(libc::SIG_IGN, 0);
        memory();
        // SAFETY: raise takes no pointers; this child is to end by the signal or to ignore it.
        unsafe { libc::raise(libc::SIGSEGV) };
        7
    });
    assert_eq!(exited(ignored), Some(7), "status {ignored:#x}");
}

#[test]
fn a_handler_set_later_has_the_last_word() {
    let status = child(|| {
        let span = memory();
        handle(ends as *const () as usize, libc::SA_SIGINFO);
        match guard::open(span) {
            Err(errno) if errno.raw_os_error() == libc::EBUSY => 0,
            _ => 1,
        }
    });
    assert_eq!(exited(status), Some(0), "status {status:#x}");
}
