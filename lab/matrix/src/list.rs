//! The rows of the matrix, from `matrix/programs.toml`. The list is part of the executable, so that tests
//! copied elsewhere have it.

use super::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const LIST: &str = include_str!("../programs.toml");

/// How a program is run. See [the module above](super).
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Without Vellum.
    Plain,
    /// By `LD_PRELOAD` alone.
    Preloaded,
    /// Under `vellum run`.
    Run,
    /// Under `vellum run --frames`.
    Frames,
    /// Under `vellum run --libgc`.
    Libgc,
}

impl Mode {
    /// Those compared with [`Mode::Plain`], in the order of the table.
    pub const COMPARED: [Mode; 4] = [Mode::Preloaded, Mode::Run, Mode::Frames, Mode::Libgc];

    /// The mode's name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Preloaded => "preloaded",
            Mode::Run => "run",
            Mode::Frames => "frames",
            Mode::Libgc => "libgc",
        }
    }
}

/// One program, and what to do with it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name: of the row, of its folder.
    pub name: String,
    /// Debian's packages that have what it needs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Programs without which the row is skipped.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A shell command that prints a version; else the first package's is shown.
    pub version: Option<String>,
    /// A shell command that fails where the row cannot be run, and prints why.
    pub check: Option<String>,
    /// Only root can do it.
    #[serde(default)]
    pub root: bool,
    /// Makes the input, once, without Vellum; every run gets a copy of the folder.
    pub prepare: Option<String>,
    /// The work, for `/bin/sh`.
    pub script: String,
    /// Exit status of the plain run; another one means that the row is wrong here.
    #[serde(default)]
    pub status: i32,
    /// Modes beside `preloaded` and `run`.
    #[serde(default)]
    pub modes: Vec<Mode>,
    /// Modes of all rows that do not apply, with the reason.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Regular expressions for what differs from run to run, with what takes its place.
    #[serde(default)]
    pub filters: Vec<(String, String)>,
    /// The order of lines differs from run to run.
    #[serde(default)]
    pub sorted: bool,
    /// How often each mode is run, where a fault is a matter of luck.
    pub runs: Option<u32>,
    /// The deadline of one run.
    pub seconds: Option<u64>,
    /// Part of the fast matrix.
    #[serde(default)]
    pub fast: bool,
}

impl Row {
    /// Whether the row asks for `mode`, or why not.
    pub fn wants(&self, mode: Mode) -> Result<bool, &str> {
        if let Some(why) = self.without.get(mode.name()) {
            return Err(why);
        }
        Ok(matches!(mode, Mode::Plain | Mode::Preloaded | Mode::Run) || self.modes.contains(&mode))
    }
}

#[derive(Deserialize)]
struct List {
    row: Vec<Row>,
}

/// All rows.
///
/// # Errors
/// If the list is not what it should be.
pub fn rows() -> Result<Vec<Row>, Error> {
    Ok(toml::from_str::<List>(LIST)?.row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The least number of programs that the matrix promises.
    const ROWS_MIN: usize = 120;

    #[test]
    fn the_list_is_whole() {
        let rows = rows().expect("a list");
        assert!(rows.len() >= ROWS_MIN, "{} rows", rows.len());
        let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
        assert_eq!(names.len(), rows.len(), "two rows have one name");
        for row in &rows {
            assert!(
                row.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c)),
                "{}",
                row.name
            );
            assert!(!row.needs.is_empty(), "{} needs nothing", row.name);
            for (filter, _) in &row.filters {
                regex::bytes::Regex::new(filter).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            }
            assert!(
                row.without.keys().all(|key| Mode::COMPARED.iter().any(|mode| mode.name() == key)),
                "{}",
                row.name
            );
        }
        assert!(rows.iter().filter(|row| row.modes.contains(&Mode::Frames)).count() >= 20);
        assert!(rows.iter().filter(|row| row.modes.contains(&Mode::Libgc)).count() >= 5);
    }
}
