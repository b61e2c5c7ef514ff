//! A memory fence that every running thread of the process executes (`membarrier`, Linux 4.14).
//!
//! A fast path then needs no fence. A thread that interferes with the path, which is rare, makes this call
//! for both threads.

use crate::caps::{self, Caps};
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::thread::{MembarrierCommand, membarrier};

static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Makes every running thread of the process execute a full memory fence; false where the kernel cannot.
pub fn fence_every_thread() -> bool {
    register() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Registers for fences, once, which is quick while the process has one thread. False where it cannot.
pub fn register() -> bool {
    if REGISTERED.load(Ordering::Relaxed) || !caps::has(Caps::MEMBARRIER) {
        return caps::has(Caps::MEMBARRIER);
    }
    let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited);
    if let Err(errno) = registered {
        caps::refuse(Caps::MEMBARRIER, errno);
    }
    REGISTERED.store(registered.is_ok(), Ordering::Relaxed);
    registered.is_ok()
}
