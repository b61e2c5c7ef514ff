//! The C library's locks in big blocks: `pthread_mutex_init` and its kin.
//!
//! A thread that waits for a lock hands the kernel its address, by a system call that the C library makes for
//! itself; where the kernel may not wait for a page, `EFAULT` ends the program. So the page that a lock is
//! made on stays in memory ([`paged::keep`]). Locks that no such function has made (a `std::mutex`,
//! `PTHREAD_MUTEX_INITIALIZER`) are not seen here: their page is there when a thread has just read the lock,
//! which is nearly always in time.

use crate::jump::functions;
use core::ffi::{c_int, c_uint, c_void};
use vellum_malloc::paged;

functions! {
    pthread_mutex_init(lock: *mut u8, how: *const c_void) -> c_int = c"pthread_mutex_init";
    pthread_rwlock_init(lock: *mut u8, how: *const c_void) -> c_int = c"pthread_rwlock_init";
    pthread_cond_init(lock: *mut u8, how: *const c_void) -> c_int = c"pthread_cond_init";
    pthread_barrier_init(lock: *mut u8, how: *const c_void, count: c_uint) -> c_int = c"pthread_barrier_init";
    sem_init(lock: *mut u8, shared: c_int, value: c_uint) -> c_int = c"sem_init";
}

/// No lock is longer (`pthread_rwlock_t`).
const LONGEST: usize = 56;

mod guarded {
    #![allow(clippy::missing_safety_doc, reason = "said of all of them above")]
    use super::*;

    macro_rules! keeps {
        ($($name:ident($($more:ident: $kind:ty),*);)*) => { $(
            pub(crate) unsafe extern "C" fn $name(lock: *mut u8, $($more: $kind),*) -> c_int {
                paged::keep(lock, LONGEST);
                // SAFETY: the program's own call.
                unsafe { plain::$name(lock, $($more),*) }
            }
        )* };
    }

    keeps! {
        pthread_mutex_init(how: *const c_void);
        pthread_rwlock_init(how: *const c_void);
        pthread_cond_init(how: *const c_void);
        pthread_barrier_init(how: *const c_void, count: c_uint);
        sem_init(shared: c_int, value: c_uint);
    }
}
