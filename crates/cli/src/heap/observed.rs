//! The observations of one run of `vellum heap`, from which all of its outputs are made.

use crate::outcome::Outcome;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vellum_cost::{Cause, Causes, Holder, Holding, Instruction, Resident, in_order};
use vellum_process::{Ended, Function, Symbols, is_own_library};
use vellum_wire::held::{Amount, BLOCK};

/// The observations of one run.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The command as it was given.
    pub(crate) command: Vec<String>,
    /// The file.
    pub(crate) program: PathBuf,
    /// When the figures that are called those of the end were taken.
    pub(crate) end: End,
    /// Bytes between samples, on average.
    pub(crate) interval: u64,
    /// Its processes; their stacks are in `stacks`.
    pub(crate) holders: Vec<Holder>,
    /// All processes' stacks.
    pub(crate) stacks: Vec<Stacked>,
    /// What each cause holds.
    pub(crate) sites: Vec<(Cause, Holding)>,
    /// Free memory that each cause's blocks in use keep resident, most first.
    pub(crate) pinned: Vec<(Cause, u64)>,
    /// Things to know about the report, in words.
    pub(crate) notes: Vec<String>,
}

/// The moment at which it was looked at last.
#[derive(Debug)]
pub(crate) enum End {
    /// It had ended, and what the kernel accounted.
    Ended(Ended),
    /// Somebody else had started it, and it was looked at for a time.
    Looked {
        /// For how long.
        wall: Duration,
        /// Whether it ran still.
        is_running: bool,
    },
}

/// An instruction of a stack, with its functions.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The file it lies in.
    pub(crate) module: Option<Arc<Path>>,
    /// Its address in that file's own terms.
    pub(crate) address: u64,
    /// The innermost function first, then those it is inlined into. Not empty; each has a name.
    pub(crate) functions: Vec<Function>,
}

/// A stack, innermost first, and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Stacked {
    pub(crate) levels: Vec<Level>,
    pub(crate) holding: Holding,
}

impl Observed {
    /// How the program ended.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.end {
            End::Ended(ended) => Outcome::of(ended.outcome),
            End::Looked { is_running: true, .. } => Outcome::Running,
            End::Looked { is_running: false, .. } => Outcome::Gone,
        }
    }

    /// For how long it was observed.
    pub(crate) fn wall(&self) -> Duration {
        match &self.end {
            End::Ended(ended) => ended.wall,
            End::Looked { wall, .. } => *wall,
        }
    }

    /// Whether the program still runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.end, End::Looked { is_running: true, .. })
    }

    /// All processes together; their peaks need not have been at one time.
    pub(crate) fn sum(&self) -> Holding {
        self.holders.iter().fold(Holding::default(), |sum, holder| sum.plus(holder.holding))
    }
}

impl Observed {
    /// How many processes' resident memory was counted, and what that was.
    pub(crate) fn resident(&self) -> Option<(usize, Resident)> {
        let mut counted = self.holders.iter().filter_map(|holder| holder.resident.as_ref()).peekable();
        counted.peek()?;
        let mut sum = Resident::default();
        let processes = counted.inspect(|resident| sum.add(resident)).count();
        Some((processes, sum))
    }
}

/// Whole blocks.
pub(crate) fn blocks(amount: Amount) -> u64 {
    (amount.blocks + BLOCK / 2) / BLOCK
}

/// The standard error of an amount, as a part of it: a sample stands for `w` blocks, so that of `n` samples
/// the error is one in `sqrt(n / (1 - 1 / w))`, exactly so for blocks of one size.
pub(crate) fn error(amount: Amount) -> f64 {
    let (samples, blocks) = (amount.samples as f64, amount.blocks as f64 / BLOCK as f64);
    if samples == 0.0 || blocks <= samples { 0.0 } else { ((1.0 - samples / blocks) / samples).sqrt() }
}

/// What processes hold, with names.
#[derive(Debug)]
pub(crate) struct Named {
    /// Their stacks, most at the peak first.
    pub(crate) stacks: Vec<Stacked>,
    /// What each cause holds, in the same order.
    pub(crate) sites: Vec<(Cause, Holding)>,
    /// See [`Observed::pinned`].
    pub(crate) pinned: Vec<(Cause, u64)>,
}

/// Takes the stacks of all processes, and gives them names.
pub(crate) fn named(holders: &mut [Holder], symbols: &mut Symbols) -> Named {
    let mut sums: HashMap<Vec<Instruction>, (Holding, u64)> = HashMap::new();
    for held in holders.iter_mut().flat_map(|holder| std::mem::take(&mut holder.stacks)) {
        let (sum, pins) = sums.entry(in_order(held.stack, symbols)).or_default();
        *sum = sum.plus(held.holding);
        *pins = pins.saturating_add(held.pins);
    }
    let mut causes = Causes::default();
    let mut sites: BTreeMap<Cause, Holding> = BTreeMap::new();
    let mut pinned: BTreeMap<Cause, u64> = BTreeMap::new();
    let mut stacks: Vec<Stacked> = Vec::new();
    for (stack, (holding, pins)) in sums {
        let cause = causes.cause(&stack, symbols);
        if pins > 0 {
            *pinned.entry(cause.clone()).or_default() += pins;
        }
        let site = sites.entry(cause).or_default();
        *site = site.plus(holding);
        let own = |at: &&Instruction| at.module.as_deref().is_some_and(is_own_library);
        let levels = stack.iter().skip_while(own).map(|at| level(at, symbols)).collect();
        stacks.push(Stacked { levels, holding });
    }
    let key = |holding: &Holding| std::cmp::Reverse((holding.peak.bytes, holding.ever.bytes));
    stacks.sort_by(|a, b| key(&a.holding).cmp(&key(&b.holding)).then_with(|| names(a).cmp(&names(b))));
    let mut sites: Vec<_> = sites.into_iter().collect();
    sites.sort_by_key(|(_, holding)| key(holding));
    let mut pinned: Vec<_> = pinned.into_iter().collect();
    pinned.sort_by_key(|(_, pins)| std::cmp::Reverse(*pins));
    Named { stacks, sites, pinned }
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
        let file = at.module.as_deref().and_then(Path::file_name);
        function.name = Some(match file {
            Some(file) => format!("{}+{:#x}", file.to_string_lossy(), at.address),
            None => "?".to_owned(),
        });
    }
    Level { module: at.module.clone(), address: at.address, functions }
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
    fn errors_are_those_of_the_samples() {
        let of = |samples, blocks| error(Amount { bytes: 0, blocks: blocks * BLOCK, samples });
        assert_eq!((of(0, 0), of(1, 1), of(3, 3)), (0.0, 0.0, 0.0));
        assert!((of(100, 1_000_000) - 0.1).abs() < 1e-4);
        assert!((of(100, 200) - 0.1 * 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(blocks(Amount { bytes: 0, blocks: BLOCK * 3 / 2, samples: 1 }), 2);
    }
}
