//! An HTTP client, for requests to the kubelet (pods), Prometheus (history) and Kubernetes (objects).
//!
//! The library `ureq` makes the requests; this file adds rules that all requests share:
//!
//! - An answer is bounded in bytes and in time ([`Limits`]), however slowly it comes.
//! - Temporary failures (no answer, 429, 5xx) are retried a bounded number of times ([`Patience`]).
//! - Credentials ([`Access`]) are read from their files again for each request.
//! - There is no proxy and no redirection, so credentials go to no other server.
//!
//! Invariant: credentials appear in no error message.

use crate::Error;
use crate::address::Address;
use crate::token::TokenFile;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use ureq::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The usual files of trusted authorities on Debian, Red Hat, SUSE and Alpine.
const TRUSTED: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The maximum length of a server's message in an error.
const SAID_MAX: usize = 300;

/// Credentials, and trusted authorities.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The bearer token to send.
    pub token: Option<TokenFile>,
    /// Certificates of trusted authorities, in place of the system's.
    pub authorities: Option<PathBuf>,
    /// The client certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Bounds of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// A request has failed.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// There is no answer, or not in time.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// The answer is invalid, or the server is not trusted.
    #[error("the answer cannot be used ({0})")]
    Nonsense(String),
    /// The answer is a refusal.
    #[error("the answer is {code}, not 200{said}")]
    Status {
        /// The status.
        code: u16,
        /// The time before which the server accepts no further request.
        after: Option<Duration>,
        /// The server's message, after a colon.
        said: String,
    },
}

impl HttpError {
    /// True for temporary errors, after which the same request may succeed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, HttpError::Io(_) | HttpError::Status { code: 429 | 500..=599, .. })
    }

    /// The status of a refusal.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        if let HttpError::Status { code, .. } = self { Some(*code) } else { None }
    }
}

/// The retries after temporary failures.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The maximum number of attempts.
    pub tries: u32,
    /// The first pause.
    pub pause: Duration,
    /// The longest pause, whatever the server requests.
    pub most: Duration,
    /// The longest time for an answer.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let (pause, most) = (Duration::from_millis(500), Duration::from_secs(10));
        Patience { tries: 5, pause, most, answer: Duration::from_secs(15) }
    }
}

impl Patience {
    /// The pause after that many attempts: twice as long each time, or as long as the server requests.
    fn after(&self, tries: u32, why: &HttpError) -> Duration {
        if let HttpError::Status { after: Some(after), .. } = why {
            return (*after).clamp(self.pause, self.most.max(self.pause));
        }
        // Up to 50 % longer, so that clients that failed together do not retry together.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let more = 1.0 + f64::from(now.subsec_nanos() % 1000) / 2000.0;
        (self.pause * 2_u32.saturating_pow(tries - 1)).mul_f64(more).min(self.most)
    }
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads an object.
    Get,
    /// Creates an object.
    Post,
    /// Replaces an object.
    Put,
    /// Merges a part into an object (RFC 7386).
    Merge,
}

/// A server with credentials. Connections are reused.
#[derive(Debug, Clone)]
pub struct Server {
    /// The server's address.
    pub address: Address,
    token: Option<TokenFile>,
    agent: ureq::Agent,
}

impl Server {
    /// A server, without a connection yet.
    ///
    /// # Errors
    /// If a certificate file cannot be read.
    pub fn new(address: Address, access: &Access) -> Result<Server, Error> {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("vellum/", env!("CARGO_PKG_VERSION")));
        if address.is_secure {
            let tls = TlsConfig::builder()
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .root_certs(authorities(access.authorities.as_deref())?)
                .client_cert(access.identity.as_ref().map(identity).transpose()?);
            config = config.tls_config(tls.build());
        }
        Ok(Server { address, token: access.token.clone(), agent: config.build().into() })
    }

    /// The body of the answer to one GET request.
    pub(crate) fn get(&self, path: &str, limits: &Limits) -> Result<Vec<u8>, HttpError> {
        whole(self.send(Method::Get, path, &[], limits)?, limits)
    }

    /// The body, of at most `bytes`, of the answer to a request with a JSON body, which is repeated after
    /// temporary failures.
    pub(crate) fn ask(
        &self,
        method: Method,
        path: &str,
        body: &[u8],
        bytes: u64,
        patience: &Patience,
    ) -> Result<Vec<u8>, HttpError> {
        let limits = Limits { bytes, time: patience.answer };
        let mut tries = 1;
        loop {
            match self.send(method, path, body, &limits).and_then(|answer| whole(answer, &limits)) {
                Err(why) if why.may_pass() && tries < patience.tries => {
                    std::thread::sleep(patience.after(tries, &why));
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    /// The body of the answer to a GET request, as a stream.
    pub(crate) fn follow(&self, path: &str, limits: &Limits) -> Result<ureq::BodyReader<'static>, HttpError> {
        let answer = self.send(Method::Get, path, &[], limits)?;
        Ok(answer.into_body().into_with_config().limit(limits.bytes).reader())
    }

    /// The answer, unless it is a refusal. Only its head has been read.
    fn send(
        &self,
        method: Method,
        path: &str,
        body: &[u8],
        limits: &Limits,
    ) -> Result<ureq::http::Response<ureq::Body>, HttpError> {
        let (verb, kind) = match method {
            Method::Get => ("GET", None),
            Method::Post => ("POST", Some("application/json")),
            Method::Put => ("PUT", Some("application/json")),
            Method::Merge => ("PATCH", Some("application/merge-patch+json")),
        };
        let mut request = ureq::http::Request::builder()
            .method(verb)
            .uri(self.address.below(path).to_string())
            .header(ACCEPT, "application/json");
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let token = self.token.as_ref().and_then(TokenFile::token);
        if let Some(token) = &token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let nonsense = |_| HttpError::Nonsense("the request cannot be written".to_owned());
        let answer = match method {
            Method::Get => {
                let request = request.body(()).map_err(nonsense)?;
                // The server may close a reused connection at the moment of the request. Read-only requests
                // may then be repeated once (RFC 9112, section 9.3.1).
                let began = Instant::now();
                match self.run(request.clone(), limits) {
                    Err(error) if is_hung_up(&error) => {
                        let time = limits.time.saturating_sub(began.elapsed());
                        self.run(request, &Limits { time, ..*limits })
                    }
                    answer => answer,
                }
            }
            _ => self.run(request.body(body).map_err(nonsense)?, limits),
        };
        let mut answer = answer.map_err(why)?;
        let code = answer.status().as_u16();
        if let 200..=299 = code {
            return Ok(answer);
        }
        let after =
            answer.headers().get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.trim().parse().ok());
        let read = answer.body_mut().with_config().limit(limits.bytes).read_to_vec();
        Err(HttpError::Status {
            code,
            after: after.map(Duration::from_secs),
            said: said(&read.unwrap_or_default(), token.as_deref()),
        })
    }

    fn run<B: ureq::AsSendBody>(
        &self,
        request: ureq::http::Request<B>,
        limits: &Limits,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let request = self.agent.configure_request(request).timeout_global(Some(limits.time)).build();
        self.agent.run(request)
    }
}

fn whole(mut answer: ureq::http::Response<ureq::Body>, limits: &Limits) -> Result<Vec<u8>, HttpError> {
    answer.body_mut().with_config().limit(limits.bytes).read_to_vec().map_err(why)
}

/// True if the server closed the connection before it answered.
fn is_hung_up(error: &ureq::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let ureq::Error::Io(error) = error else { return false };
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

fn why(error: ureq::Error) -> HttpError {
    let io = |kind, text: &str| HttpError::Io(io::Error::new(kind, text.to_owned()));
    match error {
        // Errors of TLS and of chunked encoding have these two kinds.
        ureq::Error::Io(error)
            if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
        {
            HttpError::Nonsense(error.to_string())
        }
        ureq::Error::Io(error) => HttpError::Io(error),
        ureq::Error::Timeout(_) => io(io::ErrorKind::TimedOut, "no answer in time"),
        ureq::Error::HostNotFound => io(io::ErrorKind::NotFound, "the host name is unknown"),
        ureq::Error::ConnectionFailed => io(io::ErrorKind::ConnectionRefused, "no connection"),
        other => HttpError::Nonsense(other.to_string()),
    }
}

/// The message of a refusal: Kubernetes' `message`, or the first line.
fn said(body: &[u8], token: Option<&str>) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(value) => value["message"].as_str().or(value["error"].as_str()).unwrap_or_default().to_owned(),
        Err(_) => String::from_utf8_lossy(body).lines().next().unwrap_or_default().to_owned(),
    };
    // The server may repeat the token.
    let text = token.map_or_else(|| text.clone(), |token| text.replace(token, "TOKEN"));
    let text: String = text.chars().take(SAID_MAX).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|why| Error::of(path, why, "give a file with certificates (PEM) that can be read"))
}

fn missing(path: &Path, what: &str) -> Error {
    Error::of(path, format!("there is no {what} in it that is understood"), "give a file in the form of PEM")
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let pem = read(path)?;
    let each = parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let all: Vec<_> = each.collect();
    if all.is_empty() { Err(missing(path, "certificate")) } else { Ok(all) }
}

fn authorities(file: Option<&Path>) -> Result<RootCerts, Error> {
    let usual = || TRUSTED.iter().map(Path::new).find(|path| path.is_file());
    let path = file.or_else(usual).ok_or_else(|| {
        Error(
            "no certificates of authorities were found on this system; name a file of them (--ca-file)"
                .to_owned(),
        )
    })?;
    Ok(RootCerts::new_with_certs(&certificates(path)?))
}

fn identity((certificate, key): &(PathBuf, PathBuf)) -> Result<ClientCert, Error> {
    let secret = PrivateKey::from_pem(&read(key)?).map_err(|_| missing(key, "private key"))?;
    Ok(ClientCert::new_with_certs(&certificates(certificate)?, secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    #[test]
    fn refusals_are_shown_in_one_line_without_credentials() {
        let json = br#"{"kind":"Status","message":"forbidden\nfor s3cret"}"#;
        assert_eq!(said(json, Some("s3cret")), ": forbidden?for TOKEN");
        assert_eq!(said(b"too\nlong", None), ": too");
        assert_eq!(said(b"", None), "");
        assert_eq!(said(&[b'x'; 5000], None).len(), 2 + SAID_MAX);
    }

    /// The server closes the reused connection, and answers on the next one.
    #[test]
    fn closed_connection_is_opened_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            for is_kept in [true, false] {
                let mut stream = listener.accept().unwrap().0;
                assert_ne!(stream.read(&mut [0; 1024]).unwrap(), 0);
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
                if is_kept {
                    assert_ne!(stream.read(&mut [0; 1024]).unwrap(), 0);
                }
            }
        });
        let server = Server::new(Address::parse(&address, "").unwrap(), &Access::default()).unwrap();
        let limits = Limits { bytes: 100, time: Duration::from_secs(60) };
        for _ in 0..2 {
            assert_eq!(server.get("/", &limits).unwrap(), b"ok");
        }
        thread.join().unwrap();
    }

    #[test]
    fn errors_name_unusable_certificates() {
        let secure = || Address::parse("https://h", "").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca");
        let access = Access { authorities: Some(path.clone()), ..Access::default() };
        let why = Server::new(secure(), &access).unwrap_err().to_string();
        assert!(why.contains("No such file") && why.contains("ca"), "{why}");
        fs::write(&path, "nonsense").unwrap();
        let why = Server::new(secure(), &access).unwrap_err().to_string();
        assert!(why.contains("no certificate"), "{why}");
        assert!(Server::new(Address::parse("http://h", "").unwrap(), &access).is_ok(), "none is needed");
    }
}
