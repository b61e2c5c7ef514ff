//! Writes found out by page protection, and what happens to every other reason for the same signal. Each case
//! is a process of its own: a handler is set once.

use crate::{child, exited};
use std::mem::MaybeUninit;
use vellum_sys::guard::{self, AROUND};
use vellum_sys::track::Written;
use vellum_sys::{PAGE, map};

const PAGES: usize = 64;

fn killed(status: i32) -> Option<i32> {
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// Writable memory of this many pages, aligned to what becomes writable at once, which the guard knows of.
fn memory() -> usize {
    let start = map::reserve_readable(PAGES * PAGE + AROUND).expect("address space").next_multiple_of(AROUND);
    // SAFETY: reserved a moment ago.
    unsafe { map::make_writable(start, PAGES * PAGE) }.expect("memory");
    guard::open(start, PAGES * PAGE).expect("address space for the table");
    start
}

fn write(address: usize) {
    // SAFETY: memory of this test's own, or a fault that is meant.
    unsafe { (address as *mut u8).write_volatile(1) };
}

/// The written pages, by their numbers.
fn taken(start: usize, again: bool) -> Vec<(usize, usize)> {
    let mut found = [Written::default(); PAGES];
    let (count, end) = guard::take(start, start + PAGES * PAGE, again, &mut found).expect("armed memory");
    assert_eq!(end, start + PAGES * PAGE);
    found[..count].iter().map(|range| ((range.start - start) / PAGE, (range.end - start) / PAGE)).collect()
}

#[test]
fn writes_are_seen_and_nothing_else() {
    let status = child(|| {
        let start = memory();
        let around = AROUND / PAGE;
        guard::arm(start, start + 2 * around * PAGE).expect("mapped memory");
        assert_eq!(taken(start, true), []);
        // SAFETY: armed memory may be read.
        assert_eq!(unsafe { ((start + PAGE) as *const u8).read_volatile() }, 0);
        write(start + PAGE);
        write(start + 40 * PAGE);
        assert_eq!(taken(start, false), [(0, around)], "what is not armed is not seen");
        assert_eq!(taken(start, true), [(0, around)]);
        assert_eq!(taken(start, true), []);
        write(start + (around + 3) * PAGE);
        assert_eq!(taken(start, false), [(around, 2 * around)]);
        guard::note(start + 40 * PAGE, start + 41 * PAGE);
        assert_eq!(taken(start, false), [(around, 2 * around), (40, 41)]);
        // What the kernel is to write is refused, and can be made once the page is writable.
        let mut pipe = [0; 2];
        // SAFETY: the array has room for both ends; the memory is this test's own.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            assert_eq!(libc::write(pipe[1], c"x".as_ptr().cast(), 1), 1);
            assert_eq!(libc::read(pipe[0], start as *mut _, 1), -1);
            guard::release(start, start + PAGES * PAGE);
            assert_eq!(libc::read(pipe[0], start as *mut _, 1), 1);
        }
        assert_eq!(taken(start, false), []);
        0
    });
    assert_eq!(exited(status), Some(0), "status {status:#x}");
}

#[test]
fn threads_that_write_at_the_same_time_all_go_on() {
    let status = child(|| {
        let start = memory();
        for _ in 0..200 {
            guard::arm(start, start + PAGES * PAGE).expect("mapped memory");
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || (0..PAGES).for_each(|page| write(start + page * PAGE + thread)));
                }
            });
            assert_eq!(taken(start, false), [(0, PAGES)]);
        }
        0
    });
    assert_eq!(exited(status), Some(0), "status {status:#x}");
}

extern "C" fn ends(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passed it.
    let address = unsafe { (*info).si_addr() as usize };
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
        let start = memory();
        guard::arm(start, start + PAGE).expect("mapped memory");
        write(start);
        write(PAGE);
        0
    });
    assert_eq!(exited(by_handler), Some(42), "status {by_handler:#x}");
    // Memory in the span that somebody else has made read-only.
    let in_span = child(|| {
        handle(ends as *const () as usize, libc::SA_SIGINFO);
        let start = memory();
        // SAFETY: the test's own memory.
        assert_eq!(unsafe { libc::mprotect(start as *mut _, PAGE, libc::PROT_READ) }, 0);
        write(start);
        0
    });
    assert_eq!(exited(in_span), Some(43), "status {in_span:#x}");
    let by_default = child(|| {
        handle(libc::SIG_DFL, 0);
        memory();
        write(PAGE);
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
        let start = memory();
        handle(ends as *const () as usize, libc::SA_SIGINFO);
        match guard::open(start, PAGES * PAGE) {
            Err(errno) if errno.raw_os_error() == libc::EBUSY => 0,
            _ => 1,
        }
    });
    assert_eq!(exited(status), Some(0), "status {status:#x}");
}
