//! Who the pager's threads are: what the program is, also when it gives up its user, groups or rights.
//!
//! They cannot be ended and started again as other background threads are: memory would be gone meanwhile,
//! and a user may not be allowed as many threads as he has. So each makes the call that the program has made
//! ([`Change`]), as the C library has its own threads do. The program waits until all have. A thread that is
//! refused what the program was allowed had fewer rights than it, and has no more now.

use super::{A_WHILE_NS, Pager};
use crate::inner::Request;
use crate::store::Backing;
use core::sync::atomic::Ordering;
use vellum_sys::credentials::Change;
use vellum_sys::thread::{self, Undisturbed};

/// The fault-handling thread, the writing thread, and the first of those that read.
pub(crate) const ANSWERS: usize = 0;
pub(crate) const WRITES: usize = 1;
pub(crate) const READS: usize = 2;

impl<B: Backing + Send> Pager<B> {
    /// Has the pager's threads make the call that the calling thread has just made. What its arguments point
    /// to must not be paged.
    pub fn follow(&self, change: Change) {
        if !self.is_serving() || self.is_child() {
            return;
        }
        // A signal handler on top of this would wait for it.
        let _undisturbed = Undisturbed::new();
        self.callers.lock();
        let wanted = {
            let mut inner = self.enter();
            inner.change = change;
            self.changes.fetch_add(1, Ordering::Release) + 1
        };
        // Answered: the only refusal would be to reserve memory.
        let _ = self.call_alone(Request::Follow);
        for followed in &self.followed {
            loop {
                match followed.load(Ordering::Acquire) {
                    seen if seen == wanted => break,
                    seen => thread::wait(followed, seen, A_WHILE_NS),
                }
            }
        }
        self.callers.unlock();
    }

    /// For the fault-handling thread: follows, and has the others do.
    pub(crate) fn lead(&self, change: Change) {
        self.obey(ANSWERS, change);
        thread::wake(&self.work);
        thread::wake(&self.reads);
    }

    /// The number of the calling thread, which reads: which of its equals it is, it finds out by its id.
    pub(crate) fn own_number(&self) -> usize {
        let own = thread::own_id();
        let is_own = |tid: &core::sync::atomic::AtomicU32| tid.load(Ordering::Acquire) == own;
        self.threads.iter().skip(READS).position(is_own).map_or(READS, |index| READS + index)
    }

    /// Whether the thread of that number has a change to follow. With the lock held.
    pub(crate) fn is_behind(&self, index: usize) -> bool {
        self.followed[index].load(Ordering::Relaxed) != self.changes.load(Ordering::Acquire)
    }

    /// Follows `change`, the last.
    pub(crate) fn obey(&self, index: usize, change: Change) {
        // See the head of this file.
        let _ = change.apply();
        self.followed[index].store(self.changes.load(Ordering::Acquire), Ordering::Release);
        thread::wake_all(&self.followed[index]);
    }
}
