//! Tests of the program's own SIGSEGV action while Vellum handles the signal. Each case runs in a separate
//! process, because a process sets the handler once. `handlers.c` of `libgc` tests the same in C.

use crate::{child, exited};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vellum_sys::{guard, map, segv};

const PAGES: usize = 16;

/// Has the guard's handler set.
fn open() {
    let span = map::reserve_readable(PAGES * vellum_sys::PAGE).expect("address space");
    guard::open(span).expect("address space for the table");
}

fn action(function: usize, flags: i32, blocked: i32) -> libc::sigaction {
    // SAFETY: a zeroed action is a valid one.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = function;
    action.sa_flags = flags;
    // SAFETY: a set that lives here.
    unsafe { libc::sigaddset(&raw mut action.sa_mask, blocked) };
    action
}

/// Sets `action` as the program's calls do.
fn set(action: &libc::sigaction) {
    // SAFETY: the functions are of this file.
    assert_eq!(unsafe { segv::sigaction(action, null_mut()) }, 0);
}

fn asked() -> libc::sigaction {
    let mut told = action(0, 0, libc::SIGUSR1);
    // SAFETY: nothing is set, and the answer lives here.
    assert_eq!(unsafe { segv::sigaction(null(), &raw mut told) }, 0);
    told
}

static CALLED: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Ends the process unless exactly these of the two signals are blocked.
fn is_blocked(first: bool, second: bool) {
    // SAFETY: nothing is set; the answer lives here.
    unsafe {
        let mut now = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::pthread_sigmask(libc::SIG_SETMASK, null(), &raw mut now);
        let is = [libc::SIGUSR1, libc::SIGUSR2].map(|signal| libc::sigismember(&raw const now, signal) == 1);
        if is != [first, second] {
            libc::_exit(43);
        }
    }
}

extern "C" fn with_info(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    is_blocked(true, false);
    // SAFETY: the kernel passed it.
    if unsafe { (*info).si_signo } != signal {
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(44) };
    }
    CALLED[0].fetch_add(1, Ordering::Relaxed);
}

extern "C" fn without(_signal: i32) {
    is_blocked(false, true);
    CALLED[1].fetch_add(1, Ordering::Relaxed);
}

#[test]
fn an_action_is_one_whole_while_it_is_replaced() {
    const SIGNALS: usize = 20_000;
    let status = child(|| {
        let actions = [
            action(with_info as *const () as usize, libc::SA_SIGINFO, libc::SIGUSR1),
            action(without as *const () as usize, libc::SA_NODEFER, libc::SIGUSR2),
        ];
        open();
        set(&actions[0]);
        let ended = AtomicBool::new(false);
        let mut replaced = 0;
        std::thread::scope(|scope| {
            let raisers = [(); 2].map(|()| {
                scope.spawn(|| {
                    let mut raised = 0;
                    while raised < SIGNALS || CALLED.iter().any(|count| count.load(Ordering::Relaxed) == 0) {
                        // SAFETY: a handler is set.
                        unsafe { libc::raise(libc::SIGSEGV) };
                        raised += 1;
                    }
                    raised
                })
            });
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    set(&actions[replaced % 2]);
                    replaced += 1;
                }
            });
            let raised = raisers.map(|raiser| raiser.join().expect("a raising thread ends"));
            ended.store(true, Ordering::Relaxed);
            let called: usize = CALLED.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            assert_eq!(called, raised.iter().sum());
        });
        0
    });
    assert_eq!(exited(status), Some(0));
}

#[test]
fn before_there_is_a_handler_everything_is_the_c_librarys() {
    let status = child(|| {
        let ours = action(without as *const () as usize, libc::SA_RESTART, libc::SIGUSR2);
        set(&ours);
        assert_eq!(asked().sa_sigaction, ours.sa_sigaction);
        assert_eq!(segv::unless_on(|| 5), Some(5));
        open();
        assert_eq!(segv::unless_on(|| 5), None);
        let told = asked();
        assert_eq!(told.sa_sigaction, ours.sa_sigaction);
        assert_ne!(told.sa_flags & libc::SA_RESTART, 0);
        0
    });
    assert_eq!(exited(status), Some(0));
}

#[test]
fn who_sets_a_handler_past_it_has_the_last_word() {
    let status = child(|| {
        open();
        let theirs = action(without as *const () as usize, 0, libc::SIGUSR2);
        // SAFETY: the function is of this file.
        assert_eq!(unsafe { libc::sigaction(libc::SIGSEGV, &raw const theirs, null_mut()) }, 0);
        assert_eq!(asked().sa_sigaction, theirs.sa_sigaction);
        let ours = action(with_info as *const () as usize, libc::SA_SIGINFO, libc::SIGUSR1);
        set(&ours);
        // SAFETY: zeros are a valid action; nothing is set.
        let now = unsafe {
            let mut now = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            libc::sigaction(libc::SIGSEGV, null(), &raw mut now);
            now
        };
        assert_eq!(now.sa_sigaction, ours.sa_sigaction, "as if there were no other");
        0
    });
    assert_eq!(exited(status), Some(0));
}
