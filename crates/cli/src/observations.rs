//! The reader of observation files (saved timings) for `vellum obs` and `vellum plot`.
//!
//! ```text
//! FILE or standard input ─▶ first byte '{'? ─▶ JSON, whole ─▶ entries
//!                                   else    ─▶ lines, one series at a time ─▶ entries
//!                          └─ a line that cannot be read: reported and skipped, or refused (--strict)
//! ```
//!
//! Invariant: nothing is skipped silently. The first bad lines of a file are reported one by one, and all
//! bad lines are counted.

use crate::failure::Failure;
use clap::ValueHint;
use regex::Regex;
use rustix::termios::isatty;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use vellum_measure::filter::Filter;
use vellum_measure::line::{Entry, OnError, ReadError, Reader, Skipped};
use vellum_measure::{Series, json};

const BUFFER_BYTES: usize = 1 << 20;
/// Bad lines of a file that are reported one by one.
const TOLD_MAX: usize = 5;
/// The name of standard input.
const STDIN: &str = "-";

/// The input files, and the treatment of unreadable lines.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Input {
    /// Files of observations, as lines or as JSON (schema vellum.observations/1). Default, or "-": standard
    /// input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Stop with an error at the first line that cannot be read. Otherwise such lines are reported and
    /// skipped.
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A selection from the contents of a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Choice {
    /// Only entries with a label that matches this regular expression, such as "arm=B".
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) label: Option<Regex>,

    /// Only these quantities, separated by commas: the quantity of a line, such as Time, or one recorded with
    /// it: Start, Cpu, MinorFaults, MajorFaults, Voluntary, Involuntary, Steal.
    #[arg(long, value_name = "QUANTITY", value_delimiter = ',')]
    pub(crate) select: Vec<String>,
}

/// A selection by name, too.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Named {
    /// Only entries whose name matches this regular expression.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    grep: Option<Regex>,

    #[command(flatten)]
    choice: Choice,
}

impl Named {
    pub(crate) fn filter(&self) -> Filter {
        self.choice.filter(self.grep.as_ref())
    }
}

impl Input {
    /// Passes every entry of every file to `take`, in order.
    pub(crate) fn each(&self, mut take: impl FnMut(Entry) -> Result<(), Failure>) -> Result<(), Failure> {
        let stdin = [PathBuf::from(STDIN)];
        let files = if self.files.is_empty() { &stdin } else { self.files.as_slice() };
        for path in files {
            if path == Path::new(STDIN) {
                if isatty(rustix::stdio::stdin()) {
                    say!("vellum: reading observations from the terminal; end them with Ctrl-D");
                }
                self.entries("standard input", io::stdin().lock(), &mut take)?;
            } else {
                let file = File::open(path).map_err(|error| Failure::open(path, error))?;
                let file = BufReader::with_capacity(BUFFER_BYTES, file);
                self.entries(&path.display().to_string(), file, &mut take)?;
            }
        }
        Ok(())
    }

    /// All series that pass the filter, the number of summaries that do, and that of all entries.
    pub(crate) fn series(&self, filter: &Filter) -> Result<(Vec<Series>, usize, usize), Failure> {
        let (mut all, mut summaries, mut read) = (Vec::new(), 0, 0);
        self.each(|entry| {
            read += 1;
            for entry in filter.apply(entry) {
                match entry {
                    Entry::Series(series) => all.push(series),
                    Entry::Summary(_) => summaries += 1,
                }
            }
            Ok(())
        })?;
        Ok((all, summaries, read))
    }

    fn entries(
        &self,
        name: &str,
        mut input: impl BufRead,
        take: &mut impl FnMut(Entry) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let unread = |error: &dyn Display| Failure::because(format!("{name}: {error}"));
        let first = input.fill_buf().map_err(|source| unread(&ReadError::Io { line: 0, source }))?;
        let first = first.iter().find(|byte| !byte.is_ascii_whitespace());
        if first == Some(&b'{') {
            let all = json::read(input).map_err(|error| unread(&error))?;
            return all.into_iter().map(Entry::Series).try_for_each(take);
        }
        let on_error = if self.strict { OnError::Refuse } else { OnError::Skip };
        let mut reader = Reader::new(input, on_error);
        for entry in reader.by_ref() {
            take(entry.map_err(|error| unread(&error))?)?;
        }
        tell(name, reader.skipped());
        Ok(())
    }
}

impl Choice {
    /// The filter for these choices, and for a name if one is given.
    pub(crate) fn filter(&self, name: Option<&Regex>) -> Filter {
        let (name, label, quantities) = (name.cloned(), self.label.clone(), self.select.clone());
        Filter { name, label, quantities, ranges: None }
    }
}

/// A regular expression.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

fn tell(file: &str, skipped: &Skipped) {
    for error in skipped.errors.iter().take(TOLD_MAX) {
        say!("vellum: {file}: {error}");
    }
    match skipped.count {
        0 => {}
        1 => say!("vellum: {file}: 1 line skipped; --strict makes it an error"),
        n => say!("vellum: {file}: {n} lines skipped; --strict makes them an error"),
    }
}
