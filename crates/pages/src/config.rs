//! The settings of the page layer: the policy on huge pages, the discard mode, the decay time and others.

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

/// Advice to the kernel on pages that nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Discard {
    /// The cheapest of the modes.
    #[default]
    Auto,
    /// No advice (the source's NP).
    None,
    /// Pages are marked (PO).
    Marks,
    /// Pages are marked, and flushed when memory is short (PP).
    Pager,
    /// Pages are marked, and flushed after a major collection (PU).
    User,
    /// Pages are flushed after a major collection, and not marked before.
    FlushOnly,
}

impl Discard {
    /// The names by which users choose.
    pub const NAMES: [(&'static str, Discard); 6] = [
        ("auto", Discard::Auto),
        ("none", Discard::None),
        ("marks", Discard::Marks),
        ("pager", Discard::Pager),
        ("user", Discard::User),
        ("flush_only", Discard::FlushOnly),
    ];

    /// The mode called `name`.
    pub fn by_name(name: &[u8]) -> Option<Discard> {
        Discard::NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|&(_, mode)| mode)
    }

    /// True if pages are marked as soon as nobody needs them.
    pub(crate) fn marks_at_once(self) -> bool {
        matches!(self, Discard::Marks | Discard::Pager | Discard::User)
    }

    /// True if a major collection is followed by a flush.
    pub(crate) fn flushes_after_collections(self) -> bool {
        matches!(self, Discard::User | Discard::FlushOnly)
    }

    pub(crate) fn follows_pressure(self) -> bool {
        matches!(self, Discard::Auto | Discard::Pager)
    }

    /// True if the cache decays and keeps to the peak, by the rules of `release`. The modes that flush after
    /// collections follow them in a process that has never `collected`.
    pub(crate) fn decays(self, has_collected: bool) -> bool {
        self == Discard::Auto || self.flushes_after_collections() && !has_collected
    }
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
