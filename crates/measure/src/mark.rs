//! Marks: spans of time in which a known cause was at work.
//!
//! A timing tool sees that an observation is long. A collector knows when it collected, an allocator when it
//! gave pages back, a program when it wrote its checkpoint. Each records a mark, on the clock of the
//! observations' starts, and a later reader of the series lays the two over each other.
//!
//! Invariant: a mark does not end before it starts. Marks may overlap, and come in any order.
//!
//! Source: the words are those of the collector plans (minor, major) and of Bates' "idle" collection. That
//! ran while the measured thread was in the kernel; he had to infer it from the order of long times.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was at work in a [`Mark`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MarkCause {
    /// A collection of the young objects.
    Minor,
    /// A collection of all objects.
    Major,
    /// A slice of collection while the program had nothing to do.
    Idle,
    /// The allocator gave pages back because memory was short.
    Trim,
    /// The allocator gave pages back because nobody had needed them for a while.
    Decay,
    /// Something of the program's own, by name; never the word of one of the others if made by
    /// [`MarkCause::parse`].
    Other(String),
}

/// A span of time in which something known was at work, nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When it began.
    pub start_ns: u64,
    /// When it ended, not before its start.
    pub end_ns: u64,
    /// What it was.
    pub cause: MarkCause,
}

impl MarkCause {
    /// The cause with this word. Every text is one: an unknown word becomes [`MarkCause::Other`].
    #[must_use]
    pub fn parse(word: &str) -> Self {
        match word {
            "minor" => Self::Minor,
            "major" => Self::Major,
            "idle" => Self::Idle,
            "trim" => Self::Trim,
            "decay" => Self::Decay,
            other => Self::Other(other.to_owned()),
        }
    }

    /// What [`MarkCause::parse`] reads.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Idle => "idle",
            Self::Trim => "trim",
            Self::Decay => "decay",
            Self::Other(word) => word,
        }
    }

    /// Whether a collector was at work.
    #[must_use]
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::Minor | Self::Major | Self::Idle)
    }

    /// Whether an allocator was at work.
    #[must_use]
    pub fn is_allocator(&self) -> bool {
        matches!(self, Self::Trim | Self::Decay)
    }
}

impl fmt::Display for MarkCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl From<String> for MarkCause {
    fn from(word: String) -> Self {
        Self::parse(&word)
    }
}

impl From<MarkCause> for String {
    fn from(cause: MarkCause) -> Self {
        cause.word().to_owned()
    }
}
