//! The parser of the job table, `jobs.toml`. The whole table is checked before any job is started or changed.
//!
//! ```text
//! text ─▶ raw (TOML with positions) ─▶ check ─▶ Config
//!            └───────────┬─────────────┘
//!                        ▼
//!                  ConfigError: line, fault, reason, remedy
//! ```
//!
//! A table with an error is refused as a whole: governing half of it would be worse than governing nothing.
//! All values have defaults, except a job's name and its origin (a command, or running processes).

mod check;
mod error;
pub(crate) mod quantity;
mod raw;

pub use error::ConfigError;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_kernel::{Bytes, Pid};
use vellum_workset::Criterion;

/// The most jobs in a table.
pub const JOBS_MAX: usize = 256;
/// The longest name of a job, in bytes.
pub const NAME_MAX: usize = 32;
/// The most urgent priority; 0 is the least.
pub const PRIORITY_MAX: u8 = 9;
/// A job's priority by default.
pub const PRIORITY_DEFAULT: u8 = 5;
/// The largest job table, in bytes.
pub const TABLE_BYTES_MAX: u64 = 1 << 20;

/// The budget of all jobs together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// So much.
    Bytes(Bytes),
    /// A part of the machine's memory, from 0 to 1.
    Part(f64),
}

impl Budget {
    /// The budget on a machine with `total` bytes.
    pub fn of(self, total: Bytes) -> Bytes {
        match self {
            Budget::Bytes(bytes) => bytes,
            Budget::Part(part) => Bytes((total.0 as f64 * part) as u64),
        }
    }
}

/// A job table, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The budget of all jobs.
    pub budget: Budget,
    /// Between two decisions.
    pub period: Duration,
    /// The part of time that tasks may stall on memory before nothing more is taken from any job.
    pub brake: f64,
    /// The waiting time after which a suspended job's urgency rises by one.
    pub turn: Duration,
    /// The longest that a job is suspended without a break.
    pub longest_suspension: Duration,
    /// The directory of the sockets; `None` for the usual place.
    pub directory: Option<PathBuf>,
    /// The address of the metrics; `None` for nowhere. A loopback address.
    pub metrics: Option<SocketAddr>,
    /// The control group below which each started job gets its own; `None` for none.
    pub groups: Option<PathBuf>,
    /// The jobs, in the table's order, with different names.
    pub jobs: Vec<JobConfig>,
}

/// A job of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct JobConfig {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The command, process or control group.
    pub origin: Origin,
    /// Its urgency, 0 to [`PRIORITY_MAX`], the most urgent.
    pub priority: u8,
    /// Δ: the sampling interval of its user CPU time.
    pub delta: Duration,
    /// By what its past fades at each cycle of looks; 1 for not at all.
    pub alpha: f64,
    /// Which space-time product is to be least.
    pub criterion: Criterion,
    /// ε: the most waiting for a unit of work that is agreed to.
    pub cap: f64,
}

/// The origin of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// A program to start.
    Command(CommandConfig),
    /// A process that runs, with its descendants.
    Pid(Pid),
    /// The processes of a control group and those below it.
    Group(PathBuf),
}

/// A program to start.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandConfig {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// As whom; `None` for the governor's own user.
    pub user: Option<User>,
    /// Where.
    pub directory: Option<PathBuf>,
    /// Variables added to the governor's own environment.
    pub environment: Vec<(String, String)>,
    /// The file that its output is appended to; `None` for the governor's standard error.
    pub output: Option<PathBuf>,
    /// True if it is started again when it has ended.
    pub restart: Restart,
    /// True if it runs on Vellum's memory.
    pub runtime: bool,
}

/// A user to run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The further groups.
    pub groups: Vec<u32>,
}

/// When a job is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Never.
    #[default]
    Never,
    /// When it ended with another status than 0, or by a signal.
    OnFailure,
    /// Always.
    Always,
}

impl Config {
    /// Reads and checks the table in the file `path`. Relative paths in it are relative to the file.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_path_buf(), source };
        let long = path.metadata().map_err(unreadable)?.len();
        if long > TABLE_BYTES_MAX {
            return Err(ConfigError::TooLong { path: path.to_path_buf(), bytes: long });
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Config::parse(&text, path, folder.unwrap_or(Path::new(".")))
    }

    /// Checks the table `text`, called `path` in errors, whose relative paths begin at `folder`.
    pub fn parse(text: &str, path: &Path, folder: &Path) -> Result<Config, ConfigError> {
        let at = error::Place { path, text };
        let table: raw::Table = toml::from_str(text).map_err(|error| at.toml(&error))?;
        check::Checker { at, folder }.config(table)
    }
}
