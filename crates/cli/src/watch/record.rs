//! Writes and reads the record of a watch as JSON: a header, then a line for each frame (state at a moment).
//!
//! Each line is written with one call, so a crash or a full disk loses later lines only. An incomplete last
//! line is skipped by the reader, and reported.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use vellum_reference::{Availability, Delay, Frame, Options, SourceKind};

const SCHEMA: &str = "vellum.watch/1";
/// The most frames that are read from a file.
const FRAMES_MAX: usize = 1 << 20;
/// The longest valid line, in bytes.
const LINE_MAX: u64 = 1 << 20;

/// The data that is constant during a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(super) schema: String,
    pub(super) vellum_version: String,
    pub(super) subject: String,
    pub(super) source: SourceKind,
    /// The sources that this machine, or this process's privilege, lacks.
    #[serde(default)]
    pub(super) absent: Vec<Absent>,
    pub(super) delta_ns: u64,
    pub(super) budget: f64,
    #[serde(default)]
    pub(super) idle_budget: f64,
    #[serde(default)]
    pub(super) burst_ns: u64,
    pub(super) started_unix_ns: u64,
    /// S; null if it could not be measured.
    pub(super) delay: Option<Delay>,
}

impl Header {
    pub(super) fn new(
        subject: String,
        options: &Options,
        source: SourceKind,
        delay: Option<Delay>,
    ) -> Header {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Header {
            schema: SCHEMA.to_owned(),
            vellum_version: env!("CARGO_PKG_VERSION").to_owned(),
            subject,
            source,
            absent: absent(source),
            delta_ns: options.delta.as_nanos() as u64,
            budget: options.budget,
            idle_budget: options.idle_budget,
            burst_ns: options.burst.as_nanos() as u64,
            started_unix_ns: since.as_nanos() as u64,
            delay,
        }
    }
}

/// A source that could not be used, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Absent {
    /// The name of the source; an old record may name a removed source.
    pub(super) source: String,
    pub(super) why: String,
}

/// All unusable sources, without `used`.
fn absent(used: SourceKind) -> Vec<Absent> {
    let why = |source: SourceKind| match source.availability() {
        Availability::Usable => None,
        Availability::Absent(why) => Some(why),
    };
    let others = SourceKind::ALL.into_iter().filter(|source| *source != used);
    others.filter_map(|source| Some(Absent { source: source.to_string(), why: why(source)? })).collect()
}

#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    pub(super) fn create(path: &Path, header: &Header) -> Result<Record, Failure> {
        let file = File::create(path).map_err(|error| unopened(path, error))?;
        let mut record = Record { path: path.to_owned(), file };
        record.put(header)?;
        Ok(record)
    }

    pub(super) fn put(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let line = vellum_report::json(line).map_err(|error| error.source);
        let written = line.and_then(|line| self.file.write_all(line.as_bytes()));
        written.map_err(|error| {
            let path = self.path.display();
            Failure::because(format!(
                "{path}: cannot be written: {error}; the lines recorded before are complete"
            ))
        })
    }
}

fn unopened(path: &Path, error: std::io::Error) -> Failure {
    Failure::because(format!("{}: cannot be opened: {error}", path.display()))
}

#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) header: Header,
    pub(super) frames: Vec<Frame>,
    /// True if the last line was incomplete.
    pub(super) cut: bool,
}

impl Recorded {
    pub(super) fn read(path: &Path) -> Result<Recorded, Failure> {
        let name = path.display();
        let other = |why: &str| {
            Failure::because(format!(
                "{name}: not a recorded watch ({why}); `vellum watch --record FILE` writes one"
            ))
        };
        let failed = |error| unopened(path, error);
        let mut text = BufReader::new(File::open(path).map_err(failed)?);
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| {
            line.clear();
            text.by_ref().take(LINE_MAX).read_until(b'\n', line).map_err(failed)
        };
        next(&mut line)?;
        let header: Header = serde_json::from_slice(&line)
            .map_err(|why| other(&format!("no header in its first line: {why}")))?;
        if header.schema != SCHEMA {
            return Err(other(&format!("its schema is \"{}\", not \"{SCHEMA}\"", header.schema)));
        }
        let mut recorded = Recorded { header, frames: Vec::new(), cut: false };
        while recorded.frames.len() < FRAMES_MAX && next(&mut line)? > 0 {
            match serde_json::from_slice(&line) {
                Ok(frame) => recorded.frames.push(frame),
                Err(_) if line.last() != Some(&b'\n') => recorded.cut = true,
                Err(_) => {
                    let line = recorded.frames.len() + 2;
                    return Err(Failure::because(format!(
                        "{name}: line {line} is not a measurement; the lines before it can be read: cut the file there"
                    )));
                }
            }
        }
        if recorded.frames.is_empty() {
            return Err(other("the file holds a header and no measurement"));
        }
        Ok(recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_with_a_removed_source_is_readable() {
        let options = Options::default();
        let mut header = Header::new("job".to_owned(), &options, SourceKind::AccessedBits, None);
        header.absent = vec![Absent { source: "idle-bitmap".to_owned(), why: "no such file".to_owned() }];
        let read: Header = serde_json::from_str(&vellum_report::json(&header).unwrap()).unwrap();
        assert_eq!(read, header);
    }
}
