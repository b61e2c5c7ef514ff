//! The reader: parses text lines into series and summaries, and returns them one at a time.
//!
//! ```text
//! bytes ─▶ line ─▶ header, body ─▶ values: a series is opened ┐
//!                                  column, marks, facts: added ├─▶ entry, when the next one begins
//!                                  summary ───────────────────┘
//! ```
//!
//! Invariants:
//! - memory holds one line and one series, whatever the length of the file; only memory limits a line;
//! - every line is an entry, part of an entry, blank, a comment (`#`) or an error: none is skipped silently;
//! - after a malformed line that may belong to another series, no line is added to the earlier series.

use std::io::{self, BufRead};

use super::body::{self, More};
use super::error::{LineError, Place, Problem, ReadError, shown};
use super::header::{Header, Role};
use super::words::Words;
use crate::{Series, Summary};

/// The number of errors of skipped lines that are kept; all are counted.
pub const SKIPPED_KEPT_MAX: usize = 1000;

/// The treatment of malformed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// End with the line's error.
    #[default]
    Refuse,
    /// Store the line's error ([`Reader::skipped`]) and continue with the next line.
    Skip,
}

/// Lines that were skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skipped {
    /// The first [`SKIPPED_KEPT_MAX`] errors, in order.
    pub errors: Vec<LineError>,
    /// The number of skipped lines.
    pub count: u64,
}

/// The content of one line, or of several that belong together.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and the larger is the usual one")]
pub enum Entry {
    /// Observations.
    Series(Series),
    /// The five figures of a series.
    Summary(Summary),
}

/// Reads the line format: an iterator over entries, in the order of the file.
///
/// ```
/// use vellum_measure::line::{Entry, OnError, Reader};
///
/// let text = "BASE:1l:Observation::Time:us 486 402 431\nBASE:1l:Observation::Time:us 4x2\n";
/// let mut reader = Reader::new(text.as_bytes(), OnError::Skip);
/// let Some(Ok(Entry::Series(series))) = reader.next() else { panic!("the first line is a series") };
/// assert_eq!(series.walls(), [486.0, 402.0, 431.0]);
/// assert!(reader.next().is_none());
/// let error = &reader.skipped().errors[0];
/// assert_eq!((error.line, error.column), (2, 30));
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    on_error: OnError,
    /// The current line; reused for its capacity.
    line: Vec<u8>,
    lines: u64,
    open: Option<Open>,
    /// An entry read behind an open series, before that series was returned.
    next: Option<Entry>,
    skipped: Skipped,
    ended: bool,
}

/// A series to which lines may still be added.
#[derive(Debug)]
struct Open {
    series: Series,
    /// The quantities already added.
    said: Vec<&'static str>,
}

impl<R: BufRead> Reader<R> {
    /// A reader of all of `input`.
    pub fn new(input: R, on_error: OnError) -> Self {
        Self {
            input,
            on_error,
            line: Vec::new(),
            lines: 0,
            open: None,
            next: None,
            skipped: Skipped::default(),
            ended: false,
        }
    }

    /// The lines that were skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// The number of lines read so far, including blank lines and remarks.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads the next line into `self.line`, without its end; `false` at the end of the input.
    fn fetch(&mut self) -> io::Result<bool> {
        self.line.clear();
        if self.input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        if self.line.ends_with(b"\n") {
            self.line.pop();
        }
        if self.line.ends_with(b"\r") {
            self.line.pop();
        }
        self.lines += 1;
        Ok(true)
    }

    /// Takes the current line. Returns the entry that it completes.
    fn take(&mut self) -> Result<Option<Entry>, LineError> {
        // Blank, or a remark, in any encoding.
        let first = self.line.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
        if first.is_none_or(|first| self.line[first] == b'#') {
            return Ok(None);
        }
        let line = self.lines;
        let text = std::str::from_utf8(&self.line).map_err(|error| {
            let column = error.valid_up_to() + 1;
            LineError { line, column, problem: Problem::NotText }
        })?;
        let mut words = Words::new(text);
        let (column, word) = words.next().unwrap_or((1, ""));
        let place = Place { line, column };
        let header = Header::parse(word, place)?;
        // Values and figures are parsed before the open series is closed: an error leaves the series open.
        match header.role {
            Role::Values => {
                let values = body::values(words, place)?;
                let Header { name, labels, quantity, unit, .. } = header;
                let series = Series { labels, ..Series::plain(name, quantity, unit, values) };
                let before = self.open.replace(Open { series, said: Vec::new() });
                Ok(before.map(|open| Entry::Series(open.series)))
            }
            Role::Summary => {
                let stat = body::summary(words, place)?;
                let Header { name, labels, quantity, unit, .. } = header;
                let summary = Entry::Summary(Summary { name, labels, quantity, unit, stat });
                Ok(Some(match self.close() {
                    None => summary,
                    Some(before) => {
                        self.next = Some(summary);
                        before
                    }
                }))
            }
            Role::Column | Role::Marks | Role::About => {
                let Some(open) = self.open.as_mut().filter(|open| open.is_of(&header)) else {
                    let (quantity, name) = (shown(&header.quantity), shown(&header.name));
                    return Err(place.error(Problem::Orphan { quantity, name }));
                };
                open.add(More::parse(&header, words, place)?, place)?;
                Ok(None)
            }
        }
    }

    fn close(&mut self) -> Option<Entry> {
        self.open.take().map(|open| Entry::Series(open.series))
    }

    /// True if the open series stays open after the current line's error.
    fn still_clear(&self, error: &LineError) -> bool {
        // A malformed column, mark or fact about the series still has a header, which shows its series.
        let text = std::str::from_utf8(&self.line).unwrap_or_default();
        let header = Words::new(text)
            .next()
            .and_then(|(column, word)| Header::parse(word, Place { line: error.line, column }).ok());
        let (Some(header), Some(open)) = (header, &self.open) else { return false };
        !matches!(header.role, Role::Values | Role::Summary) && open.is_of(&header)
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.next.take() {
            return Some(Ok(entry));
        }
        while !self.ended {
            match self.fetch() {
                Ok(true) => {}
                Ok(false) => {
                    self.ended = true;
                    return self.close().map(Ok);
                }
                Err(source) => {
                    self.ended = true;
                    return Some(Err(ReadError::Io { line: self.lines, source }));
                }
            }
            match self.take() {
                Ok(Some(entry)) => return Some(Ok(entry)),
                Ok(None) => {}
                Err(error) if self.on_error == OnError::Refuse => {
                    self.ended = true;
                    return Some(Err(error.into()));
                }
                Err(error) => {
                    let before = if self.still_clear(&error) { None } else { self.close() };
                    self.skipped.count += 1;
                    if self.skipped.errors.len() < SKIPPED_KEPT_MAX {
                        self.skipped.errors.push(error);
                    }
                    if before.is_some() {
                        return before.map(Ok);
                    }
                }
            }
        }
        None
    }
}

impl Open {
    fn is_of(&self, header: &Header) -> bool {
        self.series.name == header.name && self.series.labels == header.labels
    }

    /// Adds a whole line or nothing.
    fn add(&mut self, more: More, place: Place) -> Result<(), LineError> {
        let quantity = more.quantity;
        if self.said.contains(&quantity) {
            return Err(place.error(Problem::Twice(quantity)));
        }
        let expected = self.series.observations.len();
        if let Some(found) = more.cells.filter(|found| *found != expected) {
            return Err(place.error(Problem::Length { quantity, found, expected }));
        }
        (more.add)(&mut self.series);
        self.said.push(quantity);
        Ok(())
    }
}
