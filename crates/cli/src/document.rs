//! What the JSON documents about one run of a program have in common: their head, and how they say a place.

use crate::outcome::Outcome;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use vellum_cost::Place;
use vellum_process::Ended;

/// The head of a document.
#[derive(Debug, Serialize)]
pub(crate) struct Head<'a> {
    schema: &'static str,
    vellum_version: &'static str,
    command: &'a [String],
    program: String,
    outcome: Outcome,
    exit_status: Option<u8>,
    wall_ns: u64,
}

impl<'a> Head<'a> {
    /// Of a run of `command`, whose file is `program`, in a document of this schema.
    pub(crate) fn new(
        schema: &'static str,
        command: &'a [String],
        program: &Path,
        ended: &Ended,
    ) -> Head<'a> {
        let status = Some(ended.outcome.shell_status());
        Self::of_look(schema, command, program, (Outcome::of(ended.outcome), status), ended.wall)
    }

    /// Of a process that was looked at for this time: how it stood then, and its exit status if it is known.
    pub(crate) fn of_look(
        schema: &'static str,
        command: &'a [String],
        program: &Path,
        (outcome, exit_status): (Outcome, Option<u8>),
        wall: Duration,
    ) -> Head<'a> {
        Head {
            schema,
            vellum_version: env!("CARGO_PKG_VERSION"),
            command,
            program: program.display().to_string(),
            outcome,
            exit_status,
            wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// A place in a program.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Where<'a> {
    Line { file: &'a str, line: u32, function: &'a str },
    Function { module: &'a str, function: &'a str },
    Offset { module: &'a str, offset: u64 },
    Unknown,
}

impl<'a> Where<'a> {
    /// The same in these terms.
    pub(crate) fn of(place: &'a Place) -> Where<'a> {
        match place {
            Place::Line { file, line, function } => Where::Line { file, line: *line, function },
            Place::Function { module, function } => Where::Function { module, function },
            Place::Offset { module, offset } => Where::Offset { module, offset: *offset },
            Place::Unknown => Where::Unknown,
        }
    }
}
