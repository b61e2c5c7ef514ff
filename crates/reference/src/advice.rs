//! Computes the memory limit to recommend for a job, and the cost of smaller limits.
//!
//! ```text
//! limit = pages of the program · (1 + RESERVE)  +  program text and libraries  +  kernel memory:
//!         (at most all that it held)               mapped by others as well       page tables, stacks
//!       + page cache for streams (data read and written by system calls)
//! ```
//!
//! - *Reserve.* The working-set curve assumes exact replacement, which keeps the pages used last. The kernel
//!   instead checks accessed bits in batches, and only when it needs pages. Programs that cycle through
//!   nearly all of their memory lose most. A limit that covers all held memory needs no reserve.
//! - *Program text and libraries* are charged to the cgroup that touched them first, maybe another job's.
//!   The limit always includes them.
//! - *Kernel memory*: page tables, stacks and other kernel memory charged to the cgroup.
//! - *Streams.* Data read and written by system calls goes through the page cache, which is charged as
//!   well. The kernel reclaims this cache first, but until then it displaces pages in use. A few MiB are
//!   enough.
//! - *Files read again.* The cache of files ([`crate::charged`]) counts if the job read at least twice as
//!   much as its files hold. The excess, read from the device at S (the cost of a fault) per page, must also
//!   cost more than the agreed slowdown.
//!
//! All held memory (the peak) is recommended in three cases: the job grows; there was only one cycle (sample
//! of the curve); a smaller limit would save less than an eighth ([`WORTH`]). Just below all held memory, a
//! kernel may find nothing to reclaim.
//!
//! The cost of a limit, as a part of the job's time, has three terms:
//!
//! 1. S for each fault of a page that left and comes back, by the curves of [`crate::whole`];
//! 2. faults of pages unused for longer than any window, the same for any limit below all held memory;
//! 3. writing out, once, the pages that do not fit.
//!
//! The uncertainty of the cost is twice the standard error of term 1 over the cycles.
//!
//! Source: docs/benchmarks.md, section advice, has the measurements; `vellum_workset` has the curve.

use crate::watcher::PAGE_BYTES;
use std::time::Duration;
use vellum_kernel::Bytes;
use vellum_workset::{CAP, History};

/// The pages that the kernel's replacement needs beyond exact replacement, as a part of all.
pub const RESERVE: f64 = 0.1;
/// A limit above this part of all is rounded up to all.
const WORTH: f64 = 7.0 / 8.0;
/// The kernel's own memory: one part in this many of what the job held …
const KERNEL_PART: u64 = 256;
/// … and this for each process.
const KERNEL_EACH: Bytes = Bytes(192 << 10);
/// Memory for streams …
const STREAMS: Bytes = Bytes(4 << 20);
/// … if that comes to as much.
const STREAMS_FROM: Bytes = Bytes(16 << 20);
/// The fewest cycles for a recommendation: one has no error.
pub const CYCLES_MIN: u64 = 2;
/// The limit is found to this many bytes.
const PRECISION: u64 = PAGE_BYTES;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) watched: Duration,
    /// The most it held, shared text included.
    pub(super) peak: Bytes,
    /// Program text and libraries that others have mapped too.
    pub(super) shared: Bytes,
    pub(super) processes: u64,
    /// Bytes read and written by calls.
    pub(super) transferred: Bytes,
    /// Bytes read by calls since the watch began.
    pub(super) read_since: Bytes,
    pub(super) files: Bytes,
    /// The kernel's memory that was seen.
    pub(super) kernel: Bytes,
}

/// The facts about a job by which a limit is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// All its time, in stretches.
    pub(super) stretches: &'a History,
    /// The cycles looked at.
    pub(super) cycles: &'a History,
    /// True if it still becomes larger.
    pub(super) growing: bool,
    /// The proved factor on the pages of the curve.
    pub(super) correction: f64,
    /// S and the part of it that is taking out, in nanoseconds.
    pub(super) delay_ns: f64,
    pub(super) out_ns: f64,
    /// Waiting under every limit that is not all, as a part of its time.
    pub(super) beyond: f64,
    pub(super) held: Held,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) part: f64,
    /// True below the pages of the smallest window, where `part` is a lower bound.
    pub(super) at_least: bool,
    /// The uncertainty of `part`; `None` with less than two cycles.
    pub(super) doubt: Option<f64>,
}

impl Known<'_> {
    pub(super) fn all(&self) -> Bytes {
        Bytes(self.held.peak.0 + self.kernel())
    }

    /// The smallest useful limit that costs at most `part` at the upper end of its uncertainty. At least the
    /// smallest window of each stretch fits in it.
    pub(super) fn least(&self, part: f64) -> Bytes {
        if !self.can_promise() {
            return self.all();
        }
        let exact = self.least_exactly(part, 1.0);
        if exact.0 as f64 > self.all().0 as f64 * WORTH { self.all() } else { exact }
    }

    /// True if less than all held memory can be recommended.
    pub(super) fn can_promise(&self) -> bool {
        !self.growing && self.cycles.samples() >= CYCLES_MIN
    }

    /// The limits that cost `part` at the lower and the upper end of its uncertainty. `None` if only all
    /// held memory is recommended.
    pub(super) fn interval(&self, part: f64) -> Option<[Bytes; 2]> {
        self.can_promise().then(|| [-1.0, 1.0].map(|doubts| self.least_exactly(part, doubts)))
    }

    /// `doubts`: the number of uncertainties that are added to the cost.
    fn least_exactly(&self, part: f64, doubts: f64) -> Bytes {
        let cost = |limit: u64| {
            let cost = self.cost(Bytes(limit));
            cost.part + doubts * cost.doubt.unwrap_or(0.0)
        };
        let smallest = self.stretches.curves().map(|(_, curve)| curve.first().pages).fold(0.0, f64::max);
        let mut high = self.all().0;
        let mut low = self.limit(smallest).0.min(high);
        if cost(low) <= part {
            return Bytes(low);
        }
        while high - low > PRECISION {
            let middle = low + (high - low) / 2;
            if cost(middle) <= part { high = middle } else { low = middle }
        }
        Bytes(high)
    }

    pub(super) fn cost(&self, limit: Bytes) -> Cost {
        if limit >= self.all() {
            return Cost { part: 0.0, at_least: false, doubt: None };
        }
        let room = limit.0.saturating_sub(self.kernel() + self.held.shared.0);
        let pages = room as f64 / PAGE_BYTES as f64 / self.for_a_page();
        let found = self.stretches.slowdown(pages, self.delay_ns);
        let doubt = self.cycles.slowdown_doubt(pages, self.delay_ns);
        let out = (self.private().0.saturating_sub(room)) as f64 / PAGE_BYTES as f64;
        let taken_out = out * self.out_ns / (self.held.watched.as_nanos() as f64).max(1.0);
        Cost { part: found.part + self.beyond + taken_out, at_least: found.at_least, doubt }
    }

    /// The limit that leaves room for `pages` pages of the program.
    pub(super) fn limit(&self, pages: f64) -> Bytes {
        let pages = (pages * self.for_a_page()).ceil() as u64 * PAGE_BYTES;
        Bytes(pages.min(self.private().0) + self.held.shared.0 + self.kernel())
    }

    /// Pages of memory for each page of the curve.
    fn for_a_page(&self) -> f64 {
        (1.0 + RESERVE) * self.correction
    }

    fn private(&self) -> Bytes {
        Bytes(self.held.peak.0.saturating_sub(self.held.shared.0))
    }

    fn kernel(&self) -> u64 {
        let streams = if self.held.transferred >= STREAMS_FROM { STREAMS.0 } else { 0 };
        let own =
            (self.held.peak.0 / KERNEL_PART + self.held.processes * KERNEL_EACH.0).max(self.held.kernel.0);
        own + streams.max(self.cache())
    }

    pub(super) fn cache(&self) -> u64 {
        let (files, read) = (self.held.files.0, self.held.read_since.0);
        let again = read.saturating_sub(files);
        let cost = again as f64 / PAGE_BYTES as f64 * self.delay_ns;
        let part = cost / (self.held.watched.as_nanos() as f64).max(1.0);
        if again >= files && part > CAP { files } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: f64 = 1e4;

    fn stretches(of: &[(f64, [f64; 4])]) -> History {
        let windows = vellum_workset::cycle::doubling_windows(1e8, 4);
        let mut history = History::new(windows, 1.0);
        // Halves of stretches: one alone is no ground.
        of.iter().for_each(|(length, pages)| {
            (0..2).for_each(|_| history.push(*length / 2.0, pages, &[]));
        });
        history
    }

    fn known(stretches: &History, peak: u64) -> Known<'_> {
        Known {
            stretches,
            cycles: stretches,
            growing: false,
            correction: 1.0,
            delay_ns: S,
            out_ns: 0.0,
            beyond: 0.0,
            held: Held {
                watched: Duration::from_secs(10),
                peak: Bytes(peak * PAGE_BYTES),
                shared: Bytes(100 * PAGE_BYTES),
                processes: 1,
                ..Held::default()
            },
        }
    }

    fn with<'a>(known: Known<'a>, held: Held) -> Known<'a> {
        Known { held, ..known }
    }

    fn pages(bytes: Bytes) -> u64 {
        bytes.0 / PAGE_BYTES
    }

    #[test]
    fn a_flat_curve_needs_its_pages_a_reserve_text_and_the_kernel() {
        let flat = stretches(&[(1e10, [10_000.0; 4])]);
        let known = known(&flat, 30_000);
        let kernel = 30_000 / KERNEL_PART + KERNEL_EACH.0 / PAGE_BYTES;
        let found = pages(known.least(0.02));
        assert!((11_100 + kernel..=11_101 + kernel).contains(&found), "{found}");
        // 1,000 pages fewer: 1,000 · 0.9 of them each 100 ms at 10 µs.
        let cost = known.cost(Bytes((11_100 + kernel - 1000) * PAGE_BYTES));
        assert!(cost.at_least && (cost.part - 0.091).abs() < 0.002, "{cost:?}");
    }

    #[test]
    fn no_more_than_all_it_held_is_ever_asked_for() {
        let flat = stretches(&[(1e10, [10_000.0; 4])]);
        let known = known(&flat, 12_000);
        assert_eq!(known.least(0.02), known.all());
        assert!(known.least_exactly(0.02, 0.0) < known.all());
        assert_eq!(known.cost(known.all()), Cost { part: 0.0, at_least: false, doubt: None });
    }

    #[test]
    fn whoever_streams_files_gets_room_for_it() {
        let flat = stretches(&[(1e10, [10_000.0; 4])]);
        let quiet = known(&flat, 30_000);
        let streams = with(quiet, Held { transferred: STREAMS_FROM, ..quiet.held });
        let more = streams.least(0.02).0 - quiet.least(0.02).0;
        assert!(more.abs_diff(STREAMS.0) <= 2 * PAGE_BYTES, "{more}");
    }

    #[test]
    fn files_that_are_read_again_are_covered_and_others_are_not() {
        let flat = stretches(&[(1e10, [10_000.0; 4])]);
        let quiet = known(&flat, 30_000);
        let files = Bytes(20_000 * PAGE_BYTES);
        let once = with(quiet, Held { files, read_since: files, ..quiet.held });
        let half_again = with(once, Held { read_since: Bytes(files.0 / 2 * 3), ..once.held });
        assert_eq!([once, half_again].map(|known| known.least(0.02)), [quiet.least(0.02); 2]);
        // Three times again, 60,000 pages at 10 µs, are 6 % of 10 s.
        let again = with(once, Held { read_since: Bytes(4 * files.0), ..once.held });
        assert_eq!(again.least(0.02).0 - quiet.least(0.02).0, files.0);
        assert_eq!(again.all().0 - quiet.all().0, files.0);
        // What the kernel was seen to take counts if it is more than the rule.
        let kernel = with(quiet, Held { kernel: Bytes(50 << 20), ..quiet.held });
        assert!(kernel.least(0.02).0 > quiet.least(0.02).0 + (48 << 20));
    }

    #[test]
    fn nothing_is_promised_by_one_cycle_nor_while_it_grows() {
        let flat = stretches(&[(1e10, [10_000.0; 4])]);
        let sure = known(&flat, 30_000);
        assert!(sure.least(0.02) < sure.all());
        let mut one = History::new(vellum_workset::cycle::doubling_windows(1e8, 4), 1.0);
        one.push(1e10, &[10_000.0; 4], &[]);
        for known in [Known { growing: true, ..sure }, Known { cycles: &one, ..sure }] {
            assert_eq!((known.least(0.02), known.interval(0.02)), (known.all(), None));
        }
    }

    #[test]
    fn cycles_that_differ_make_the_interval_wide() {
        let same = stretches(&[(1e10, [8000.0, 9000.0, 9500.0, 9600.0])]);
        let [low, high] = known(&same, 30_000).interval(0.02).unwrap();
        assert_eq!(low, high);
        let differ =
            stretches(&[(5e9, [6000.0, 7000.0, 7500.0, 7600.0]), (5e9, [8000.0, 9000.0, 9500.0, 9600.0])]);
        let known = known(&differ, 30_000);
        let ([low, high], found) = (known.interval(0.02).unwrap(), known.least(0.02));
        assert!(low < high && found == high, "known to cost no more: {low:?} {found:?} {high:?}");
    }

    #[test]
    fn what_comes_up_at_the_end_is_covered() {
        // A twentieth of the time needs twice the memory.
        let grown = stretches(&[(9.5e9, [5000.0; 4]), (0.5e9, [10_000.0; 4])]);
        assert!(pages(known(&grown, 20_000).least(0.02)) >= 11_000);
    }

    #[test]
    fn memory_that_is_only_filled_costs_its_way_out() {
        // 100,000 pages held, 1,000 used again: at 10 µs each, 99,000 are a tenth of 10 s.
        let filled = stretches(&[(1e10, [1000.0; 4])]);
        let mut known = known(&filled, 100_000);
        assert!(pages(known.least(0.02)) < 2000);
        known.out_ns = 1e4;
        let found = known.least(0.02);
        // A fiftieth of 10 s takes 20,000 pages out.
        let out = pages(known.all()) - pages(found);
        assert!((19_900..=20_100).contains(&out), "{out}");
    }

    #[test]
    fn what_is_beyond_the_longest_window_costs_under_every_limit_but_all() {
        let flat = stretches(&[(1e10, [1000.0; 4])]);
        let known = Known { beyond: 0.5, ..known(&flat, 5000) };
        assert_eq!(known.least(0.02), known.all());
    }
}
