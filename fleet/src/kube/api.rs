//! A client for Kubernetes' REST API, which reads and writes objects.
//!
//! Temporary failures are retried ([`Patience`]). A repeated write does no harm, because each write names the
//! version of the object that it changes. A conflict (409) is returned to the caller, who must read the
//! object again.

use crate::http::{HttpError, Limits, Method, Patience, Server};
use serde_json::Value;
use std::io::Read;
use std::time::Duration;

/// The maximum length of an answer. A page of objects is also limited by its count.
const BYTES_MAX: u64 = 64 << 20;
/// The number of objects in a page of a list, and of pages.
const PAGE: usize = 500;
const PAGES_MAX: usize = 2000;

/// A request has failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Another program has changed the object.
    #[error("{0}: somebody else changes it all the time")]
    Conflict(String),
    /// The object does not exist.
    #[error("{0}: not found (404); are its namespace and its custom resource definition there?")]
    Missing(String),
    /// The server refuses the request, or does not answer.
    #[error("{what}: {source}")]
    Http {
        /// The object.
        what: String,
        /// The reason.
        source: HttpError,
    },
    /// The answer is not a Kubernetes object.
    #[error("{what}: the answer is no object of Kubernetes ({why})")]
    Nonsense {
        /// The object.
        what: String,
        /// The reason.
        why: String,
    },
}

/// An API server.
#[derive(Debug, Clone)]
pub struct Api {
    server: Server,
    patience: Patience,
}

impl Api {
    /// An API server, without a connection yet.
    #[must_use]
    pub fn new(server: Server, patience: Patience) -> Api {
        Api { server, patience }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`ApiError`] if the object cannot be read.
    pub fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.call(Method::Get, path, None)
    }

    /// Creates an object, replaces it, or changes a part of it.
    ///
    /// # Errors
    /// [`ApiError`] if the server refuses to, or does not answer.
    pub fn write(&self, method: Method, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.call(method, path, Some(object))
    }

    /// Reads all objects of a list, page by page.
    ///
    /// # Errors
    /// [`ApiError`] if any page cannot be read: a partial list is never returned.
    pub fn list(&self, path: &str) -> Result<Vec<Value>, ApiError> {
        self.list_at(path).map(|(all, _)| all)
    }

    /// Reads all objects of a list, and the list's version.
    pub(super) fn list_at(&self, path: &str) -> Result<(Vec<Value>, String), ApiError> {
        let (mut all, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let more = match next.as_str() {
                "" => String::new(),
                next => format!("&continue={}", crate::address::encoded(next)),
            };
            let mut page = self.get(&format!("{path}?limit={PAGE}{more}"))?;
            let Value::Array(items) = page["items"].take() else {
                let why = "there is no list of items in it".to_owned();
                return Err(ApiError::Nonsense { what: path.to_owned(), why });
            };
            all.extend(items);
            match page["metadata"]["continue"].as_str().unwrap_or_default() {
                "" => {
                    let version = page["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                    return Ok((all, version.to_owned()));
                }
                more => next = more.to_owned(),
            }
        }
        let why = format!("it has more than {PAGES_MAX} pages");
        Err(ApiError::Nonsense { what: path.to_owned(), why })
    }

    /// The body of an answer as a stream, within these limits.
    pub(super) fn follow(&self, path: &str, limits: &Limits) -> Result<impl Read + use<>, ApiError> {
        self.server.follow(path, limits).map_err(|source| ApiError::Http { what: bare(path), source })
    }

    /// The pause before the next of endless requests, after that many failures in a row.
    pub(super) fn pause_after(&self, failures: u32) -> Duration {
        (self.patience.pause * 2_u32.saturating_pow(failures.min(16))).min(self.patience.most)
    }

    fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let json = self.server.ask(method, path, body.as_bytes(), BYTES_MAX, &self.patience);
        let json = json.map_err(|why| match why.status() {
            Some(409) => ApiError::Conflict(bare(path)),
            Some(404) => ApiError::Missing(bare(path)),
            _ => ApiError::Http { what: bare(path), source: why },
        })?;
        let nonsense = |why: String| ApiError::Nonsense { what: bare(path), why };
        match serde_json::from_slice::<Value>(&json) {
            Ok(object @ Value::Object(_)) => Ok(object),
            Ok(_) => Err(nonsense("it is not in braces".to_owned())),
            Err(why) => Err(nonsense(why.to_string())),
        }
    }
}

/// The path without its query.
fn bare(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::http::Access;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let server = Server::new(Address::parse("http://h", "").unwrap(), &Access::default()).unwrap();
        let api = Api::new(server, Patience::default());
        let pauses = [0, 1, 2, 3, 16, u32::MAX].map(|failures| api.pause_after(failures).as_millis());
        assert_eq!(pauses, [500, 1000, 2000, 4000, 10_000, 10_000]);
    }
}
