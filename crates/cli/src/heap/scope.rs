//! Filter options of `vellum heap`: the stacks that a report covers, and the wrappers of `malloc` to skip.

use regex::Regex;
use std::path::Path;
use vellum_cost::{Holder, Instruction, Wrappers};
use vellum_process::Symbols;

/// The options.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Scope {
    /// Also skip functions whose names match this regular expression, and name their callers instead, as for
    /// xmalloc, operator new and allocators of runtimes. May be repeated.
    #[arg(long, value_name = "PATTERN", value_parser = expression)]
    pub(crate) hide: Vec<Regex>,

    /// Only memory that was allocated by a function whose name matches this regular expression, or by
    /// functions that it called.
    #[arg(long, value_name = "PATTERN", value_parser = expression)]
    pub(crate) function: Option<Regex>,

    /// Only memory that was allocated by a function of a file (program, library, or script) whose path
    /// matches this regular expression, or by functions that it called.
    #[arg(long, value_name = "PATTERN", value_parser = expression)]
    pub(crate) module: Option<Regex>,

    /// Only processes with these numbers, separated by commas.
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
}

fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

impl Scope {
    pub(super) fn wrappers(&self) -> Wrappers {
        Wrappers::new(self.hide.clone())
    }

    pub(super) fn has_process(&self, pid: u32) -> bool {
        self.pid.is_empty() || self.pid.contains(&pid)
    }

    /// True if it excludes some stacks of a process.
    pub(super) fn is_of_stacks(&self) -> bool {
        self.function.is_some() || self.module.is_some()
    }

    pub(super) fn has_stack(&self, stack: &[Instruction], symbols: &mut Symbols) -> bool {
        let is_file = |pattern: &Regex, at: &Instruction| {
            let file = at.line.as_ref().map(|line| line.file.as_ref().into());
            let file = file.or_else(|| at.module.as_deref().map(Path::to_string_lossy));
            file.is_some_and(|file| pattern.is_match(&file))
        };
        let mut is_function = |pattern: &Regex, at: &Instruction| match (&at.line, &at.module) {
            (Some(line), _) => pattern.is_match(&line.function),
            (None, Some(module)) => {
                let functions = symbols.functions(module, at.address);
                let mut names = functions.iter().filter_map(|function| function.name.as_deref());
                names.any(|name| pattern.is_match(name))
            }
            (None, None) => false,
        };
        let (function, module) = (self.function.as_ref(), self.module.as_ref());
        module.is_none_or(|pattern| stack.iter().any(|at| is_file(pattern, at)))
            && function.is_none_or(|pattern| stack.iter().any(|at| is_function(pattern, at)))
    }

    /// A note on the excluded memory; `holders` are the processes that remain.
    pub(super) fn note(&self, holders: &[Holder]) -> Option<String> {
        let patterns = [("--function", &self.function), ("--module", &self.module)];
        let patterns =
            patterns.into_iter().filter_map(|(name, of)| Some(format!("{name} '{}'", of.as_ref()?)));
        let of: Vec<String> = patterns.chain(self.pid.iter().map(|pid| format!("--pid {pid}"))).collect();
        let found = holders.iter().any(|holder| holder.holding.ever.samples > 0);
        let found = if found { "only a part is shown" } else { "nothing is shown: no sample matches" };
        (!of.is_empty()).then(|| format!("{found}: {}", of.join(", ")))
    }
}
