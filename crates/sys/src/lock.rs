//! A four-byte mutex for statics, which works on threads that the C library did not start and can be reset in
//! a forked child.
//!
//! `std::sync::Mutex` has neither property: its poisoning reads a thread-local, and a child cannot reset a
//! lock whose holder does not exist there. The lock has three states (Drepper, *Futexes are tricky*, mutex
//! 2): 0 free, 1 held, 2 held with threads waiting.

use crate::thread::Patience;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::thread::futex;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
/// Looks at a held lock before sleeping: about the length of the longest critical section that makes no call.
const SPINS: u32 = 100;

/// A raw lock; [`Guarded`] owns a value, too.
#[derive(Debug)]
pub struct Lock(AtomicU32);

impl Lock {
    /// A free lock.
    pub const fn new() -> Lock {
        Lock(AtomicU32::new(FREE))
    }

    /// Takes the lock, waiting for it.
    #[inline]
    pub fn lock(&self) {
        if self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slow();
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, unless patience ends before it is free.
    pub fn try_lock_for(&self, patience: &mut Patience) -> bool {
        loop {
            if self.try_lock() {
                return true;
            }
            if !patience.wait() {
                return false;
            }
        }
    }

    #[cold]
    fn lock_slow(&self) {
        for _ in 0..SPINS {
            if self.0.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return;
            }
            core::hint::spin_loop();
        }
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            // A spurious or refused wait only costs another round.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, CONTENDED, None);
        }
    }

    /// Gives the lock back. Only its holder may call this.
    #[inline]
    pub fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            crate::thread::wake_some(&self.0, 1);
        }
    }

    /// Makes the lock free whatever it was: for a forked child, where no other thread exists.
    pub fn reset_after_fork(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

impl Default for Lock {
    fn default() -> Self {
        Lock::new()
    }
}

/// A value that only the lock's holder reaches.
#[derive(Debug)]
pub struct Guarded<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is only reached through `Held`, which exists for one thread at a time.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// Guards `value`.
    pub const fn new(value: T) -> Guarded<T> {
        Guarded { lock: Lock::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock, waiting for it.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        self.lock.lock();
        Held { guarded: self }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        self.lock.try_lock().then(|| Held { guarded: self })
    }

    /// The value, for a holder of the lock without a [`Held`]: across a fork.
    ///
    /// # Safety
    /// The calling thread, or its original before a fork, holds the lock, without another reference.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn assume_held(&self) -> &mut T {
        // SAFETY: the lock is held, and there is no other reference to the value (`# Safety`).
        unsafe { &mut *self.value.get() }
    }

    /// The lock alone, for holding it across a fork.
    pub fn raw(&self) -> &Lock {
        &self.lock
    }
}

/// Possession of a [`Guarded`] value; dropping it gives the lock back.
#[derive(Debug)]
pub struct Held<'a, T> {
    guarded: &'a Guarded<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held for as long as `self` lives.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held for as long as `self` lives, and `self` is borrowed mutably.
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.guarded.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_exactly_under_contention() {
        static COUNT: Guarded<u64> = Guarded::new(0);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..10_000 {
                        *COUNT.lock() += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a counting thread ends");
        }
        assert_eq!(*COUNT.lock(), 40_000);
    }

    #[test]
    fn a_lock_that_is_held_is_not_taken() {
        let guarded = Guarded::new(0);
        let held = guarded.lock();
        assert!(guarded.try_lock().is_none());
        // The refusal has not given back what it never had.
        assert!(guarded.try_lock().is_none());
        drop(held);
        *guarded.try_lock().expect("nobody holds it") += 1;
        assert_eq!(*guarded.lock(), 1);
    }

    #[test]
    fn reset_frees_a_held_lock() {
        let lock = Lock::new();
        lock.lock();
        assert!(!lock.try_lock());
        lock.reset_after_fork();
        assert!(lock.try_lock());
    }
}
