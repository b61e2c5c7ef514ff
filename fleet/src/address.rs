//! The address of a server: `http://HOST:PORT/PATH`, or the same with `https`.
//!
//! Invariant: an address contains no user name, and no character that could end a request's line.

use crate::Error;
use std::fmt;

/// A server's address with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// True for TLS: the server must have a certificate, and the connection is encrypted.
    pub is_secure: bool,
    /// The host, with the port unless it is the default.
    pub authority: String,
    /// The path and query.
    pub path: String,
}

impl Address {
    /// Parses `text`; `path` is the default path.
    ///
    /// # Errors
    /// If the address is invalid or contains a user's name.
    pub fn parse(text: &str, path: &str) -> Result<Address, Error> {
        let wrong =
            || Error(format!("{text:?}: write http://HOST:PORT or https://HOST:PORT, without a user's name"));
        let plain = text.strip_prefix("http://").map(|rest| (false, rest));
        let (is_secure, rest) =
            plain.or_else(|| Some((true, text.strip_prefix("https://")?))).ok_or_else(wrong)?;
        let (authority, own) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, path),
        };
        let clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        // An IPv6 address has its colons in brackets.
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            Some((host, port)) => (host, port.parse::<u16>().is_ok()),
            None => (authority, true),
        };
        let is_host = !host.is_empty() && !host.contains(['@', '?', '#', '\\']);
        if !port || !is_host || !clean(authority) || !clean(own) || own.contains('#') {
            return Err(wrong());
        }
        Ok(Address { is_secure, authority: authority.to_owned(), path: own.to_owned() })
    }

    /// This server, with `path` appended to the address's path.
    #[must_use]
    pub fn below(&self, path: &str) -> Address {
        Address { path: format!("{}{path}", self.path.trim_end_matches('/')), ..self.clone() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(to, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Percent-encodes text for an address.
pub(crate) fn encoded(text: &str) -> String {
    let each = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_only_valid_addresses() {
        for (text, shown) in [
            ("http://127.0.0.1:9090", "http://127.0.0.1:9090/p"),
            ("https://k", "https://k/p"),
            ("https://[::1]:6443/a/", "https://[::1]:6443/a/"),
            ("http://[::1]", "http://[::1]/p"),
        ] {
            assert_eq!(Address::parse(text, "/p").unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            "host:1",
            "http://",
            "https://:1",
            "http://h:99999/",
            "http://a:1/x\r\ny",
            "http://u:p@h:1/",
            "ftp://x",
            "http://h#x",
            "http://h?x",
        ] {
            assert!(Address::parse(wrong, "").is_err(), "{wrong:?}");
        }
        let below = Address::parse("http://h:1/prometheus/", "").unwrap().below("/api?query=x");
        assert_eq!(below.to_string(), "http://h:1/prometheus/api?query=x");
        assert_eq!(encoded("a b\n&%é"), "a%20b%0A%26%25%C3%A9");
    }
}
