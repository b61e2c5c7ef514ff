//! Measures and counts the collector's pauses of the program, and reports them to the program's hook.

use crate::heap::Heap;
use crate::process::hooks::PAUSE;
use vellum_sys::clock;

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
    pub(crate) fn end(self, heap: &mut Heap, kind: Kind) -> u64 {
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
        if let Some(hook) = PAUSE.get() {
            // SAFETY: the program vouched that it may be called when it set it.
            unsafe { hook(kind as i32, self.wall_ns, self.wall_ns + wall_ns) };
        }
        cpu_ns
    }
}
