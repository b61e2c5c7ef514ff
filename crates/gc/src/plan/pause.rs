//! One time for which the program did not run, the account of all of them, and the program's hook for them.

use crate::heap::Heap;
use crate::hook::Hook;
use vellum_sys::clock;

/// The function that is called after a pause: `vel_gc_pause_fn` of the header.
pub type PauseFn = unsafe extern "C" fn(kind: i32, start_ns: u64, end_ns: u64);

/// The kinds of pauses, by their numbers in `vellum_measure.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Kind {
    /// A minor collection.
    Minor = 0,
    /// A whole collection, or a slice driven by allocation.
    Major = 1,
    /// A slice in idle time.
    Idle = 2,
}

static HOOK: Hook<PauseFn> = Hook::none();

/// Sets the function that is called after each pause; returns the previous one.
pub fn on_pause(hook: Option<PauseFn>) -> Option<PauseFn> {
    HOOK.set(hook)
}

#[derive(Debug)]
pub(crate) struct Pause {
    wall_ns: u64,
    cpu_ns: u64,
}

impl Pause {
    pub(crate) fn begin() -> Pause {
        Pause { wall_ns: clock::now_ns(), cpu_ns: clock::thread_cpu_ns() }
    }

    /// Accounts for the pause; returns the CPU time it took, in nanoseconds.
    pub(crate) fn end(self, heap: &mut Heap) -> u64 {
        let kind = if heap.incremental.is_idle { Kind::Idle } else { Kind::Major };
        self.end_as(heap, kind)
    }

    /// The same, for a pause of the given kind.
    pub(crate) fn end_as(self, heap: &mut Heap, kind: Kind) -> u64 {
        let stats = &mut heap.stats;
        let wall_ns = clock::now_ns() - self.wall_ns;
        let cpu_ns = clock::thread_cpu_ns() - self.cpu_ns;
        stats.pause_ns_last = wall_ns;
        stats.pause_ns_longest = stats.pause_ns_longest.max(wall_ns);
        stats.pause_ns_total += wall_ns;
        stats.pauses += 1;
        stats.pause_cpu_ns_longest = stats.pause_cpu_ns_longest.max(cpu_ns);
        stats.pause_cpu_ns_total += cpu_ns;
        stats.pause_cpu_ns_last = cpu_ns;
        heap.publish();
        if let Some(hook) = HOOK.get() {
            // SAFETY: the program vouched that it may be called when it set it.
            unsafe { hook(kind as i32, self.wall_ns, self.wall_ns + wall_ns) };
        }
        cpu_ns
    }
}
