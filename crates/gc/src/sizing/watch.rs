//! Samples of the memory available to the heap and of the cost of collecting, taken only when needed.
//!
//! The available memory is read from two small files of the kernel, at most every `LOOK_MS` and never for a
//! small heap. If memory is short (the heap is to grow by more than half of what is available), the rest is
//! sampled: how much of the heap was paged out, how much more can be paged out, whether the machine stalls,
//! and the cost of faults.
//!
//! ```text
//! target = (held - paged out + available) * 15/16 * trust
//! ```
//!
//! The target is the memory for the heap, and `held` its present bytes. `trust` is at most 1, and falls
//! while a heap that should fit is paged all the same. The advice of a governor (a process that divides
//! memory among programs) limits the target; so do the resident bytes while the machine stalls.

use super::policy::Memory;
use super::rates::Rates;
use super::refault::Refault;
use crate::space::block_source;
use vellum_pages::{AvailableMemory, Pages};
use vellum_sys::clock;
use vellum_sys::usage::Met;

/// One part in this many of the target is left for memory that nothing accounts for.
const MARGIN_PART: u64 = 16;
/// Faults count as waited for if one in this many makes a thread give up its processor.
const WAITS_PART: u64 = 8;
/// The value of [`Watch::trust`] that stands for 1.
pub(crate) const TRUST_ALL: u64 = 256;
/// The least [`Watch::trust`], after any number of faults.
const TRUST_LEAST: u64 = 64;
/// A heap that should fit is paged too much if faults take one part in this many of the time.
const FAULTS_PART: u64 = 8;
/// Its [`Watch::trust`] then falls by one part in this many.
const LESS_PART: u64 = 16;
/// [`Watch::trust`] rises by this much at each collection while faults take less than one part in
/// [`FEW_FAULTS_PART`] of the time.
const MORE: u64 = 8;
const FEW_FAULTS_PART: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) looked_ms: u64,
    pub(crate) outlook: AvailableMemory,
    /// Bytes that the heap held at the last sample.
    pub(crate) held: u64,
    /// Bytes of the process that were paged out then, and whether the machine's tasks were waiting for
    /// memory; set only if memory was short.
    pub(crate) swapped: u64,
    pub(crate) is_stalled: bool,
    pub(crate) rates: Rates,
    pub(crate) refault: Refault,
    /// The last sample found memory short.
    pub(crate) is_short: bool,
    /// The program's time and faults are counted: sizes depend on them.
    pub(crate) counts: bool,
    /// The last sizes were to keep the heap from being paged.
    pub(crate) should_fit: bool,
    /// The part of the target that has proved to be available, in units of 1 / [`TRUST_ALL`].
    pub(crate) trust: u64,
    /// The process's CPU time at the end of the last collection, and faults by then; 0 before the first.
    pub(crate) ended_cpu_ns: u64,
    pub(crate) faults: u64,
    /// The value of `used` at which memory is sampled again.
    pub(crate) check_at: usize,
    /// The distance from each sample to the next.
    pub(crate) check_every: usize,
}

/// The cost of a collection, measured at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// CPU time of the thread that collected, in nanoseconds.
    pub cpu_ns: u64,
    /// Bytes it found alive.
    pub live: usize,
    /// Bytes handed out since the one before.
    pub allocated: usize,
}

impl Watch {
    pub(crate) const fn new() -> Watch {
        Watch {
            looked_ms: 0,
            outlook: AvailableMemory::UNLIMITED,
            held: 0,
            swapped: 0,
            is_stalled: false,
            rates: Rates::UNKNOWN,
            refault: Refault::UNKNOWN,
            is_short: false,
            counts: false,
            should_fit: false,
            trust: TRUST_ALL,
            ended_cpu_ns: 0,
            faults: 0,
            check_at: usize::MAX,
            check_every: usize::MAX,
        }
    }

    pub(crate) fn rates(&self) -> Rates {
        self.rates
    }

    /// Returns whether memory was short at the last sample.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// The bytes handed out at which memory should be sampled again.
    #[inline]
    pub(crate) fn check_at(&self) -> usize {
        self.check_at
    }

    /// Memory was sampled with `used` bytes handed out.
    pub(crate) fn check_after(&mut self, used: usize) {
        self.check_at = used.saturating_add(self.check_every);
    }

    /// In a forked child: the samples are the parent's.
    pub(crate) fn forget(&mut self) {
        *self = Watch { rates: self.rates, refault: self.refault, ..Watch::new() };
    }

    /// Records whether the heap's whole footprint with the last sizes fits.
    pub(crate) fn decided(&mut self, fits: bool) {
        self.should_fit = self.is_short && fits;
    }

    /// A collection has ended. The program's speed since the last is learnt while memory counts, or if
    /// `always`: it takes two system calls.
    pub(crate) fn collected(&mut self, spent: Spent, always: bool) {
        if !self.counts && !always {
            (self.ended_cpu_ns, self.faults) = (0, 0);
            self.rates.learn(spent.live, 0, spent.cpu_ns, 0);
            return;
        }
        let (now_ns, faults) = (clock::own_cpu_ns(), block_source::met().faults);
        if self.ended_cpu_ns != 0 {
            let met = faults.saturating_sub(self.faults);
            let ran_ns = now_ns.saturating_sub(self.ended_cpu_ns);
            if met == 0 {
                let other_ns = ran_ns.saturating_sub(spent.cpu_ns);
                self.rates.learn(spent.live, spent.allocated, spent.cpu_ns, other_ns);
            }
            self.judge(met.saturating_mul(self.refault.ns()), ran_ns);
        }
        (self.ended_cpu_ns, self.faults) = (now_ns, faults);
    }

    /// A collection that found `live` bytes alive met the faults of `met` and gave up its processor as often
    /// as that says, while it took `cpu_ns` and `wall_ns`.
    pub(crate) fn met(&mut self, met: Met, cpu_ns: u64, wall_ns: u64, live: usize) {
        // Without waiting, a fault was served at once; the rest of the time was other programs'.
        let spent_ns = if met.waits > met.faults / WAITS_PART { wall_ns } else { cpu_ns };
        if self.refault.learn(met.faults, spent_ns, self.rates.collection_ns(live)) {
            Pages::global().note_refault(self.refault.ns());
        }
    }

    /// Faults took `waited_ns` while the process ran for `ran_ns`.
    fn judge(&mut self, waited_ns: u64, ran_ns: u64) {
        if self.should_fit && waited_ns > ran_ns / FAULTS_PART {
            self.trust = (self.trust - self.trust / LESS_PART).max(TRUST_LEAST);
        } else if waited_ns < ran_ns / FEW_FAULTS_PART {
            self.trust = (self.trust + MORE).min(TRUST_ALL);
        }
    }

    /// Bytes that were available at the last sample, less the heap's growth since.
    pub(crate) fn available(&self, held: u64) -> u64 {
        self.outlook.available.saturating_add(self.held).saturating_sub(held)
    }

    /// The memory for a heap that holds `held` bytes; the governor allows it `advised`.
    pub(crate) fn memory(&self, held: u64, advised: Option<u64>) -> Memory {
        let swapped = self.swapped.min(held);
        let resident = held - swapped;
        let mut target = resident.saturating_add(self.available(held));
        target = target.min(advised.unwrap_or(u64::MAX));
        // A cgroup that waits has reached its limit, which is known.
        if self.is_stalled && !self.outlook.is_given {
            target = target.min(resident);
        }
        target -= target / MARGIN_PART;
        target = (u128::from(target) * u128::from(self.trust) / u128::from(TRUST_ALL)) as u64;
        Memory {
            target: usize::try_from(target).unwrap_or(usize::MAX - 1),
            is_given: self.outlook.is_given || advised.is_some(),
            paged: usize::try_from(self.outlook.swap.saturating_add(swapped)).unwrap_or(usize::MAX),
            refault_ns: self.refault.ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn watch(available: u64, swap: u64) -> Watch {
        Watch {
            outlook: AvailableMemory { available, swap, is_given: false },
            held: 64 * MIB,
            ..Watch::new()
        }
    }

    #[test]
    fn the_target_is_what_is_there_and_what_may_be_had() {
        let watch = watch(16 * MIB, 100 * MIB);
        let memory = watch.memory(64 * MIB, None);
        assert_eq!((memory.target, memory.paged), (75 << 20, 100 << 20));
        assert_eq!(watch.memory(70 * MIB, None).target, 75 << 20, "what the heap has taken since is gone");
        assert_eq!(watch.memory(64 * MIB, Some(32 * MIB)).target, 30 << 20);
        let memory = Watch { swapped: 48 * MIB, ..watch }.memory(64 * MIB, None);
        assert_eq!((memory.target, memory.paged), (30 << 20, 148 << 20));
        let stalled = Watch { is_stalled: true, ..watch };
        assert_eq!(stalled.memory(64 * MIB, None).target, 60 << 20, "no more while others wait");
    }

    #[test]
    fn a_heap_that_is_paged_although_it_should_fit_gets_smaller_and_comes_back() {
        let mut watch = Watch { is_short: true, ..watch(0, MIB) };
        watch.decided(true);
        watch.judge(20, 100);
        assert_eq!(watch.memory(64 * MIB, None).target, (56 << 20) + (1 << 18));
        for _ in 0..100 {
            watch.judge(50, 100);
        }
        assert_eq!(watch.memory(64 * MIB, None).target, 15 << 20, "but not without end");
        for _ in 0..100 {
            watch.judge(0, 1000);
        }
        assert_eq!(watch.trust, TRUST_ALL);
        watch.decided(false);
        watch.judge(90, 100);
        assert_eq!(watch.trust, TRUST_ALL, "what cannot fit is paged");
    }
}
