//! The square-root sizing policy, `M = L + sqrt(L g / (c s))` (Kirisame, Shenoy and Panchekha 2022,
//! MemBalancer).
//!
//! M is the heap's size, L the live bytes, and c the price of memory. The rate of allocation g and the speed
//! of collection s are smoothed, in bytes per nanosecond of CPU time. Heaps with the same c divide a shared
//! memory in the best way. Until the rates are measured, a program that does little but allocate is assumed.
//!
//! Departures: c is per MiB, and no value is recommended (the authors' own unit depends on their runtime).
//! The regions of a heap are sized as in `knee`.

use super::knee::share;
use crate::sizing::policy::{Major, Policy, Seen, Shape, Sizes};

/// c, in thousandths per MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SquareRoot {
    pub(crate) c: u32,
}

impl SquareRoot {
    /// Bytes beside the live ones.
    fn extra(&self, seen: &Seen) -> usize {
        let (trace_ns, allocate_ns) = (seen.rates.trace_ns_a_mib(), seen.rates.allocate_ns_a_mib());
        let square = (seen.live as u128) * (1 << 20) * 1000 / u128::from(self.c.max(1))
            * u128::from(trace_ns)
            / u128::from(allocate_ns.max(1));
        usize::try_from(square.isqrt()).unwrap_or(usize::MAX)
    }
}

impl Policy for SquareRoot {
    fn major(&self, seen: &Seen) -> Sizes {
        let extra = self.extra(seen);
        match seen.shape {
            Shape::InPlace { .. } => Sizes { free: extra, old_max: usize::MAX },
            Shape::Regions { .. } => share(seen.live, seen.old, extra),
        }
    }

    fn minor(&self, seen: &Seen, last: &Major) -> Sizes {
        share(last.live, seen.old, self.extra(&Seen { live: last.live, ..*seen }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::rates::Rates;

    const MIB: usize = 1 << 20;

    fn seen(live: usize, shape: Shape) -> Seen {
        // 0.4 ns a byte traced and 1 ns a byte allocated.
        let mut rates = Rates::UNKNOWN;
        rates.learn(0, 1000 * MIB, 0, 1000 << 20);
        rates.learn(1000 * MIB, 0, 400 << 20, 0);
        Seen { rates, ..Seen::plain(live, live, shape) }
    }

    #[test]
    fn the_heap_grows_with_the_square_root_of_what_is_alive() {
        // sqrt(64 MiB * 0.4 / (0.025 / MiB)) = 32 MiB.
        let policy = SquareRoot { c: 25 };
        let free = |live: usize| policy.major(&seen(live * MIB, Shape::InPlace { copies: 0 })).free;
        let close = |a: usize, b: usize| a.abs_diff(b) < b / 1000;
        assert!(close(free(64), 32 * MIB), "{}", free(64));
        assert!(close(free(256), 64 * MIB) && close(free(16), 16 * MIB));
        let dear = SquareRoot { c: 100 };
        assert!(close(dear.major(&seen(64 * MIB, Shape::InPlace { copies: 0 })).free, 16 * MIB));
    }

    #[test]
    fn nothing_overflows() {
        let all = seen(usize::MAX >> 8, Shape::InPlace { copies: 0 });
        assert!(SquareRoot { c: 1 }.major(&all).free > 1 << 30);
    }
}
