//! One time for which the program did not run, and the account of all of them.

use crate::stats::Stats;
use vellum_sys::clock;

/// A pause that is on.
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
    pub(crate) fn end(self, stats: &mut Stats) -> u64 {
        let wall_ns = clock::now_ns() - self.wall_ns;
        let cpu_ns = clock::thread_cpu_ns() - self.cpu_ns;
        stats.pause_ns_last = wall_ns;
        stats.pause_ns_longest = stats.pause_ns_longest.max(wall_ns);
        stats.pause_ns_total += wall_ns;
        stats.pauses += 1;
        stats.pause_cpu_ns_longest = stats.pause_cpu_ns_longest.max(cpu_ns);
        stats.pause_cpu_ns_total += cpu_ns;
        cpu_ns
    }
}
