//! A client for the parts of Kubernetes' API that `vellum recommend kubernetes` needs.
//!
//! ```text
//! Api        reads and writes objects by REST, retries temporary failures, returns conflicts
//! Lease      elects a leader: only the leader writes
//! Watch      notices changed objects
//! quantity   "64Mi" ─▶ bytes
//! ```
//!
//! Source: Kubernetes' documentation, "Kubernetes API Concepts"; client-go `tools/leaderelection`.

mod api;
mod lease;
mod quantity;
mod watch;

pub use crate::http::{Method, Patience};
pub use api::{Api, ApiError};
pub use lease::{Lease, LeaseName};
pub use quantity::bytes;
pub use watch::{Watch, version};

use chrono::{DateTime, SecondsFormat, Utc};
use std::time::SystemTime;

/// A time in the format of conditions.
pub(crate) fn seconds(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A time in the format of leases.
pub(crate) fn micros(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// True if this is a valid name of a container or namespace (RFC 1123, label).
pub fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_part(name)
}

/// True if this is a valid name of a pod or other object (RFC 1123, subdomain).
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_part)
}

fn is_part(part: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(known) && !part.starts_with('-') && !part.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_and_names_follow_kubernetes() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_250);
        assert_eq!(seconds(time), "2023-11-14T22:13:20Z");
        assert_eq!(micros(time), "2023-11-14T22:13:20.000250Z");
        assert!(is_label("a-b1") && is_name("web-0.example") && is_name(&"x".repeat(253)));
        for wrong in ["", "-a", "a-", "A", "a/b", "a\"b", "a b", "ä", "a\n"] {
            assert!(!is_label(wrong) && !is_name(wrong), "{wrong:?}");
        }
        assert!(!is_label("a.b") && !is_label(&"x".repeat(64)) && !is_name("a..b"));
    }
}
