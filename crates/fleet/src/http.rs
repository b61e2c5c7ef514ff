//! Asking a server by HTTP, once and without haste: the kubelet for its pods, Prometheus for its history.
//!
//! Version 1.0 is asked for, so that an answer ends where its connection does. An answer has a bound in bytes
//! and in time ([`Limits`]), however slowly or endlessly it comes. `https` is not spoken.
//!
//! Invariant: credentials appear in no error.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The most headers of an answer.
const HEADERS_MAX: usize = 64;

/// What is asked: `http://HOST:PORT/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host and port.
    pub authority: String,
    /// The path, with what follows it.
    pub path: String,
}

/// It is no address that can be asked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?}: write http://HOST:PORT; https is not spoken (let a proxy on this machine do it)")]
pub struct AddressError(String);

impl Address {
    /// The address in `text`, at `path` if it has none.
    ///
    /// # Errors
    /// [`AddressError`] if it is none, or has a user's name.
    pub fn parse(text: &str, path: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError(text.to_owned());
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (authority, own) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, path),
        };
        // What goes into a request must not end its line.
        let clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let port = authority.rsplit_once(':').and_then(|(host, port)| {
            port.parse::<u16>().ok().filter(|_| !host.is_empty() && !host.contains('@'))
        });
        if port.is_none() || !clean(authority) || !clean(own) {
            return Err(wrong());
        }
        Ok(Address { authority: authority.to_owned(), path: own.to_owned() })
    }
}

/// Bounds of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// There is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Nobody answers.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It cannot be understood.
    #[error("the answer is no HTTP answer that is understood ({0})")]
    Nonsense(&'static str),
    /// It is a refusal.
    #[error("the answer is {0}, not 200")]
    Status(u16),
}

/// The body of the answer.
pub(crate) fn get(address: &Address, token: Option<&str>, limits: &Limits) -> Result<Vec<u8>, HttpError> {
    let Address { authority, path } = address;
    let until = Instant::now() + limits.time;
    let to = authority.to_socket_addrs()?.next();
    let to = to.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
    let mut stream = TcpStream::connect_timeout(&to, limits.time)?;
    stream.set_write_timeout(Some(limits.time))?;
    let credentials = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: application/json\r\n{credentials}\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), [0; 16 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || answer.len() as u64 > limits.bytes {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(body(&answer)?.to_vec())
}

/// The body of an answer.
pub(crate) fn body(answer: &[u8]) -> Result<&[u8], HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = response.parse(answer) else {
        return Err(HttpError::Nonsense("its head is not whole"));
    };
    let header = |name: &str| {
        let mut headers = response.headers.iter();
        headers.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    if header("transfer-encoding").is_some() {
        return Err(HttpError::Nonsense("it comes in chunks, which were not asked for"));
    }
    let body = answer.get(head..).unwrap_or_default();
    let length =
        header("content-length").and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
    match (response.code, length) {
        (Some(200), Some(length)) if body.len() < length => Err(HttpError::Nonsense("it was cut off")),
        (Some(200), _) => Ok(body),
        (code, _) => Err(HttpError::Status(code.unwrap_or_default())),
    }
}
