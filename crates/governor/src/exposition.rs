//! An HTTP server for the page of metrics that Prometheus fetches.
//!
//! One thread accepts connections. Each connection has its own thread, at most [`CONNECTIONS_MAX`] at once,
//! for the TLS handshake and the answer. [`Peer`] bounds their time, so a silent or slow peer occupies a
//! thread for seconds and delays no other. The only request is `GET /metrics`. The caller's [`Admits`] can
//! refuse a request by the request's credentials, which are never logged. With [`Tls`], requests without TLS
//! are refused.
//!
//! The connection's thread makes a new page for each request.

use crate::peer::Peer;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) const CONNECTIONS_MAX: usize = 8;
/// For how long the end waits to wake the thread that accepts.
const WAKE_TIME: Duration = Duration::from_secs(2);
pub(crate) const REQUEST_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

/// Metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("metrics: cannot listen at {address}: {source}; give metrics another port, or leave it out")]
pub struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// The first byte of a record of a handshake (RFC 8446, section 5.1). No method of HTTP begins so.
const HANDSHAKE: u8 = 22;

/// A connection over which a request comes and an answer goes.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// TLS, which the caller brings along: this crate has none.
pub trait Tls: std::fmt::Debug + Send + Sync {
    /// Runs `answer` on TLS over `peer`, from which nothing has been read, and closes TLS then. The close
    /// lets the peer distinguish the end from a broken connection.
    fn serve(&self, peer: Peer, answer: &mut dyn FnMut(&mut dyn Stream) -> io::Result<()>) -> io::Result<()>;
}

/// True if a request with these credentials (the value of `Authorization`) gets the page.
pub type Admits = Box<dyn Fn(Option<&[u8]>) -> bool + Send + Sync>;

type Page = Box<dyn Fn() -> String + Send + Sync>;

struct Shared {
    page: Page,
    admits: Option<Admits>,
    tls: Option<Box<dyn Tls>>,
    stop: AtomicBool,
    connections: AtomicUsize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Shared").field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Exposition {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Exposition {
    /// Serves `page` at `address`; port 0 takes any that is free. With `admits` only to those whom it
    /// admits, and with `tls` only by https.
    pub fn start(
        address: SocketAddr,
        admits: Option<Admits>,
        tls: Option<Box<dyn Tls>>,
        page: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Exposition, MetricsError> {
        let failed = |source| MetricsError { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, connections) = (AtomicBool::new(false), AtomicUsize::new(0));
        let shared = Arc::new(Shared { page: Box::new(page), admits, tls, stop, connections });
        let theirs = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("metrics".into()).spawn(move || accept(&listener, &theirs));
        Ok(Exposition { address, shared, thread: Some(thread.map_err(failed)?) })
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The resource to fetch.
    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/metrics", self.address)
    }
}

impl Drop for Exposition {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes the thread that accepts. If that fails it is left to the end of the process.
        if TcpStream::connect_timeout(&self.address, WAKE_TIME).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Out of descriptors: some will be free again.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if shared.connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let theirs = Arc::clone(shared);
        let served = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            // A peer that has gone needs no answer.
            let _ = serve(stream, &theirs);
            theirs.connections.fetch_sub(1, Ordering::AcqRel);
        });
        if served.is_err() {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut peer = Peer::new(stream);
    let Some(tls) = &shared.tls else { return answer(&mut peer, shared) };
    match peer.first()? {
        None => Ok(()),
        Some(HANDSHAKE) => tls.serve(peer, &mut |stream| answer(stream, shared)),
        Some(_) => {
            // Read, or closing would take the answer away. What it brought along is not looked at.
            request(&mut peer)?;
            respond(&mut peer, "400 Bad Request", "text/plain", "served by TLS only: use https\n")
        }
    }
}

fn answer(mut stream: &mut dyn Stream, shared: &Shared) -> io::Result<()> {
    let (asked, authorization) = request(&mut stream)?;
    let let_in = || shared.admits.as_ref().is_none_or(|admits| admits(authorization.as_deref()));
    match asked {
        Asked::Metrics if let_in() => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            respond(&mut stream, "200 OK", kind, &(shared.page)())
        }
        Asked::Metrics => respond(
            &mut stream,
            "401 Unauthorized\r\nWWW-Authenticate: Bearer",
            "text/plain",
            "the token of --token-file is needed: Authorization: Bearer TOKEN\n",
        ),
        Asked::Other => respond(&mut stream, "404 Not Found", "text/plain", "there is /metrics\n"),
        Asked::Method => respond(&mut stream, "405 Method Not Allowed", "text/plain", "only GET\n"),
        Asked::Nonsense => respond(&mut stream, "400 Bad Request", "text/plain", "this is no request\n"),
    }
}

fn respond(stream: &mut impl Write, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes())?;
    stream.flush()
}

#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Metrics,
    Other,
    Method,
    Nonsense,
}

fn request(stream: &mut impl Read) -> io::Result<(Asked, Option<Vec<u8>>)> {
    let mut text = Vec::with_capacity(1024);
    let mut piece = [0; 1024];
    loop {
        let read = stream.read(&mut piece)?;
        text.extend_from_slice(&piece[..read]);
        match asked(&text) {
            Some(asked) => return Ok(asked),
            None if read > 0 && text.len() < REQUEST_BYTES_MAX => {}
            None => return Ok((Asked::Nonsense, None)),
        }
    }
}

/// The request at the start of `text`, and its credentials; `None` if it is incomplete.
pub(crate) fn asked(text: &[u8]) -> Option<(Asked, Option<Vec<u8>>)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(text) {
        Ok(httparse::Status::Complete(_)) => {
            let path = request.path.and_then(|path| path.split('?').next());
            let asked = match (request.method, path) {
                (Some("GET"), Some("/metrics")) => Asked::Metrics,
                (Some("GET"), _) => Asked::Other,
                _ => Asked::Method,
            };
            let mut given = request.headers.iter();
            let credentials = given.find(|header| header.name.eq_ignore_ascii_case("authorization"));
            Some((asked, credentials.map(|header| header.value.to_vec())))
        }
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some((Asked::Nonsense, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A server that closes with unread data resets the connection.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn serving(admits: Option<Admits>) -> Exposition {
        Exposition::start("127.0.0.1:0".parse().unwrap(), admits, None, || "# EOF\n".to_owned()).unwrap()
    }

    #[test]
    fn other_requests_and_garbage_are_answered_shortly() {
        let server = serving(None);
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"),
        ] {
            let answer = ask(server.address(), request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
        let endless = [&b"GET /"[..], &[b'a'; 2 * REQUEST_BYTES_MAX]].concat();
        let answer = ask(server.address(), &endless);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }

    #[test]
    fn slow_peers_hold_up_nobody() {
        let server = serving(None);
        let mut slow: Vec<TcpStream> =
            (1..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        slow.iter_mut().for_each(|stream| stream.write_all(b"GET /met").unwrap());
        let answer = ask(server.address(), b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[test]
    fn the_page_is_served_to_those_admitted_and_has_its_kind() {
        let server = serving(Some(Box::new(|given: Option<&[u8]>| given == Some(&b"bearer s3cret"[..]))));
        let with =
            |line: &str| ask(server.address(), format!("GET /metrics HTTP/1.1\r\n{line}\r\n").as_bytes());
        for wrong in ["", "Authorization: Bearer s3cre\r\n", "authorization: Basic s3cret\r\n"] {
            let answer = with(wrong);
            assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("WWW-Authenticate"), "{answer}");
            assert!(!answer.contains("s3cre"), "{answer}");
        }
        let answer = with("authorization: bearer s3cret\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\n# EOF\n"), "{answer}");
        assert!(answer.contains("application/openmetrics-text"), "{answer}");
    }
}
