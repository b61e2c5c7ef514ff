//! Readers of recorded reference strings (which pages a program referenced, in order), as streams.
//!
//! | format | made by | time is counted in |
//! | --- | --- | --- |
//! | lackey text ([`Lackey`]) | `valgrind --tool=lackey --trace-mem=yes --log-file=FILE prog` | instructions |
//! | page trace ([`PageTrace`]) | [`PageTraceWriter`] | the unit in its header |
//!
//! Both readers are iterators of [`Reference`]s or errors. An error names the unreadable line or record;
//! after an error the iterator continues behind it if it can. Neither holds more than a line or a record in
//! memory.
//!
//! ```text
//! bytes ─▶ Trace::open ─(first byte)─▶ Lackey     ─┐
//!                                    ▶ PageTrace  ─┴▶ Reference { page, now } ─▶ Intervals
//! ```

mod binary;
mod lackey;

use std::io::{self, BufRead};

pub use binary::{PageTrace, PageTraceWriter};
pub use lackey::{LINE_MAX, Lackey};
use serde::{Deserialize, Serialize};

use crate::unit::{Page, Ticks};

/// A reference of a recorded string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The page.
    pub page: Page,
    /// Its time.
    pub now: Ticks,
}

/// The unit of a trace's ticks, with its number in page traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// A reference.
    References = 0,
    /// An instruction.
    Instructions = 1,
    /// A nanosecond of user CPU time.
    Nanoseconds = 2,
}

/// The page size for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSize(u32);

impl PageSize {
    /// 4 KiB.
    pub const BASE: Self = Self(12);

    /// A power of 2 from 64 bytes to 1 GiB; `None` for others.
    #[must_use]
    pub fn new(bytes: u64) -> Option<Self> {
        (bytes.is_power_of_two() && (6..=30).contains(&bytes.trailing_zeros()))
            .then(|| Self(bytes.trailing_zeros()))
    }

    /// The bytes of a page.
    #[must_use]
    pub fn bytes(self) -> u64 {
        1 << self.0
    }

    /// The page that an address lies in.
    #[must_use]
    pub fn page_of(self, address: u64) -> Page {
        Page(address >> self.0)
    }
}

/// Errors of reading a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line of another format.
    #[error("line {line} is no memory access ({why}): {text:?}")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// The problem.
        why: &'static str,
        /// The beginning of the line.
        text: String,
    },
    /// A malformed record.
    #[error("record {record}, at byte {offset} of the page trace, {why}")]
    Record {
        /// The number of the record, from 1.
        record: u64,
        /// The offset of the record.
        offset: u64,
        /// The problem.
        why: &'static str,
    },
    /// The header is invalid.
    #[error("this is no page trace that can be read: {0}")]
    Header(&'static str),
    /// The input failed.
    #[error("reading the trace failed after {units} lines or records: {source}")]
    Read {
        /// The amount read before.
        units: u64,
        /// The system's error.
        source: io::Error,
    },
}

impl TraceError {
    /// True if the reader can continue behind the error.
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        matches!(self, Self::Line { .. })
    }

    /// True if the trace ends within a record, for example because its writer was killed. All records before
    /// are valid.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::Record { why, .. } if *why == binary::CUT_OFF)
    }
}

/// A trace of either format.
#[derive(Debug)]
pub enum Trace<R> {
    /// Text of valgrind's lackey.
    Lackey(Lackey<R>),
    /// A page trace in Vellum's binary format.
    Pages(PageTrace<R>),
}

impl<R: BufRead> Trace<R> {
    /// Opens a trace; its first bytes determine the format. Addresses of lackey are assigned to pages of
    /// `page_size`; a page trace has its own page size.
    ///
    /// # Errors
    /// [`TraceError::Read`] if the input fails, [`TraceError::Header`] for a page trace of another version.
    pub fn open(mut source: R, page_size: PageSize) -> Result<Self, TraceError> {
        let first = source.fill_buf().map_err(|source| TraceError::Read { units: 0, source })?.first();
        // Lines of lackey never begin with this byte.
        if first == binary::MAGIC.first() {
            PageTrace::open(source).map(Self::Pages)
        } else {
            Ok(Self::Lackey(Lackey::new(source, page_size)))
        }
    }

    /// The unit of a tick.
    #[must_use]
    pub fn time_unit(&self) -> TimeUnit {
        match self {
            Self::Lackey(_) => TimeUnit::Instructions,
            Self::Pages(trace) => trace.unit,
        }
    }

    /// The size of a page.
    #[must_use]
    pub fn page_size(&self) -> PageSize {
        match self {
            Self::Lackey(trace) => trace.page_size,
            Self::Pages(trace) => trace.page_size,
        }
    }

    /// The time of the last reference read.
    #[must_use]
    pub fn now(&self) -> Ticks {
        match self {
            Self::Lackey(trace) => Ticks(trace.instructions),
            Self::Pages(trace) => trace.before.now,
        }
    }
}

impl<R: BufRead> Iterator for Trace<R> {
    type Item = Result<Reference, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Lackey(trace) => trace.next(),
            Self::Pages(trace) => trace.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_determines_the_format() {
        let open = |bytes: &'static [u8]| Trace::open(bytes, PageSize::BASE);
        assert!(matches!(open(b"I  04,3\n"), Ok(Trace::Lackey(_))));
        assert!(matches!(open(b""), Ok(Trace::Lackey(_))));
        assert!(matches!(open(b"VELPAGE"), Err(TraceError::Header(_))));
        let mut bytes = Vec::new();
        let mut writer = PageTraceWriter::new(&mut bytes, PageSize::BASE, TimeUnit::Nanoseconds).unwrap();
        writer.write(Reference { page: Page(7), now: Ticks(9) }).unwrap();
        let mut trace = Trace::open(&bytes[..], PageSize::new(64).unwrap()).unwrap();
        assert_eq!((trace.time_unit(), trace.page_size()), (TimeUnit::Nanoseconds, PageSize::BASE));
        assert_eq!(trace.next().unwrap().unwrap(), Reference { page: Page(7), now: Ticks(9) });
        assert!(trace.next().is_none() && trace.now() == Ticks(9));
    }

    #[test]
    fn page_sizes_are_powers_of_two() {
        assert_eq!(PageSize::new(4096), Some(PageSize::BASE));
        assert_eq!([0, 32, 4095, 1 << 31].map(PageSize::new), [None; 4]);
        assert_eq!(PageSize::new(1 << 21).unwrap().page_of(3 << 20), Page(1));
    }
}
