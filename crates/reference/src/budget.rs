//! The budget of watching, and when the next cycle can be paid for.
//!
//! ```text
//! spent + cycle ≤ budget · (T + cycle length / 2)
//!
//! cycle = pages · (clearings · clear + looks · count)  +  referenced pages · penalty · clearings
//!         our CPU time, the kernel's for us            the job's own user time
//! ```
//!
//! T is the job's user CPU time since the watch began. Large processes are therefore cleared seldom, and
//! small ones cycle without a pause. A cycle is paid for halfway through, so that spending early in it is
//! never far above the budget.
//!
//! The account is incomplete: a look leaves caches and translations cold, which the job pays for later.
//! Beside an unwatched job a watched one was 1.0 to 1.3 % slower where the account had 0.6 to 0.9 %
//! (`vellum-bench --only watch`, 8 to 256 MiB). So the account may only reach a part of the budget, 1 /
//! [`UNSEEN`].
//!
//! The cost of clearing and of counting a page is measured during the watch; a huge page costs as much as a
//! small one.

use std::time::Duration;

/// The cost of clearing a page, until it has been measured. The source has that of counting one.
const CLEAR_NS: f64 = 90.0;
/// A call costs this even where there are no pages.
const CALL_NS: f64 = 15_000.0;
/// The full cost of watching, over the part that the account has.
const UNSEEN: f64 = 1.8;
/// The weight of the newest measurement.
const NEWEST: f64 = 0.3;

/// A running account.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    /// What the account may reach, in parts of the job's user time.
    share: f64,
    /// Our own CPU time so far.
    pub(crate) cpu: Duration,
    /// The job's time that we caused it to spend.
    pub(crate) imposed: Duration,
    clear_ns: f64,
    count_ns: f64,
}

/// How large a cycle is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Page-table entries that a clearing or a look goes to.
    pub(crate) entries: f64,
    pub(crate) processes: f64,
    /// What the references will cost the job, each time its bits are cleared.
    pub(crate) imposed: Duration,
}

/// What a cycle will be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) looks: u32,
    pub(crate) clearings: u32,
    /// Whether a look costs the job what a clearing does.
    pub(crate) looks_clear: bool,
    pub(crate) length: Duration,
}

impl Budget {
    /// Of this part of the job's user time, for a source that counts a page in `count`.
    pub(crate) fn new(share: f64, count: Duration) -> Budget {
        let count_ns = count.as_nanos() as f64;
        let share = share / UNSEEN;
        Budget { share, cpu: Duration::ZERO, imposed: Duration::ZERO, clear_ns: CLEAR_NS, count_ns }
    }

    /// All that was spent.
    pub(crate) fn spent(&self) -> Duration {
        self.cpu + self.imposed
    }

    /// The user time at which a cycle can be paid for.
    pub(crate) fn affordable_at(&self, size: Size, cycle: Plan) -> Duration {
        let Plan { looks, clearings, looks_clear, length } = cycle;
        let (looks, clearings) = (f64::from(looks), f64::from(clearings));
        let calls = (looks + clearings) * size.processes * CALL_NS;
        let pages = size.entries * (clearings * self.clear_ns + looks * self.count_ns);
        let imposed = size.imposed.as_secs_f64() * if looks_clear { clearings + looks } else { clearings };
        let cost = (calls + pages) / 1e9 + imposed;
        let needed = (self.spent().as_secs_f64() + cost) / self.share - length.as_secs_f64() / 2.0;
        Duration::from_secs_f64(needed.max(0.0))
    }

    /// The user time at which one count, without a cycle, can be paid for.
    pub(crate) fn count_affordable_at(&self, size: Size) -> Duration {
        let cost = (size.processes * CALL_NS + size.entries * self.count_ns) / 1e9;
        Duration::from_secs_f64((self.spent().as_secs_f64() + cost) / self.share)
    }

    /// A clearing took this.
    pub(crate) fn cleared(&mut self, entries: f64, cpu: Duration) {
        learn(&mut self.clear_ns, entries, cpu);
    }

    /// A count took this.
    pub(crate) fn counted(&mut self, entries: f64, cpu: Duration) {
        learn(&mut self.count_ns, entries, cpu);
    }
}

fn learn(a_page: &mut f64, entries: f64, cpu: Duration) {
    if entries >= 1.0 {
        let net = (cpu.as_nanos() as f64 - CALL_NS).max(0.0) / entries;
        *a_page += NEWEST * (net - *a_page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(share: f64) -> Budget {
        Budget::new(share, Duration::from_nanos(70))
    }

    const GIB_PAGES: f64 = 262_144.0;

    fn size(entries: f64) -> Size {
        Size { entries, processes: 1.0, imposed: Duration::from_nanos((entries * 200.0) as u64) }
    }

    #[test]
    fn small_jobs_are_looked_at_at_once_and_large_ones_wait() {
        let budget = new(0.01);
        let length = Duration::from_millis(800);
        let cycle = Plan { looks: 4, clearings: 1, looks_clear: false, length };
        assert_eq!(budget.affordable_at(size(1000.0), cycle), Duration::ZERO);
        let large = budget.affordable_at(size(GIB_PAGES), cycle).as_secs_f64();
        // By hand: 262,144 pages at 90 + 4 · 70 + 200 ns are 149 ms, 180 times that 26.9 s.
        assert!((26.0..27.0).contains(&large), "{large}");
        let again = Plan { clearings: 2, looks_clear: true, ..cycle };
        let larger = budget.affordable_at(size(GIB_PAGES), again).as_secs_f64();
        // Another clearing of 90 ns, and 200 ns more for that and for each of four looks: 286 ms.
        assert!((76.8..79.5).contains(&larger), "{larger}");
    }

    #[test]
    fn what_was_spent_is_waited_for() {
        let mut budget = new(0.01);
        budget.cpu = Duration::from_millis(50);
        let cycle = Plan { looks: 4, clearings: 1, looks_clear: false, length: Duration::ZERO };
        let at = budget.affordable_at(size(10.0), cycle);
        assert!(at >= Duration::from_secs(9) && at < Duration::from_secs(11), "{at:?}");
    }

    #[test]
    fn the_cost_of_a_page_is_learnt() {
        let mut budget = new(0.01);
        for _ in 0..40 {
            budget.cleared(1e5, Duration::from_millis(40));
        }
        assert!((budget.clear_ns - 400.0).abs() < 1.0, "{}", budget.clear_ns);
        budget.counted(0.0, Duration::from_secs(1));
        assert_eq!(budget.count_ns, 70.0, "no pages, no lesson");
    }
}
