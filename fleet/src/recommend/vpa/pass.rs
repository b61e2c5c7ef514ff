//! One pass over all objects: read, decide, write.
//!
//! The history is read first; without it, nothing else is requested. An object that cannot be written is left
//! for the next pass and does not affect the others. After [`FAILURES_MAX`] failures in a row the pass ends.

use super::object::Object;
use super::status::wanted;
use crate::http::Server;
use crate::kube::{Api, ApiError, Watch};
use crate::prometheus::HistoryError;
use crate::recommend::containers::{self, Memory, Question};
use crate::recommend::decide::Rules;
use serde_json::Value;
use std::io;
use std::time::{Duration, SystemTime};

/// How often an object is read again that somebody else changed meanwhile.
const CONFLICTS_MAX: u32 = 4;
/// This many failures one after the other end a pass.
const FAILURES_MAX: u32 = 5;

/// What is passed over.
#[derive(Debug)]
pub struct Pass {
    /// Where objects are.
    pub api: Api,
    /// Where their history is.
    pub prometheus: Server,
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// How far back.
    pub over: Duration,
    /// What numbers are made by.
    pub rules: Rules,
    /// Whether nothing is written.
    pub is_dry: bool,
}

/// What came of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// A line for each container and each trouble, with its reason.
    pub lines: Vec<String>,
    /// Objects that ask for our numbers.
    pub objects: u64,
    /// Objects whose status was, or would be, written.
    pub written: u64,
    /// Objects that could not be read or written.
    pub failed: u64,
}

/// There was no pass, or it ended early.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// There is no history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The objects cannot be listed, or the lease is not known.
    #[error("{0}; nothing was changed")]
    Api(#[from] ApiError),
    /// One object after the other cannot be written.
    #[error("{failures} objects in a row cannot be written, the last one because of {why}; {written} were")]
    Refused {
        /// How many.
        failures: u32,
        /// Why the last one.
        why: ApiError,
        /// Those that were.
        written: u64,
    },
}

impl Pass {
    /// Passes once. Before each write `may_write` is asked, which says whether this is (still) the leader.
    ///
    /// # Errors
    /// [`PassError`] if there is no history, or no list of objects, or the API server refuses everything.
    pub fn run(
        &self,
        mut may_write: impl FnMut(&Api) -> Result<bool, ApiError>,
    ) -> Result<Summary, PassError> {
        let question = Question {
            prometheus: self.prometheus.clone(),
            namespace: self.namespace.clone(),
            over: self.over,
        };
        let memory = containers::ask(&question)?;
        let mut summary = Summary::default();
        if memory.refused > 0 {
            let count = memory.refused;
            summary
                .lines
                .push(format!("{count} series were left out: their labels are no names of Kubernetes"));
        }
        let mut in_a_row = 0;
        for value in self.api.list(&self.collection())? {
            let object = match Object::read(&value) {
                Ok(object) if object.is_ours() => object,
                Ok(_) => continue,
                Err(why) => {
                    summary.failed += 1;
                    summary.lines.push(clean(&format!("an object is left alone: it cannot be read: {why}")));
                    continue;
                }
            };
            summary.objects += 1;
            let whose = format!("{}/{}", object.metadata.namespace, object.metadata.name);
            match self.write(object, &memory, &mut summary, &mut may_write) {
                Ok(true) => in_a_row = 0,
                Ok(false) => {
                    summary.lines.push("another recommender is the leader".to_owned());
                    break;
                }
                Err(why) => {
                    summary.failed += 1;
                    summary.lines.push(clean(&format!("{whose}: not written: {why}")));
                    in_a_row += 1;
                    if in_a_row == FAILURES_MAX {
                        let written = summary.written;
                        return Err(PassError::Refused { failures: in_a_row, why, written });
                    }
                }
            }
        }
        Ok(summary)
    }

    /// Watches the objects that ask for our numbers.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn watch(&self) -> io::Result<Watch> {
        let asks = |value: &Value| Object::read(value).is_ok_and(|object| object.is_ours());
        Watch::start(self.api.clone(), self.collection(), asks)
    }

    fn collection(&self) -> String {
        match &self.namespace {
            Some(namespace) => {
                format!("/apis/autoscaling.k8s.io/v1/namespaces/{namespace}/verticalpodautoscalers")
            }
            None => "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers".to_owned(),
        }
    }

    /// Writes an object's status, if it is not as it should be. Whether this is the leader.
    fn write(
        &self,
        mut object: Object,
        memory: &Memory,
        summary: &mut Summary,
        may_write: &mut impl FnMut(&Api) -> Result<bool, ApiError>,
    ) -> Result<bool, ApiError> {
        let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone());
        let path =
            format!("/apis/autoscaling.k8s.io/v1/namespaces/{namespace}/verticalpodautoscalers/{name}");
        let mut conflicts = 0;
        loop {
            let wanted = wanted(&object, memory, &self.rules);
            let patch = wanted.patch(&object, SystemTime::now());
            if let (Some(patch), false) = (&patch, self.is_dry) {
                if !may_write(&self.api)? {
                    return Ok(false);
                }
                match self.api.merge(&format!("{path}/status"), patch) {
                    Ok(_) => {}
                    Err(ApiError::Conflict(_)) if conflicts < CONFLICTS_MAX => {
                        conflicts += 1;
                        match self.again(&path, &object)? {
                            Some(now) => object = now,
                            None => return Ok(true),
                        }
                        continue;
                    }
                    Err(why) => return Err(why),
                }
            }
            let lines = wanted.lines.iter().map(|line| clean(&format!("{namespace}/{name} {line}")));
            summary.lines.extend(lines);
            summary.written += u64::from(patch.is_some());
            return Ok(true);
        }
    }

    /// The same object as it is now; `None` if it is gone, or another of its name, or no longer asks for us.
    fn again(&self, path: &str, before: &Object) -> Result<Option<Object>, ApiError> {
        let value: Value = match self.api.get(path) {
            Ok(value) => value,
            Err(ApiError::Missing(_)) => return Ok(None),
            Err(why) => return Err(why),
        };
        let object = Object::read(&value).map_err(|why| ApiError::Nonsense { what: path.to_owned(), why })?;
        let is_same = object.metadata.uid == before.metadata.uid
            && object.metadata.name == before.metadata.name
            && object.metadata.namespace == before.metadata.namespace;
        Ok(Some(object).filter(|object| is_same && object.is_ours()))
    }
}

/// A line stays one.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}
