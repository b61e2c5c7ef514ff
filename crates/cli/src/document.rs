//! Common parts of the JSON documents about one run of a program: fields, and source locations (file, line,
//! function). Also reads saved documents back, for comparisons.

use crate::failure::Failure;
use crate::outcome::Outcome;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use vellum_cost::{Cause, Place};
use vellum_process::Ended;

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
    /// The head of a document of this schema, about a run of `command`, whose file is `program`.
    pub(crate) fn new(
        schema: &'static str,
        command: &'a [String],
        program: &Path,
        ended: &Ended,
    ) -> Head<'a> {
        let status = Some(ended.outcome.shell_status());
        Self::of_look(schema, command, program, (Outcome::of(ended.outcome), status), ended.wall)
    }

    /// The head for a process observed during `wall`: its state then, and its exit status if available.
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

/// A document: its head, and the content of the command.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    pub(crate) head: Head<'a>,
    #[serde(flatten)]
    pub(crate) body: Value,
}

/// A place in the form of documents. [`cause`] reads it back.
pub(crate) fn place(place: &Place) -> Value {
    match place {
        Place::Line { file, line, function } => {
            json!({"kind": "line", "file": **file, "line": line, "function": **function})
        }
        Place::Function { module, function } => {
            json!({"kind": "function", "module": **module, "function": **function})
        }
        Place::Offset { module, offset } => json!({"kind": "offset", "module": **module, "offset": offset}),
        Place::Unknown => json!({"kind": "unknown"}),
    }
}

/// A saved document, and the command that writes such documents.
#[derive(Debug)]
pub(crate) struct Saved<'a> {
    pub(crate) path: &'a Path,
    pub(crate) schema: &'static str,
    /// The command that writes such documents.
    pub(crate) maker: &'static str,
}

impl Saved<'_> {
    fn failed(&self, what: &str) -> Failure {
        let (path, maker) = (self.path.display(), self.maker);
        Failure::because(format!("{path}: {what}; name two files that `{maker}` wrote"))
    }

    /// The document.
    ///
    /// # Errors
    /// If the file cannot be read, or is of another schema.
    pub(crate) fn document(&self) -> Result<Value, Failure> {
        let text = std::fs::read(self.path).map_err(|error| self.failed(&error.to_string()))?;
        let document: Value = serde_json::from_slice(&text).map_err(|_| self.failed("it is not JSON"))?;
        match document["schema"] == self.schema {
            true => Ok(document),
            false => Err(self.failed(&format!("its schema is not {}", self.schema))),
        }
    }

    /// The results of `read` for each entry of the document's list `name`.
    ///
    /// # Errors
    /// As [`Saved::document`]; and if `read` returns `None` for an entry.
    pub(crate) fn entries<T>(
        &self,
        list: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let document = self.document()?;
        let entries = document[list].as_array().ok_or_else(|| self.failed(&format!("it has no {list}")))?;
        let each =
            |entry| read(entry).ok_or_else(|| self.failed(&format!("one of its {list} is unknown: {entry}")));
        entries.iter().map(each).collect()
    }
}

/// The cause of an entry: its `place` and `via`.
pub(crate) fn cause(entry: &Value) -> Option<Cause> {
    let place = &entry["place"];
    let text = |name: &str| place[name].as_str().map(Into::into);
    let place = match place["kind"].as_str()? {
        "line" => Place::Line {
            file: text("file")?,
            line: place["line"].as_u64()?.try_into().ok()?,
            function: text("function")?,
        },
        "function" => Place::Function { module: text("module")?, function: text("function")? },
        "offset" => Place::Offset { module: text("module")?, offset: place["offset"].as_u64()? },
        "unknown" => Place::Unknown,
        _ => return None,
    };
    Some(Cause { place, via: entry["via"].as_str().map(Into::into) })
}
