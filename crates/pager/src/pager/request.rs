//! Passes the program's requests, one at a time, to the evicting thread, which alone has the store open.

use super::{A_WHILE_NS, Pager};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::io::Errno;
use vellum_sys::credentials::Change;
use vellum_sys::{Lock, thread};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// To map the store where pages from the first to before the second lie.
    Open(u32, u32),
    /// To have pages from the first to before the second read as zero, and drop them from memory.
    Zero(u32, u32),
    /// To make the call that the program has made, and have the gate make it.
    Follow(Change),
    Stop,
}

/// The one place where a request and its answer lie.
///
/// The caller holds `callers`, writes the request and rings. The evicting thread answers while `answered` is
/// not `bell`. One of the two owns the cell at any time.
pub(crate) struct Post {
    pub(crate) callers: Lock,
    pub(crate) bell: AtomicU32,
    answered: AtomicU32,
    cell: UnsafeCell<(Request, Result<(), Errno>)>,
}

// SAFETY: the cell is reached by one thread at a time, as the type says.
unsafe impl Sync for Post {}

impl Post {
    pub(crate) const fn new() -> Post {
        Post {
            callers: Lock::new(),
            bell: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            cell: UnsafeCell::new((Request::Stop, Ok(()))),
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.bell.load(Ordering::Acquire) != self.answered.load(Ordering::Relaxed)
    }

    /// For the evicting thread: answers the request that waits.
    pub(crate) fn answer(&self, serve: impl FnOnce(Request) -> Result<(), Errno>) {
        let seen = self.bell.load(Ordering::Acquire);
        let cell = self.cell.get();
        // SAFETY: the request was written before the bell rang, and who asks waits for the answer.
        let request = unsafe { (*cell).0 };
        let result = serve(request);
        // SAFETY: read only after `answered` has changed.
        unsafe { (*cell).1 = result };
        self.answered.store(seen, Ordering::Release);
        thread::wake_all(&self.answered);
    }
}

impl Pager {
    /// Makes a request and waits for its answer. With signals held off: a handler would wait for this call.
    pub(crate) fn ask(&self, request: Request) -> Result<(), Errno> {
        self.post.callers.lock();
        let cell = self.post.cell.get();
        // SAFETY: `callers` is held, and the last request was answered.
        unsafe { (*cell).0 = request };
        let asked = self.post.bell.fetch_add(1, Ordering::Release) + 1;
        thread::wake_all(&self.post.bell);
        loop {
            match self.post.answered.load(Ordering::Acquire) {
                answered if answered == asked => break,
                seen => thread::wait(&self.post.answered, seen, A_WHILE_NS),
            }
        }
        // SAFETY: answered, and `callers` is still held.
        let result = unsafe { (*cell).1 };
        self.post.callers.unlock();
        result
    }
}
