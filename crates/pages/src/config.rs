//! Settings of the page layer.

use crate::discard::Discard;

/// The policy on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HugePolicy {
    /// For memory that has proved dense (`huge_window.rs`).
    #[default]
    Auto,
    /// For every cold block that could use them, at once.
    Always,
    /// Never.
    Never,
}

/// Settings of the page layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Milliseconds that cached frames may go unused before they are flushed; 0 flushes at the next free.
    pub decay_ms: u32,
    /// The policy on huge pages.
    pub huge: HugePolicy,
    /// Advice to the kernel on pages that nobody needs, and when.
    pub discard: Discard,
}

impl Config {
    /// The default settings.
    pub const DEFAULT: Config = Config { decay_ms: 1000, huge: HugePolicy::Auto, discard: Discard::Auto };
    /// The longest decay accepted: an hour.
    pub const DECAY_MS_MAX: u32 = 3_600_000;
}

impl Default for Config {
    fn default() -> Self {
        Config::DEFAULT
    }
}

/// The memory that a trim takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Cached frames become discardable: the kernel takes them if it needs them.
    Mark,
    /// Cached frames are given back; discardable ones stay.
    Flush,
    /// Everything not in use is given back.
    Everything,
}
