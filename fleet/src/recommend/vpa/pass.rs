//! One pass over all VerticalPodAutoscaler objects: reads them and their history, and writes their status.
//!
//! The history is read first; without it, nothing else is requested. An object that cannot be written is left
//! for the next pass and does not affect the others. After [`FAILURES_MAX`] failures in a row the pass ends.

use super::object::Object;
use super::status::wanted;
use crate::Error;
use crate::http::Server;
use crate::kube::{Api, ApiError, Method, Watch};
use crate::recommend::decide::Rules;
use crate::recommend::history::{self, Memory};
use serde_json::Value;
use std::io;
use std::time::{Duration, SystemTime};

/// The number of times that an object is read again after a conflict.
const CONFLICTS_MAX: u32 = 4;
/// The number of failures in a row that end a pass.
const FAILURES_MAX: u32 = 5;

/// The settings of a pass.
#[derive(Debug)]
pub struct Pass {
    /// The API server with the objects.
    pub api: Api,
    /// The Prometheus server with their history.
    pub prometheus: Server,
    /// The namespace, or all.
    pub namespace: Option<String>,
    /// The length of the history.
    pub over: Duration,
    /// The rules for the numbers.
    pub rules: Rules,
    /// True if nothing is written.
    pub is_dry: bool,
}

/// The result of a pass.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// A line for each container and each problem, with the reason.
    pub lines: Vec<String>,
    /// Objects that name this recommender.
    pub objects: u64,
    /// Objects whose status was written, or would be in a dry run.
    pub written: u64,
    /// Objects that could not be read or written.
    pub failed: u64,
}

impl Pass {
    /// Makes one pass. `may_write` is called before each write and returns whether this process is still the
    /// leader.
    ///
    /// # Errors
    /// If the history or the objects cannot be read, or the API server refuses everything.
    pub fn run(&self, mut may_write: impl FnMut(&Api) -> Result<bool, ApiError>) -> Result<Summary, Error> {
        let memory = history::containers(&self.prometheus, self.namespace.as_deref(), self.over)?;
        let mut summary = Summary::default();
        if memory.refused > 0 {
            let count = memory.refused;
            summary
                .lines
                .push(format!("{count} series were left out: their labels are no names of Kubernetes"));
        }
        let mut in_a_row = 0;
        let listed = self.api.list(&self.collection());
        for value in listed.map_err(|why| Error(format!("{why}; nothing was changed")))? {
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
                        let last = format!("the last one because of {why}; {} were", summary.written);
                        return Err(Error(format!("{in_a_row} objects in a row cannot be written, {last}")));
                    }
                }
            }
        }
        Ok(summary)
    }

    /// Watches the objects that name this recommender.
    ///
    /// # Errors
    /// An I/O error if the thread cannot be started.
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

    /// Writes an object's status if it has to change. Returns whether this process is the leader.
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
                match self.api.write(Method::Merge, &format!("{path}/status"), patch) {
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

    /// Reads the object again. `None` if it is gone, replaced by another, or no longer names this
    /// recommender.
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

/// Keeps a line in one line.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}
