//! The cost of a job's memory operations by source line: joins the recorder's counts with the page faults.
//!
//! ```text
//! ledger: records, modules, stacks ─┐
//!                                   ├─▶ cause of each ─▶ sums by (cause, operation) ─▶ Profile
//! kernel: faults by stack ──────────┘
//! ```
//!
//! Invariants: the counts of all items add up to the totals. An item's times represent all of its operations,
//! although only `n` were timed; the clock's own cost is subtracted. Long timings are disturbances
//! ([`Disturbed`]) if they are few among short ones; otherwise they count as times.

use super::faults::Faults;
use super::ledger::{Entry, LedgerFile, Recorded, Times};
use super::log::MappedModule;
use super::place::{Cause, Causes, Instruction, Paths, Place, names};
use super::script::{in_order, is_interpreter};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use vellum_measure::{Base, Stat};
use vellum_process::{Symbols, jit_map};
use vellum_timing::clock::Clock;
use vellum_wire::cost::{KEPT_PER_ASIDE_MIN, STACK_BIT};
use vellum_wire::log::LINE_BIT;
use vellum_wire::operation::{Kind, Operation};
use vellum_wire::script::{self, is_package};

/// The most ancestors searched for a module or a stack.
const ANCESTORS_MAX: usize = 64;
/// An operation with a smaller mean time, in nanoseconds, is short: a few long times among short ones are
/// disturbances.
const SHORT_NS: f64 = 1000.0;

/// One operation at one place.
#[derive(Clone, Debug)]
pub struct Item {
    /// The place that caused it.
    pub cause: Cause,
    /// The operation.
    pub operation: Operation,
    /// The number of operations. Exact, except for page faults of which some were lost ([`Item::is_scaled`]).
    pub count: u64,
    /// The exact sum of requested bytes. `None` for operations that request none, or of unknown size.
    pub bytes: Option<u64>,
    /// Times in nanoseconds, the base subtracted; `n` is the number of timings, including the disturbed
    /// ones. `None` for operations that cannot be timed.
    pub times: Option<Stat>,
    /// The disturbed timings. They count in `n` and in the largest time, but not in the mean and the
    /// deviation.
    pub disturbed: Disturbed,
    /// True if the count is a share of an exact total of which only a part was sampled.
    pub is_scaled: bool,
}

impl Item {
    /// The total time in nanoseconds; `None` without times.
    pub fn total_ns(&self) -> Option<f64> {
        self.times.map(|times| times.mean * self.count as f64)
    }
}

/// Timings over [`DISTURBED_US`](vellum_wire::cost::DISTURBED_US) of operations that mostly take less than
/// a microsecond: another thread had the processor during them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbed {
    /// The number of disturbed timings.
    pub count: u64,
    /// The sum of their times in nanoseconds.
    pub total_ns: f64,
}

impl Disturbed {
    /// Adds `others`.
    pub fn add(&mut self, others: Disturbed) {
        self.count = self.count.saturating_add(others.count);
        self.total_ns += others.total_ns;
    }
}

/// A stack of a flame graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Flame {
    /// Functions, the outermost first.
    pub names: Vec<String>,
    /// The operation.
    pub operation: Operation,
    /// The number of operations.
    pub count: u64,
    /// The sum of their times in nanoseconds.
    pub total_ns: f64,
}

/// The cost of recording itself.
#[derive(Clone, Debug)]
pub struct Own {
    /// Timings of nothing, in nanoseconds; the smallest was subtracted from every time.
    pub base: Base,
    /// Nanoseconds to count an operation.
    pub count_ns: f64,
    /// Nanoseconds to count and time an operation.
    pub timed_ns: f64,
    /// Nanoseconds of all threads' processor time for attaching, look-ups, walking new stacks and queries.
    pub rare_ns: f64,
    /// Total nanoseconds: counting, timing, rare work ([`Own::rare_ns`]), and the recorder's page faults.
    /// Excludes the kernel's time to report faults and the loader's time to load the recorder.
    pub total_ns: f64,
}

/// The profile of a job.
#[derive(Debug)]
pub struct Profile {
    /// One item per place and operation, ordered by place.
    pub items: Vec<Item>,
    /// The number of recorded operations, without page faults.
    pub operations: u64,
    /// How many of these operations have a source line.
    pub on_lines: u64,
    /// The number of timed operations.
    pub timed: u64,
    /// The disturbed timings.
    pub disturbed: Disturbed,
    /// Page faults, if the kernel reports them.
    pub faults: Option<Faults>,
    /// The program's faults in the items of all places.
    pub faults_placed: u64,
    /// How many of these faults have a source line.
    pub faults_on_lines: u64,
    /// Nanoseconds of an ordinary minor fault on this machine.
    pub minor_fault_ns: Option<f64>,
    /// The cost of recording, if it was measured and the counter can be trusted.
    pub own: Option<Own>,
    /// The number of recording processes; a process counts again after `exec`.
    pub processes: u64,
    /// The loader's own operations, before recording was possible.
    pub early: u64,
    /// Operations lost for lack of room.
    pub lost: u64,
    /// Queries about instructions that were not answered in time.
    pub unanswered: u64,
    /// The source files of all lines, each with the modules compiled from it.
    pub sources: BTreeSet<(Arc<str>, PathBuf)>,
    /// Stacks for a flame graph, when whole stacks were recorded.
    pub flames: Vec<Flame>,
}

impl Profile {
    /// The library that contains a place: the system's, a package of an interpreter, or the interpreter.
    /// Its lines are not the user's.
    pub fn library<'a>(&'a self, place: &'a Place) -> Option<Cow<'a, str>> {
        let is_own = |module: &Path| is_interpreter(module) || is_package(&module.to_string_lossy());
        let file = match place {
            Place::Line { file, .. } => file,
            Place::Function { module, .. } | Place::Offset { module, .. } if is_own(Path::new(&**module)) => {
                return Some(Cow::Borrowed(module));
            }
            _ => return place.system_library().map(|module| Cow::Borrowed(&**module)),
        };
        if !script::is_users(file) {
            return Some(Cow::Borrowed(script::library(file)));
        }
        let modules = self.sources.range((file.clone(), PathBuf::new())..);
        let mut modules = modules.take_while(|(source, _)| source == file).map(|(_, module)| module);
        modules
            .clone()
            .all(|module| is_own(module))
            .then(|| modules.next().map(|module| module.to_string_lossy()))
            .flatten()
    }
}

/// The inputs of a profile.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The ledger, of a job that has ended.
    pub ledger: &'a LedgerFile,
    /// The page faults, if they were observed.
    pub faults: Option<Faults>,
    /// Nanoseconds of an ordinary minor fault.
    pub minor_fault_ns: Option<f64>,
    /// The counter; `None` if it cannot be trusted.
    pub clock: Option<&'a Clock>,
    /// True if flame graphs are requested.
    pub flames: bool,
}

#[derive(Default)]
struct Sum {
    count: u64,
    bytes: u64,
    times: Times,
}

impl Sum {
    fn add(&mut self, count: u64, bytes: u64, times: &Times) {
        // Programs may have written any counts, so the sums saturate.
        self.count = self.count.saturating_add(count);
        self.bytes = self.bytes.saturating_add(bytes);
        if times.all() == 0 {
            return;
        }
        let sum = &mut self.times;
        sum.min = if sum.all() == 0 { times.min } else { sum.min.min(times.min) };
        sum.max = sum.max.max(times.max);
        sum.timed = sum.timed.saturating_add(times.timed);
        sum.covered += times.covered;
        sum.sum += times.sum;
        sum.squares += times.squares;
        sum.asides.add(times.asides);
    }

    /// The means of the times and of their squares, in cycles, and whether asides were excluded.
    fn means(&self, ns_per_cycle: f64) -> Option<(f64, f64, bool)> {
        let Times { timed, covered, sum, squares, asides, .. } = self.times;
        let kept = (timed > 0 && covered > 0.0).then(|| (sum / covered, squares / covered));
        let is_short = kept.is_some_and(|(mean, _)| mean * ns_per_cycle < SHORT_NS);
        let are_few = timed >= asides.count.saturating_mul(KEPT_PER_ASIDE_MIN);
        match kept {
            Some((mean, square)) if is_short && are_few || asides.count == 0 => Some((mean, square, true)),
            _ if self.times.all() == 0 => None,
            // Each kind is weighted by its number of timings.
            _ => {
                let (mean, square) = kept.unwrap_or_default();
                let (timed, n) = (timed as f64, self.times.all() as f64);
                Some(((mean * timed + asides.sum) / n, (square * timed + asides.squares) / n, false))
            }
        }
    }

    /// The times in nanoseconds, and the disturbed timings.
    fn stat(&self, ns_per_cycle: f64, base_cycles: f64) -> Option<(Stat, Disturbed)> {
        let (mean, square, are_disturbed) = self.means(ns_per_cycle)?;
        let Times { asides, .. } = self.times;
        let times = &self.times;
        let n = times.all();
        let used = if are_disturbed { times.timed } else { n };
        let variance = (square - mean * mean).max(0.0);
        let unbiased = if used > 1 { variance * used as f64 / (used - 1) as f64 } else { 0.0 };
        // Times below the base, by a step of the clock, count as zero.
        let ns = |cycles: f64| (cycles - base_cycles).max(0.0) * ns_per_cycle;
        let (min, max) = (ns(times.min), ns(times.max));
        // Extremes are stored with fewer digits than sums.
        let mean = ns(mean).clamp(min, max.max(min));
        let stat = Stat { n, mean, min, max, std: unbiased.sqrt() * ns_per_cycle };
        let total = (asides.sum - asides.count as f64 * base_cycles).max(0.0) * ns_per_cycle;
        let disturbed = if are_disturbed {
            Disturbed { count: asides.count, total_ns: total }
        } else {
            Disturbed::default()
        };
        Some((stat, disturbed))
    }
}

/// Joins all sources into a profile.
pub fn profile(sources: Sources<'_>, symbols: &mut Symbols) -> Profile {
    let head = sources.ledger.view().head();
    let (processes, entries) = sources.ledger.read();
    let mut causes = Causes::default();
    let mut sums: BTreeMap<(Cause, Operation), Sum> = BTreeMap::new();
    let mut paths = Paths::default();
    let (mut operations, mut on_lines, mut timed) = (0_u64, 0_u64, 0_u64);
    let ns_per_cycle = sources.clock.map(Clock::ns_per_tick);
    let base_cycles = head.own.min.load(Relaxed) as f64;
    let mut flames = Vec::new();
    for entry in &entries {
        let stack = in_order(stack(entry, &processes, &mut paths), symbols);
        let cause = causes.cause(&stack, symbols);
        operations = operations.saturating_add(entry.count);
        timed = timed.saturating_add(entry.times.all());
        if cause.place.is_line() {
            on_lines = on_lines.saturating_add(entry.count);
        }
        if sources.flames {
            let mut alone = Sum::default();
            alone.add(entry.count, entry.bytes, &entry.times);
            let stat = ns_per_cycle.and_then(|ns| alone.stat(ns, base_cycles));
            let total_ns = stat.map_or(0.0, |(stat, _)| stat.mean * entry.count as f64);
            let names = names(&stack, symbols);
            flames.push(Flame { names, operation: entry.operation, count: entry.count, total_ns });
        }
        let sum = sums.entry((cause, entry.operation)).or_default();
        sum.add(entry.count, entry.bytes, &entry.times);
    }
    let mut items: Vec<Item> = sums
        .into_iter()
        .map(|((cause, operation), sum)| {
            let stat = ns_per_cycle.and_then(|ns| sum.stat(ns, base_cycles));
            let (times, disturbed) = stat.map_or((None, Disturbed::default()), |(stat, of)| (Some(stat), of));
            let bytes = (sum.bytes > 0).then_some(sum.bytes);
            Item { cause, operation, count: sum.count, bytes, times, disturbed, is_scaled: false }
        })
        .collect();
    let mut disturbed = Disturbed::default();
    items.iter().for_each(|item| disturbed.add(item.disturbed));
    let (mut faults_placed, mut faults_on_lines) = (0, 0);
    if let Some(faults) = &sources.faults {
        let found = fault_items(faults, &mut causes, symbols);
        faults_placed = found.iter().map(|item| item.count).sum();
        faults_on_lines = found.iter().filter(|item| item.cause.place.is_line()).map(|item| item.count).sum();
        items.extend(found);
        if sources.flames {
            let each = sources.minor_fault_ns.unwrap_or(0.0);
            flames.extend(faults.by_stack.iter().map(|((stack, is_major), count)| Flame {
                names: names(stack, symbols),
                operation: fault_operation(*is_major),
                count: *count,
                total_ns: *count as f64 * each,
            }));
        }
    }
    let own_faults_ns = sources.faults.as_ref().map_or(0, |faults| faults.own) as f64
        * sources.minor_fault_ns.unwrap_or_default();
    let own = sources.clock.and_then(|clock| own(sources.ledger, clock, operations, timed, own_faults_ns));
    items.sort_by(|a, b| (&a.cause, a.operation).cmp(&(&b.cause, b.operation)));
    Profile {
        items,
        operations,
        on_lines,
        timed,
        disturbed,
        faults: sources.faults,
        faults_placed,
        faults_on_lines,
        minor_fault_ns: sources.minor_fault_ns,
        own,
        processes: processes.len() as u64,
        early: head.early.load(Relaxed),
        lost: head.lost.load(Relaxed),
        unanswered: head.unanswered.load(Relaxed).into(),
        sources: causes.sources().clone(),
        flames,
    }
}

fn own(ledger: &LedgerFile, clock: &Clock, operations: u64, timed: u64, own_faults_ns: f64) -> Option<Own> {
    let ns_per_cycle = clock.ns_per_tick();
    let own = &ledger.view().head().own;
    let n = own.n.load(Relaxed);
    if n == 0 {
        return None;
    }
    let float = |word: &std::sync::atomic::AtomicU64| f64::from_bits(word.load(Relaxed)) * ns_per_cycle;
    let whole = |word: &std::sync::atomic::AtomicU64| word.load(Relaxed) as f64 * ns_per_cycle;
    let (mean, min, max, std) = (float(&own.mean), whole(&own.min), whole(&own.max), float(&own.std));
    let base = Base { clock: clock.kind().name().to_owned(), n, mean, min, max, std, step: clock.step_ns() };
    let (count_ns, timed_ns) = (float(&own.count), float(&own.timed));
    let rare_ns = ledger.view().head().spent.load(Relaxed) as f64;
    let counted = operations.saturating_sub(timed);
    let total_ns = counted as f64 * count_ns + timed as f64 * timed_ns + rare_ns + own_faults_ns;
    Some(Own { base, count_ns, timed_ns, rare_ns, total_ns })
}

fn fault_operation(is_major: bool) -> Operation {
    Operation::of(if is_major { Kind::MajorFault } else { Kind::MinorFault })
}

/// Faults by cause. If some had no sample, the exact totals are divided in proportion to the samples.
fn fault_items(faults: &Faults, causes: &mut Causes, symbols: &mut Symbols) -> Vec<Item> {
    let mut sums: BTreeMap<(Cause, bool), u64> = BTreeMap::new();
    for ((stack, is_major), count) in &faults.by_stack {
        *sums.entry((causes.cause(stack, symbols), *is_major)).or_default() += count;
    }
    let seen: u64 = sums.values().sum::<u64>() + faults.own;
    let scale = if seen == 0 { 1.0 } else { (seen + faults.lost) as f64 / seen as f64 };
    sums.into_iter()
        .map(|((cause, is_major), count)| Item {
            cause,
            operation: fault_operation(is_major),
            count: (count as f64 * scale).round() as u64,
            bytes: None,
            times: None,
            disturbed: Disturbed::default(),
            is_scaled: faults.lost > 0,
        })
        .collect()
}

/// The process's own record, then its ancestors', the nearest first.
fn lineage(process: u32, processes: &HashMap<u32, Recorded>) -> impl Iterator<Item = &Recorded> {
    let mut next = Some(process);
    std::iter::from_fn(move || {
        let found = processes.get(&next?)?;
        next = found.parent;
        Some(found)
    })
    .take(ANCESTORS_MAX)
}

/// The instructions of an entry's stack, innermost first.
fn stack(entry: &Entry, processes: &HashMap<u32, Recorded>, paths: &mut Paths) -> Vec<Instruction> {
    let direct = [entry.place];
    let addresses: &[u64] = if entry.place & STACK_BIT == 0 {
        &direct
    } else {
        let mut known =
            lineage(entry.process, processes).filter_map(|process| process.stacks.get(&entry.place));
        known.next().map_or(&[], Vec::as_slice)
    };
    addresses
        .iter()
        .map(|&word| {
            if word & LINE_BIT != 0 {
                let mut known =
                    lineage(entry.process, processes).filter_map(|process| process.lines.get(&word));
                let line = known.next().cloned();
                return Instruction { module: None, address: 0, line };
            }
            // A return address: the call ends before it.
            let pc = word.wrapping_sub(1);
            match module_of(pc, entry, processes) {
                Some(module) => Instruction::at(Some(paths.of(&module.path)), pc.wrapping_sub(module.bias)),
                None => Instruction::at(list_of(entry.process, processes), pc),
            }
        })
        .collect()
}

/// The map of code made at run time, from the process or its nearest ancestor that has one.
fn list_of(process: u32, processes: &HashMap<u32, Recorded>) -> Option<Arc<Path>> {
    lineage(process, processes).find_map(|process| jit_map(process.pid)).map(Arc::from)
}

/// The module at `pc` when the entry was made: the last one recorded by then.
fn module_of<'a>(pc: u64, entry: &Entry, processes: &'a HashMap<u32, Recorded>) -> Option<&'a MappedModule> {
    lineage(entry.process, processes).find_map(|process| {
        let there = process.modules.iter().filter(|module| module.start <= pc && pc < module.end);
        there.filter(|module| module.epoch <= entry.epoch).max_by_key(|module| module.epoch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Asides;

    /// Here one cycle is a nanosecond, and the base is zero.
    fn stat(timed: u64, mean: f64, asides: &[f64]) -> (Stat, Disturbed) {
        let sum_of = |power: i32| asides.iter().map(|ns| ns.powi(power)).sum();
        let n = timed as f64;
        let times = Times {
            timed,
            covered: n,
            sum: n * mean,
            squares: n * mean * mean,
            min: asides.iter().copied().fold(if timed > 0 { mean } else { f64::INFINITY }, f64::min),
            max: asides.iter().copied().fold(mean, f64::max),
            asides: Asides { count: asides.len() as u64, sum: sum_of(1), squares: sum_of(2) },
        };
        let mut sum = Sum::default();
        sum.add(timed + asides.len() as u64, 0, &times);
        sum.stat(1.0, 0.0).expect("something was timed")
    }

    #[test]
    fn a_few_long_times_among_short_ones_are_disturbances() {
        let (stat, disturbed) = stat(31, 50.0, &[5e6]);
        assert_eq!((stat.n, stat.mean, stat.min, stat.max, stat.std), (32, 50.0, 50.0, 5e6, 0.0));
        assert_eq!(disturbed, Disturbed { count: 1, total_ns: 5e6 });
    }

    #[test]
    fn many_long_times_are_normal_times() {
        let (half, disturbed) = stat(2, 100.0, &[30e3, 30e3]);
        assert_eq!((half.n, half.mean, disturbed.count), (4, 15_050.0, 0));
        let (only, disturbed) = stat(0, 0.0, &[40e3]);
        assert_eq!((only.n, only.mean, only.min, disturbed.count), (1, 40e3, 40e3, 0));
    }

    #[test]
    fn long_operations_have_no_disturbances() {
        let (stat, disturbed) = stat(9, 5e3, &[95e3]);
        assert_eq!((stat.n, stat.mean, disturbed.count), (10, 14e3, 0));
    }
}
