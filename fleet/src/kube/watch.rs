//! Watches a list of Kubernetes objects, to notice changes as they happen.
//!
//! ```text
//! list ─▶ its version ─▶ watch from it ─▶ event, event, event, …    ─▶ end ─▶ watch from the last version
//!   ▲                                                        └─ that version is too old (410) ─┐
//!   └──────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A thread reads the events, counts changes, and wakes the caller, which reads the objects again. An
//! object has changed if it is new or has another `generation`. Writing a status does not change the
//! generation, so a recommender is not woken by its own writes.
//!
//! The watch is optional. If it fails, [`Watch::trouble`] gives the reason and the thread tries again;
//! callers read the objects at intervals anyway.
//!
//! Invariants: a line is at most [`LINE_MAX`] long. There is a pause between two requests, even after a
//! success. A gap in the events is counted as a change.
//!
//! Source: Kubernetes' documentation, "Efficient detection of changes".

use super::{Api, ApiError};
use crate::address::encoded;
use crate::http::Limits;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The maximum length of an event. An object has at most 1.5 MiB in etcd.
const LINE_MAX: u64 = 4 << 20;
/// The requested duration of a watch, in seconds.
const LASTS: u64 = 240;
/// The connection is closed after this time if the server does not end the watch.
const LIMITS: Limits = Limits { bytes: 1 << 30, time: Duration::from_secs(LASTS + 30) };
/// The status for a version that the server no longer has.
const GONE: u16 = 410;

/// The results of the thread.
#[derive(Debug, Default)]
struct Told {
    changes: AtomicU64,
    trouble: Mutex<Option<String>>,
    stop: AtomicBool,
}

/// A list that is watched until this value is dropped.
#[derive(Debug)]
pub struct Watch {
    told: Arc<Told>,
    wake: UnixStream,
}

impl Watch {
    /// Watches the objects of the list at `path` for which `wanted` is true.
    pub(crate) fn start(api: Api, path: String, wanted: fn(&Value) -> bool) -> io::Result<Watch> {
        let (wake, bell) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let told = Arc::new(Told::default());
        let theirs = Arc::clone(&told);
        let mut follower =
            Follower { api, path, wanted, told: theirs, bell, known: HashMap::new(), failures: 0 };
        std::thread::Builder::new().name("watch".into()).spawn(move || follower.run())?;
        Ok(Watch { told, wake })
    }

    /// Becomes readable when something has changed.
    #[must_use]
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The number of changes since the last call. A gap counts as one change.
    #[must_use]
    pub fn take(&self) -> u64 {
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        self.told.changes.swap(0, Ordering::AcqRel)
    }

    /// The reason for which changes are not noticed at once.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.told.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread may be waiting for an event: it ends at the next one, or with the process.
        self.told.stop.store(true, Ordering::Release);
    }
}

/// An event, as Kubernetes writes it.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl Event {
    /// Parses a line, or returns the reason for which it is invalid. `None` if the version from which to
    /// continue no longer exists.
    fn read(line: &[u8]) -> Result<Option<Event>, String> {
        let event: Event = serde_json::from_slice(line).map_err(|why| why.to_string())?;
        match event.kind.as_str() {
            "ERROR" if event.object["code"] == GONE => Ok(None),
            "ERROR" => Err(event.object["message"].as_str().unwrap_or("an error").to_owned()),
            _ if event.version().is_empty() => Err("an event without a version".to_owned()),
            _ => Ok(Some(event)),
        }
    }

    /// The version from which to continue.
    fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }
}

/// The version in the event in these bytes.
pub fn version(line: &[u8]) -> Option<String> {
    Event::read(line).ok()?.map(|event| event.version().to_owned())
}

struct Follower {
    api: Api,
    path: String,
    wanted: fn(&Value) -> bool,
    told: Arc<Told>,
    bell: UnixStream,
    /// The generation of each object, by UID.
    known: HashMap<String, i64>,
    /// The number of failures since the last event.
    failures: u32,
}

impl Follower {
    fn run(&mut self) {
        let (mut version, mut is_first) = (None, true);
        while !self.told.stop.load(Ordering::Acquire) {
            let done = match &mut version {
                None => self.list(is_first).map(|listed| {
                    version = Some(listed);
                    is_first = false;
                    true
                }),
                Some(version) => self.follow(version),
            };
            match done {
                Ok(true) => {}
                Ok(false) => {
                    version = None;
                    self.failures += 1;
                }
                Err(why) => {
                    self.tell(Some(why.to_string()));
                    self.failures += 1;
                    // The same version would only give the same invalid answer.
                    version = version.filter(|_| !matches!(why, ApiError::Nonsense { .. }));
                }
            }
            std::thread::sleep(self.api.pause_after(self.failures));
        }
    }

    /// Reads the list and returns its version, from which changes are events.
    fn list(&mut self, is_first: bool) -> Result<String, ApiError> {
        let (objects, version) = self.api.list_at(&self.path)?;
        if version.is_empty() {
            return Err(self.nonsense("the list has no version"));
        }
        let wanted = objects.iter().filter(|object| (self.wanted)(object));
        self.known = wanted.filter_map(identity).collect();
        if !is_first {
            self.ring();
        }
        Ok(version)
    }

    /// Follows events from a version on, and updates the version at each event. Returns false if the server
    /// no longer has that version.
    fn follow(&mut self, version: &mut String) -> Result<bool, ApiError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={LASTS}&resourceVersion={}",
            self.path,
            encoded(version)
        );
        let body = match self.api.follow(&path, &LIMITS) {
            Ok(body) => body,
            Err(ApiError::Http { source, .. }) if source.status() == Some(GONE) => return Ok(false),
            Err(why) => return Err(why),
        };
        let (mut body, mut line) = (BufReader::new(body), Vec::new());
        loop {
            line.clear();
            // A connection that breaks off, or is quiet until its end, is opened again.
            match body.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(1..) if line.ends_with(b"\n") => {}
                Ok(read) if read as u64 == LINE_MAX => return Err(self.nonsense("an event without end")),
                _ => return Ok(true),
            }
            if self.told.stop.load(Ordering::Acquire) {
                return Ok(true);
            }
            let read = Event::read(&line).map_err(|why| self.nonsense(&why))?;
            let Some(event) = read else { return Ok(false) };
            event.version().clone_into(version);
            self.tell(None);
            self.failures = 0;
            self.take_in(&event);
        }
    }

    fn take_in(&mut self, event: &Event) {
        let Some((uid, generation)) = identity(&event.object) else { return };
        let has_changed = match event.kind.as_str() {
            "ADDED" | "MODIFIED" if (self.wanted)(&event.object) => {
                self.known.insert(uid, generation) != Some(generation)
            }
            "ADDED" | "MODIFIED" | "DELETED" => {
                self.known.remove(&uid);
                false
            }
            // Bookmarks, which concern no object, and unknown kinds.
            _ => false,
        };
        if has_changed {
            self.ring();
        }
    }

    fn ring(&mut self) {
        self.told.changes.fetch_add(1, Ordering::AcqRel);
        // If the pipe is full, it is already readable.
        let _ = self.bell.write(&[0]);
    }

    fn tell(&self, trouble: Option<String>) {
        *self.told.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn nonsense(&self, why: &str) -> ApiError {
        ApiError::Nonsense { what: self.path.clone(), why: why.to_owned() }
    }
}

fn identity(object: &Value) -> Option<(String, i64)> {
    let metadata = &object["metadata"];
    let generation = metadata["generation"].as_i64().unwrap_or_default();
    metadata["uid"].as_str().map(|uid| (uid.to_owned(), generation))
}
