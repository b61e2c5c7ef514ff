//! The observations of one run of `vellum heap`: the data from which all of its reports are made.

use super::scope::Scope;
use crate::outcome::Outcome;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vellum_cost::{
    Cause, Causes, Holder, Holding, Instruction, Resident, Spot, in_order, is_entry, is_languages,
    is_standard,
};
use vellum_process::{Ended, Function, Symbols, is_own_library};
use vellum_wire::held::{Amount, BLOCK};

#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) command: Vec<String>,
    pub(crate) program: PathBuf,
    /// The time at which the final figures were taken.
    pub(crate) end: End,
    /// Bytes between samples, on average.
    pub(crate) interval: u64,
    /// Its processes; their stacks are in `stacks`.
    pub(crate) holders: Vec<Holder>,
    pub(crate) stacks: Vec<Stacked>,
    pub(crate) sites: Vec<(Cause, Holding)>,
    /// Free memory that each cause's blocks in use keep resident, most first.
    pub(crate) pinned: Vec<(Cause, u64)>,
    pub(crate) notes: Vec<String>,
    /// Nanoseconds since the start, and the resident bytes of all processes at that time.
    pub(crate) curve: Vec<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) enum End {
    /// The process had ended, with this resource usage.
    Ended(Ended),
    /// A process that this command did not start was observed for a time.
    Looked {
        wall: Duration,
        /// True if the process still ran.
        is_running: bool,
    },
}

/// An instruction of a stack, with its functions.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The file that contains the instruction.
    pub(crate) module: Option<Arc<Path>>,
    pub(crate) address: u64,
    /// The innermost function first, then those it is inlined into. Not empty; each has a name.
    pub(crate) functions: Vec<Function>,
}

/// A stack, innermost first, and the memory it holds.
#[derive(Clone, Debug)]
pub(crate) struct Stacked {
    pub(crate) levels: Vec<Level>,
    pub(crate) holding: Holding,
    pub(crate) site: usize,
    /// The callers of the site's function, innermost first, up to `main`: each with its line, and its name's
    /// length.
    pub(crate) callers: Vec<(String, usize)>,
}

impl Observed {
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.end {
            End::Ended(ended) => Outcome::of(ended.outcome),
            End::Looked { is_running: true, .. } => Outcome::Running,
            End::Looked { is_running: false, .. } => Outcome::Gone,
        }
    }

    pub(crate) fn wall(&self) -> Duration {
        match &self.end {
            End::Ended(ended) => ended.wall,
            End::Looked { wall, .. } => *wall,
        }
    }

    /// Returns whether the program still runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.end, End::Looked { is_running: true, .. })
    }

    /// Bytes that were allocated and are no longer in use.
    pub(crate) fn freed(&self) -> u64 {
        let sum = self.sum();
        sum.ever.bytes.saturating_sub(sum.now.bytes)
    }

    /// The sum over all processes, whose peaks may be at different times.
    pub(crate) fn sum(&self) -> Holding {
        self.holders.iter().fold(Holding::default(), |sum, holder| sum.plus(holder.holding))
    }

    /// The number of processes whose resident memory was counted, and its sum.
    pub(crate) fn resident(&self) -> Option<(usize, Resident)> {
        let mut counted = self.holders.iter().filter_map(|holder| holder.resident.as_ref()).peekable();
        counted.peek()?;
        let mut sum = Resident::default();
        let processes = counted.inspect(|resident| sum.add(resident)).count();
        Some((processes, sum))
    }
}

pub(crate) fn blocks(amount: Amount) -> u64 {
    (amount.blocks + BLOCK / 2) / BLOCK
}

/// The relative standard error of an amount. A sample represents `w` blocks, so `n` samples have the error `1
/// / sqrt(n / (1 - 1 / w))`, which is exact for blocks of one size.
pub(crate) fn error(amount: Amount) -> f64 {
    let (samples, blocks) = (amount.samples as f64, amount.blocks as f64 / BLOCK as f64);
    if samples == 0.0 || blocks <= samples { 0.0 } else { ((1.0 - samples / blocks) / samples).sqrt() }
}

/// The memory that processes hold, with names.
#[derive(Debug)]
pub(crate) struct Named {
    /// Their stacks, most at the peak first.
    pub(crate) stacks: Vec<Stacked>,
    /// The memory that each cause holds, in the same order.
    pub(crate) sites: Vec<(Cause, Holding)>,
    /// See [`Observed::pinned`].
    pub(crate) pinned: Vec<(Cause, u64)>,
}

/// Takes the stacks of all processes, filters them by `scope`, and names them.
pub(crate) fn named(holders: &mut Vec<Holder>, symbols: &mut Symbols, scope: &Scope) -> Named {
    let mut sums: HashMap<Vec<Instruction>, (Holding, u64)> = HashMap::new();
    holders.retain(|holder| scope.has_process(holder.pid));
    for holder in holders {
        if scope.is_of_stacks() {
            (holder.holding, holder.resident) = (Holding::default(), None);
        }
        for held in std::mem::take(&mut holder.stacks) {
            let stack = in_order(held.stack, symbols);
            if scope.is_of_stacks() {
                if !scope.has_stack(&stack, symbols) {
                    continue;
                }
                holder.holding = holder.holding.plus(held.holding);
            }
            let (sum, pins) = sums.entry(stack).or_default();
            *sum = sum.plus(held.holding);
            *pins = pins.saturating_add(held.pins);
        }
    }
    let mut causes = Causes::hiding(scope.wrappers());
    let mut found: BTreeMap<Cause, (Holding, u64, Vec<Stacked>)> = BTreeMap::new();
    for (stack, (holding, pins)) in sums {
        let (cause, (index, function)) = causes.find(&stack, symbols);
        let site = found.entry(cause).or_default();
        (site.0, site.1) = (site.0.plus(holding), site.1 + pins);
        let own = |at: &&Instruction| at.module.as_deref().is_some_and(is_own_library);
        let own = stack.iter().take_while(own).count();
        let levels: Vec<Level> = stack[own..].iter().map(|at| level(at, symbols)).collect();
        let callers = callers(&levels, (index.saturating_sub(own), function));
        site.2.push(Stacked { levels, holding, site: 0, callers });
    }
    let key = |holding: &Holding| std::cmp::Reverse((holding.peak.bytes, holding.ever.bytes));
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (holding, ..))| key(holding));
    let (mut stacks, mut sites, mut pinned) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (cause, (holding, pins, of))) in found.into_iter().enumerate() {
        stacks.extend(of.into_iter().map(|stack| Stacked { site: number, ..stack }));
        if pins > 0 {
            pinned.push((cause.clone(), pins));
        }
        sites.push((cause, holding));
    }
    stacks.sort_by(|a, b| key(&a.holding).cmp(&key(&b.holding)).then_with(|| names(a).cmp(&names(b))));
    pinned.sort_by_key(|(_, pins)| std::cmp::Reverse(*pins));
    Named { stacks, sites, pinned }
}

/// The callers of a function, up to `main` or the start of the program's own code.
fn callers(levels: &[Level], (index, function): Spot) -> Vec<(String, usize)> {
    let outer = levels.iter().enumerate().skip(index).flat_map(|(at, level)| {
        let inlined = if at == index { function + 1 } else { 0 };
        level.functions.iter().skip(inlined).map(move |function| (level, function))
    });
    let mut outer: Vec<_> = outer.collect();
    let name = |function: &Function| function.name.clone().unwrap_or_default();
    let is_script = |level: &Level| level.module.is_none() && level.address == 0;
    let is_first = |(level, function): &(&Level, &Function)| is_script(level) || name(function) == "main";
    let first = outer.iter().rposition(is_first).map(|first| first + 1);
    let entry = || outer.iter().position(|(_, function)| is_entry(&name(function)));
    outer.truncate(first.or_else(entry).unwrap_or(outer.len()));
    while first.is_none()
        && outer.last().is_some_and(|(level, _)| level.module.as_deref().is_some_and(is_languages))
    {
        outer.pop();
    }
    // Addresses are dropped if the same file also has named functions here.
    let is_named = |(level, function): &(&Level, &Function)| {
        name(function) != offset_name(level.module.as_deref(), level.address)
    };
    let named: HashSet<_> = outer.iter().filter(|at| is_named(at)).map(|(level, _)| &level.module).collect();
    outer.retain(|at| (is_named(at) || !named.contains(&at.0.module)) && !is_standard(&name(at.1)));
    let label = |(_, function): &(&Level, &Function)| match (&function.file, function.line) {
        (Some(file), Some(line)) if function.is_users() => {
            format!("{} {}:{line}", name(function), file.rsplit('/').next().unwrap_or(file))
        }
        _ => name(function),
    };
    let mut labels: Vec<_> = outer.iter().map(|at| (label(at), name(at.1).len())).collect();
    labels.dedup();
    labels
}

fn level(at: &Instruction, symbols: &mut Symbols) -> Level {
    if let Some(line) = &at.line {
        let (name, file) = (Some(line.function.to_string()), Some(line.file.clone()));
        let function = Function { name, file, line: Some(line.line) };
        return Level { module: None, address: 0, functions: vec![function] };
    }
    let found = at.module.as_deref().map(|module| symbols.functions(module, at.address));
    let mut functions = found.map_or_else(Vec::new, |found| found.to_vec());
    if functions.is_empty() {
        functions.push(Function::default());
    }
    for function in functions.iter_mut().filter(|function| function.name.is_none()) {
        function.name = Some(offset_name(at.module.as_deref(), at.address));
    }
    Level { module: at.module.clone(), address: at.address, functions }
}

/// The substitute name of a nameless function.
fn offset_name(module: Option<&Path>, address: u64) -> String {
    let file = module.and_then(Path::file_name);
    file.map_or_else(|| "?".to_owned(), |file| format!("{}+{address:#x}", file.to_string_lossy()))
}

/// The names on a stack, outermost first: functions with those inlined into them.
pub(crate) fn names(stack: &Stacked) -> Vec<&str> {
    let functions = stack.levels.iter().rev().flat_map(|level| level.functions.iter().rev());
    functions.map(|function| function.name.as_deref().unwrap_or("?")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_follows_the_number_of_samples() {
        let of = |samples, blocks| error(Amount { bytes: 0, blocks: blocks * BLOCK, samples });
        assert_eq!((of(0, 0), of(1, 1), of(3, 3)), (0.0, 0.0, 0.0));
        assert!((of(100, 1_000_000) - 0.1).abs() < 1e-4);
        assert!((of(100, 200) - 0.1 * 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(blocks(Amount { bytes: 0, blocks: BLOCK * 3 / 2, samples: 1 }), 2);
    }
}
