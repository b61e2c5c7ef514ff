//! The CPU budget of a watch: computes when it allows the next *cycle*. A cycle clears the accessed bits of
//! the job's pages, and then counts the set bits several times (*looks*).
//!
//! ```text
//! spent + cycle ≤ max( budget · (T + cycle length / 2),  idle budget · (t + cycle length in wall time / 2) )
//!
//! cycle = pages · (clearings · clear + looks · count)  +  referenced pages · penalty · clearings
//!         our CPU time, and the kernel's for us        the job's own user time
//! ```
//!
//! T is the job's user CPU time since the watch began, t the wall-clock time; *clear* and *count* are costs
//! per page. Cycles of large processes are rare; those of small ones follow each other without a pause. A
//! job that hardly runs has the *idle budget*, a part of one processor. A cycle must be paid for halfway
//! through, so that early spending stays near the budget.
//!
//! - *The burst.* The first two cycles may exceed the budget by the factors of [`BURST`], up to a given time.
//!   The second cycle waits longer, to show another part of the run. The third waits until both are repaid.
//! - A run is *long enough* for a recommendation if it pays for two cycles ([`Budget::enough`]). The rule
//!   uses only the size of the job, so that all its runs get the same answer.
//! - The account of costs is incomplete, since looks leave caches and TLBs cold. Jobs were 1.0 to 1.3 %
//!   slower when the account showed 0.6 to 0.9 % (`vellum-bench --only watch`, 8 to 256 MiB). The account
//!   may therefore reach 1 / [`UNSEEN`] of the budget only.
//! - The costs per page are measured during the watch; a huge page costs as much as a small one.

use std::time::Duration;

/// The cost of clearing a page, until it is measured. The source has the cost of counting a page.
const CLEAR_NS: f64 = 90.0;
/// A call costs this even where there are no pages.
const CALL_NS: f64 = 15_000.0;
/// The full cost of watching, over the part that the account has.
const UNSEEN: f64 = 1.8;
const NEWEST: f64 = 0.3;
/// The first and the second cycle may cost this many times the budget.
const BURST: [f64; 2] = [10.0, 5.0];
/// The factor on the length of a long enough run, since samples cost more on a busy machine …
pub(crate) const MARGIN: f64 = 1.2;
/// … and for one of these times, in seconds or minutes.
const ASKED: [u64; 6] = [2, 3, 5, 10, 20, 30];
/// The wall-clock time that a cycle may be paid for ahead.
const AHEAD_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parts {
    /// The part of the job's user time.
    pub(crate) share: f64,
    /// The part of one processor, if that is more.
    pub(crate) idle: f64,
    /// The time that the first two cycles may take ahead.
    pub(crate) burst: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct Budget {
    /// The bound of the account.
    parts: Parts,
    pub(crate) cpu: Duration,
    /// The job's time that we caused it to spend.
    pub(crate) imposed: Duration,
    clear_ns: f64,
    count_ns: f64,
    /// Cycles so far; the first counts once it has given a curve.
    pub(crate) cycles: u64,
}

/// An amount of time, by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) clock: Duration,
    pub(crate) wall: Duration,
}

impl Passed {
    /// True if either of these times has come.
    pub(crate) fn reaches(self, due: Passed) -> bool {
        self.clock >= due.clock || self.wall >= due.wall
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Page-table entries that a clearing or a look goes to.
    pub(crate) entries: f64,
    pub(crate) processes: f64,
    /// The cost of the references to the job, for each clearing.
    pub(crate) imposed: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) looks: u32,
    pub(crate) clearings: u32,
    /// True if a look costs the job what a clearing does.
    pub(crate) looks_clear: bool,
    pub(crate) length: Passed,
}

impl Budget {
    /// A budget with these parts, for a source that counts a page in `count`.
    pub(crate) fn new(parts: Parts, count: Duration) -> Budget {
        let count_ns = count.as_nanos() as f64;
        let parts = Parts { share: parts.share / UNSEEN, idle: parts.idle / UNSEEN, ..parts };
        let (cpu, imposed) = (Duration::ZERO, Duration::ZERO);
        Budget { parts, cpu, imposed, clear_ns: CLEAR_NS, count_ns, cycles: 0 }
    }

    pub(crate) fn spent(&self) -> Duration {
        self.cpu + self.imposed
    }

    pub(crate) fn ahead(&self, passed: Passed) -> Duration {
        let Parts { share, idle, .. } = self.parts;
        let regular = (passed.clock.as_secs_f64() * share).max(passed.wall.as_secs_f64() * idle);
        self.spent().saturating_sub(Duration::from_secs_f64(regular))
    }

    /// The budget for a second of wall-clock time, if the job uses this part of a processor.
    pub(crate) fn a_second(&self, rate: f64) -> f64 {
        (self.parts.share * rate).max(self.parts.idle)
    }

    /// When a cycle can be paid for: at the earlier of two times.
    pub(crate) fn affordable_at(&self, size: Size, cycle: Plan) -> Passed {
        let Passed { clock, wall } = cycle.length;
        let ahead = Passed { clock: clock / 2, wall: (wall / 2).min(AHEAD_MAX) };
        let cost = self.cost(size, cycle);
        // A busy machine makes looks dearer: the second cycle does not wait for that, later ones do.
        let is_ahead = self.cycles == 1 && !self.parts.burst.is_zero();
        let spent = if is_ahead { cost } else { self.spent().as_secs_f64() };
        self.earned_at(spent + cost, ahead)
    }

    /// The job's CPU time after which a run is long enough for a recommendation, in one of few round times.
    /// `cycle` is the first, of a job of this size, and `looked` until its second look.
    pub(crate) fn enough(&self, count: Duration, size: Size, cycle: Plan, looked: Duration) -> Duration {
        // No cost that was measured in this run counts, so that the next has the same answer.
        let mut fresh = Budget { parts: self.parts, ..Budget::new(self.parts, count) };
        let first = fresh.affordable_at(size, cycle).clock + cycle.length.clock;
        fresh.cycles = 1;
        let needed = (fresh.affordable_at(size, cycle).clock.max(first) + looked).mul_f64(MARGIN * MARGIN);
        let mut asked = [1, 60].into_iter().flat_map(|unit| ASKED.map(|n| Duration::from_secs(n * unit)));
        asked.find(|asked| *asked >= needed).unwrap_or(needed)
    }

    fn cost(&self, size: Size, cycle: Plan) -> f64 {
        let Plan { looks, clearings, looks_clear, .. } = cycle;
        let (looks, clearings) = (f64::from(looks), f64::from(clearings));
        let calls = (looks + clearings) * size.processes * CALL_NS;
        let pages = size.entries * (clearings * self.clear_ns + looks * self.count_ns);
        let imposed = size.imposed.as_secs_f64() * if looks_clear { clearings + looks } else { clearings };
        (calls + pages) / 1e9 + imposed
    }

    /// When one count, without a cycle, can be paid for.
    pub(crate) fn count_affordable_at(&self, size: Size) -> Passed {
        let cost = (size.processes * CALL_NS + size.entries * self.count_ns) / 1e9;
        let needed = self.spent().as_secs_f64() + cost;
        self.earned_at(needed, Passed { clock: Duration::ZERO, wall: Duration::ZERO })
    }

    /// The time at which the budget has paid this many seconds, if the budget of the time `ahead` may be
    /// used.
    fn earned_at(&self, needed: f64, ahead: Passed) -> Passed {
        let at = |part: f64, ahead: Duration| {
            let regular = needed / part - ahead.as_secs_f64();
            let borrowed = (needed - self.parts.burst.as_secs_f64()) / part;
            let factor = BURST.get(self.cycles as usize).copied().unwrap_or(1.0);
            let earliest = regular.min((needed / (part * factor)).max(borrowed));
            Duration::try_from_secs_f64(earliest.max(0.0)).unwrap_or(Duration::MAX)
        };
        Passed { clock: at(self.parts.share, ahead.clock), wall: at(self.parts.idle, ahead.wall) }
    }

    pub(crate) fn cleared(&mut self, entries: f64, cpu: Duration) {
        learn(&mut self.clear_ns, self.cycles, entries, cpu);
    }

    pub(crate) fn counted(&mut self, entries: f64, cpu: Duration) {
        learn(&mut self.count_ns, self.cycles, entries, cpu);
    }
}

/// The time of the second cycle is fixed, so nothing is measured before it.
fn learn(a_page: &mut f64, cycles: u64, entries: f64, cpu: Duration) {
    if entries >= 1.0 && cycles > 1 {
        let net = (cpu.as_nanos() as f64 - CALL_NS).max(0.0) / entries;
        *a_page += NEWEST * (net - *a_page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A budget of the job's time alone.
    fn new(share: f64) -> Budget {
        Budget::new(Parts { share, idle: 0.0, burst: Duration::ZERO }, Duration::from_nanos(70))
    }

    const GIB_PAGES: f64 = 262_144.0;

    fn size(entries: f64) -> Size {
        Size { entries, processes: 1.0, imposed: Duration::from_nanos((entries * 200.0) as u64) }
    }

    fn passed(clock_ms: u64, wall_ms: u64) -> Passed {
        Passed { clock: Duration::from_millis(clock_ms), wall: Duration::from_millis(wall_ms) }
    }

    fn plan(looks: u32, length_ms: u64) -> Plan {
        Plan { looks, clearings: 1, looks_clear: false, length: passed(length_ms, length_ms) }
    }

    #[test]
    fn small_jobs_are_looked_at_at_once_and_large_ones_wait() {
        let budget = new(0.01);
        let cycle = plan(4, 800);
        let at = |size, cycle| budget.affordable_at(size, cycle).clock;
        assert_eq!(at(size(1000.0), cycle), Duration::ZERO);
        let large = at(size(GIB_PAGES), cycle).as_secs_f64();
        // By hand: 262,144 pages at 90 + 4 · 70 + 200 ns are 149 ms, 180 times that 26.9 s.
        assert!((26.0..27.0).contains(&large), "{large}");
        let again = Plan { clearings: 2, looks_clear: true, ..cycle };
        let larger = at(size(GIB_PAGES), again).as_secs_f64();
        // Another clearing of 90 ns, and 200 ns more for that and for each of four looks: 286 ms.
        assert!((76.8..79.5).contains(&larger), "{larger}");
    }

    #[test]
    fn what_was_spent_is_waited_for() {
        let mut budget = new(0.01);
        budget.cpu = Duration::from_millis(50);
        let at = budget.affordable_at(size(10.0), plan(4, 0));
        assert!(at.clock >= Duration::from_secs(9) && at.clock < Duration::from_secs(11), "{at:?}");
        assert_eq!(at.wall, Duration::MAX, "nothing is earned by waiting alone");
    }

    #[test]
    fn a_job_that_hardly_runs_is_paid_for_by_the_time_that_passes() {
        let mut budget =
            Budget::new(Parts { share: 0.01, idle: 0.0005, burst: Duration::ZERO }, Duration::from_nanos(70));
        budget.cpu = Duration::from_millis(10);
        let at = budget.count_affordable_at(size(10_000.0));
        // 10.7 ms at 1 / 1.8 of 0.05 %: 38.6 s.
        assert!((38.0..39.0).contains(&at.wall.as_secs_f64()), "{at:?}");
        assert!(passed(0, 40_000).reaches(at) && !passed(1000, 30_000).reaches(at));
        assert!(passed(2000, 2000).reaches(at), "1.9 s of its CPU time are as good");
        assert!((budget.a_second(0.001) - 0.0005 / UNSEEN).abs() < 1e-9);
        assert!((budget.a_second(0.5) - 0.005 / UNSEEN).abs() < 1e-9);
    }

    #[test]
    fn the_first_two_cycles_come_ahead_and_the_rest_repays_it() {
        let burst = Duration::from_millis(60);
        let parts = Parts { share: 0.01, idle: 0.0005, burst };
        let mut budget = Budget::new(parts, Duration::from_nanos(70));
        // 50,000 pages at 570 ns are 28.5 ms: earned in 5.1 s, a tenth of it with the burst.
        let cycle = plan(4, 0);
        let at = budget.affordable_at(size(50_000.0), cycle).clock.as_secs_f64();
        assert!((0.5..0.55).contains(&at), "{at}");
        budget.cpu = Duration::from_millis(29);
        let ahead = budget.ahead(passed(900, 900));
        assert!((Duration::from_millis(23)..Duration::from_millis(25)).contains(&ahead), "{ahead:?}");
        // The second comes when a fifth of both has been earned, later ones when all has that was spent.
        for (cycles, spent, seconds) in [(1, 29, 2.0..2.15), (1, 500, 2.0..2.15), (2, 29, 10.0..10.6)] {
            (budget.cycles, budget.cpu) = (cycles, Duration::from_millis(spent));
            let at = budget.affordable_at(size(50_000.0), cycle).clock.as_secs_f64();
            assert!(seconds.contains(&at), "{cycles} cycles: {at}");
        }
        assert_eq!(budget.ahead(passed(6000, 6000)), Duration::ZERO);
        // A dearer cycle waits until no more than the burst is missing: 149 ms less 60 are earned in 16 s.
        let fresh = Budget::new(parts, Duration::from_nanos(70));
        let at = fresh.affordable_at(size(GIB_PAGES), cycle).clock.as_secs_f64();
        assert!((15.9..16.2).contains(&at), "{at}");
    }

    #[test]
    fn a_run_is_long_enough_by_its_size_whatever_looking_at_it_cost() {
        let parts = Parts { share: 0.008, idle: 0.0005, burst: Duration::from_millis(60) };
        let count = Duration::from_nanos(70);
        let mut budget = Budget::new(parts, count);
        for (clear_ns, cycles) in [(CLEAR_NS, 0), (900.0, 2)] {
            (budget.clear_ns, budget.cpu, budget.cycles) = (clear_ns, Duration::from_secs(cycles), cycles);
            let of =
                |mib: f64| budget.enough(count, size(mib * 256.0), plan(4, 800), Duration::from_millis(200));
            assert_eq!([1.0, 50.0, 170.0, 300.0, 1024.0].map(|mib| of(mib).as_secs()), [2, 2, 5, 10, 120]);
        }
    }

    #[test]
    fn the_cost_of_a_page_is_learnt() {
        let mut budget = Budget { cycles: 2, ..new(0.01) };
        for _ in 0..40 {
            budget.cleared(1e5, Duration::from_millis(40));
        }
        assert!((budget.clear_ns - 400.0).abs() < 1.0, "{}", budget.clear_ns);
        budget.counted(0.0, Duration::from_secs(1));
        assert_eq!(budget.count_ns, 70.0, "no pages, no lesson");
    }
}
