//! Marks: spans of time in which a possible cause of delay was at work.
//!
//! Timings show that an observation is long, but not why. Collectors, allocators and programs record a mark
//! when they collect, return pages or write a checkpoint. Marks use the clock of the observations' starts, so
//! that a reader of the series can match marks and observations.
//!
//! Invariant: a mark does not end before it starts. Marks may overlap, and come in any order.
//!
//! Source: of the causes of marks, *idle* is from Bates 1999. There, the idle collection ran while the
//! measured thread was in the kernel; he inferred these collections from the order of the long times.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The cause of a [`Mark`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MarkCause {
    /// A collection of the young objects.
    Minor,
    /// A collection of all objects.
    Major,
    /// A slice of collection while the program had nothing to do.
    Idle,
    /// The allocator returned pages to the kernel because memory was short.
    Trim,
    /// The allocator returned pages to the kernel because they had been unused for a while.
    Decay,
    /// A cause of the program's own, by name. If [`MarkCause::parse`] made it, the name is not another
    /// variant's.
    Other(String),
}

/// A span of time in which a cause was at work, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The start.
    pub start_ns: u64,
    /// The end, not before the start.
    pub end_ns: u64,
    /// The cause.
    pub cause: MarkCause,
}

impl MarkCause {
    /// The causes that are not a program's own.
    pub const KNOWN: [Self; 5] = [Self::Minor, Self::Major, Self::Idle, Self::Trim, Self::Decay];

    /// The cause with this word. Unknown words become [`MarkCause::Other`].
    #[must_use]
    pub fn parse(word: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|known| known.word() == word);
        known.unwrap_or_else(|| Self::Other(word.to_owned()))
    }

    /// The word that [`MarkCause::parse`] reads.
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

    /// True if a collector was at work.
    #[must_use]
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::Minor | Self::Major | Self::Idle)
    }

    /// True if an allocator was at work.
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
