//! What memory there is for the heap, and what collecting in it costs: looked at when it may matter, and no more often than it changes.
//!
//! A heap that grows by less than half of what is available need not mind, and to learn so much is two small files of the kernel's, every
//! [`LOOK_MS`] at most and never for a small heap. Only where memory is short the rest is looked at: what of the heap has been paged out, where more of it
//! can go, what the machine's stalls say, and what faults cost.
//!
//! ```text
//! target = (held - paged out + available) * 15/16, at most the governor's, at most what is held while the machine stalls,
//!          times what experience says: less while a heap that should fit is paged all the same
//! ```

use super::memory::Memory;
use super::rates::Rates;
use super::refault::Refault;
use crate::class::BLOCK;
use crate::ground;
use crate::heap::Heap;
use vellum_pages::{Outlook, Pages};
use vellum_sys::usage::{self, Met};
use vellum_sys::{clock, pressure};

/// A heap below this is nobody's trouble, in bytes.
const LOOK_MIN: usize = 1 << 20;
/// A room is not looked at again before so much of it has been handed out.
const STEP_MIN: usize = 4 << 20;
/// How long a look holds, in milliseconds.
const LOOK_MS: u64 = 100;
/// What the heap wants more is less than one part of so many of what is available, and that is more than a part of all it comes to: there is plenty.
const PLENTY_PART: u64 = 2;
const LEFT_PART: u64 = 8;
/// One part of so many of the target is left to what nobody accounts for.
const MARGIN_PART: u64 = 16;
/// Faults are waited for if one in so many has a thread give up its processor.
const WAITS_PART: u64 = 8;
/// All of the target, in parts of it.
const TRUST_ALL: u64 = 256;
/// At least so many of them are the heap's, whatever it has met.
const TRUST_LEAST: u64 = 64;
/// A heap that should fit is paged too much if faults take one part of so many of the time.
const FAULTS_PART: u64 = 8;
/// Then it gets one part of so many less.
const LESS_PART: u64 = 16;
/// And more, by so many parts of [`TRUST_ALL`] a collection, while faults take a small part of that.
const MORE: u64 = 8;
const FEW_FAULTS_PART: u64 = 64;

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    looked_ms: u64,
    outlook: Outlook,
    /// What the heap held then, in bytes.
    held: u64,
    /// Bytes of the process that were paged out then, and whether the machine's tasks were waiting for memory: known where it was short.
    swapped: u64,
    is_stalled: bool,
    rates: Rates,
    refault: Refault,
    /// The last look found memory short.
    is_short: bool,
    /// What the program does is counted: sizes depend on it.
    counts: bool,
    /// The last sizes were to keep the heap from being paged.
    should_fit: bool,
    /// Parts of [`TRUST_ALL`] of the target that have proved to be the heap's.
    trust: u64,
    /// The process's CPU time at the end of the last collection, and faults by then; 0 if not known.
    ended_cpu_ns: u64,
    faults: u64,
    /// What `used` is to be when the room is looked at again.
    check_at: usize,
    /// How much later after that.
    check_every: usize,
}

/// What a collection cost, as far as is known when it has ended.
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
            outlook: Outlook::PLENTY,
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

    /// Whether memory was short at the last look.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// How much has been handed out when the room should be looked at again.
    #[inline]
    pub(crate) fn check_at(&self) -> usize {
        self.check_at
    }

    /// The room was looked at with so much handed out.
    pub(super) fn check_after(&mut self, used: usize) {
        self.check_at = used.saturating_add(self.check_every);
    }

    /// In a forked child: nothing of what was seen is its own.
    pub(crate) fn forget(&mut self) {
        *self = Watch { rates: self.rates, refault: self.refault, ..Watch::new() };
    }

    /// What came of the last sizes: whether all that the heap comes to with them fits.
    pub(super) fn decided(&mut self, fits: bool) {
        self.should_fit = self.is_short && fits;
    }

    /// A collection has ended. What the program did since the last is learnt while memory counts, or if `always`: it takes
    /// two system calls.
    pub(crate) fn collected(&mut self, spent: Spent, always: bool) {
        if !self.counts && !always {
            (self.ended_cpu_ns, self.faults) = (0, 0);
            self.rates.learn(spent.live, 0, spent.cpu_ns, 0);
            return;
        }
        let (now_ns, faults) = (clock::own_cpu_ns(), usage::met().faults);
        if self.ended_cpu_ns != 0 {
            let met = faults.saturating_sub(self.faults);
            let ran_ns = now_ns.saturating_sub(self.ended_cpu_ns);
            if met == 0 {
                self.rates.learn(
                    spent.live,
                    spent.allocated,
                    spent.cpu_ns,
                    ran_ns.saturating_sub(spent.cpu_ns),
                );
            }
            self.judge(met.saturating_mul(self.refault.ns()), ran_ns);
        }
        (self.ended_cpu_ns, self.faults) = (now_ns, faults);
    }

    /// A collection that found `live` bytes alive met so many faults, and so often gave up its processor, while it took `cpu_ns` and `wall_ns`.
    pub(crate) fn met(&mut self, met: Met, cpu_ns: u64, wall_ns: u64, live: usize) {
        // Without waiting a fault was served on the spot, and what passed besides is other programs' time.
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

    /// Bytes that were available at the last look, less what the heap has taken since and more what it has given back.
    fn available(&self, held: u64) -> u64 {
        self.outlook.available.saturating_add(self.held).saturating_sub(held)
    }

    /// What there is for a heap that holds `held` bytes; the governor allows it `advised`.
    fn memory(&self, held: u64, advised: Option<u64>) -> Memory {
        let swapped = self.swapped.min(held);
        let resident = held - swapped;
        let mut target = resident.saturating_add(self.available(held));
        target = target.min(advised.unwrap_or(u64::MAX));
        // What makes a group of its own wait is its limit, which is known.
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

impl Heap {
    /// Bytes of this heap that frames may be behind: in use, free blocks, and what the page layer keeps.
    fn held(&self) -> u64 {
        let cached = if ground::is_paged() { 0 } else { Pages::global().cached() };
        (self.bytes + self.pool.len() * BLOCK) as u64 + cached
    }

    /// What memory there is for a heap that wants to come to `footprint` bytes with a room of `room`.
    pub(super) fn memory_for(&mut self, footprint: usize, room: usize) -> Memory {
        (self.watch.check_at, self.watch.check_every) = (usize::MAX, usize::MAX);
        if footprint < LOOK_MIN {
            (self.watch.is_short, self.watch.counts) = (false, false);
            return Memory::PLENTY;
        }
        let held = self.held();
        let enough = (footprint as u64)
            .saturating_sub(held)
            .saturating_mul(PLENTY_PART)
            .max(footprint as u64 / LEFT_PART);
        let now_ms = clock::now_ms();
        let watch = &mut self.watch;
        let looked = watch.looked_ms == 0 || now_ms.wrapping_sub(watch.looked_ms) >= LOOK_MS;
        if looked {
            // What is paged by the process itself has the pager's frames, whatever else there is.
            watch.outlook = match ground::frames() {
                Some((free, _)) => Outlook { available: free, swap: u64::MAX, is_given: true },
                None => Pages::global().outlook(enough),
            };
            watch.looked_ms = now_ms.max(1);
            watch.held = held;
        }
        let available = watch.available(held);
        let advised = Pages::global().advised(held);
        // What others take meanwhile is seen before the heap has taken a quarter of what is left.
        let step = usize::try_from(available / 4).unwrap_or(usize::MAX).max(STEP_MIN);
        if step < room {
            (watch.check_at, watch.check_every) = (step, step);
        }
        let is_plenty = enough <= available && advised.is_none_or(|bytes| footprint as u64 <= bytes);
        let was_short = watch.is_short;
        watch.is_short = !is_plenty || watch.trust < TRUST_ALL;
        watch.counts = watch.is_short || watch.outlook.is_given || advised.is_some();
        if !watch.counts {
            (watch.swapped, watch.is_stalled) = (0, false);
            return Memory::PLENTY;
        }
        if looked || watch.is_short && !was_short {
            watch.swapped = ground::frames().map_or_else(usage::swapped, |(_, missing)| missing);
            watch.is_stalled = watch.is_short && pressure::is_stalled();
        }
        watch.memory(held, advised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn watch(available: u64, swap: u64) -> Watch {
        Watch { outlook: Outlook { available, swap, is_given: false }, held: 64 * MIB, ..Watch::new() }
    }

    #[test]
    fn the_target_is_what_is_there_and_what_may_be_had() {
        let watch = watch(16 * MIB, 100 * MIB);
        let memory = watch.memory(64 * MIB, None);
        assert_eq!((memory.target, memory.paged), (75 << 20, 100 << 20));
        assert_eq!(
            watch.memory(70 * MIB, None).target,
            75 << 20,
            "what the heap has taken since is no longer available"
        );
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
