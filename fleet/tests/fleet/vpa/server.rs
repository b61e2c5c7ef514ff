//! A small HTTP server for tests, which can answer wrongly, slowly or not at all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
    /// All headers, in lower case.
    pub(crate) head: String,
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    head: String,
    body: String,
    /// The delay before the answer.
    wait: Duration,
    /// True if the connection ends within the answer.
    cut: bool,
}

impl Answer {
    pub(crate) fn ok(body: &str) -> Answer {
        Answer::status(200, body)
    }

    pub(crate) fn status(code: u16, body: &str) -> Answer {
        let head = format!("HTTP/1.1 {code} Some\r\n");
        Answer { head, body: body.to_owned(), wait: Duration::ZERO, cut: false }
    }

    pub(crate) fn header(mut self, line: &str) -> Answer {
        self.head += line;
        self.head += "\r\n";
        self
    }

    pub(crate) fn after(self, wait: Duration) -> Answer {
        Answer { wait, ..self }
    }

    pub(crate) fn cut(self) -> Answer {
        Answer { cut: true, ..self }
    }

    pub(crate) fn garbage() -> Answer {
        Answer { head: "\u{1}\u{2} no HTTP at all".into(), ..Answer::ok("").cut() }
    }
}

type Handler = dyn Fn(&Request, usize) -> Answer + Send + Sync;

/// A server, which ends with this value.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. The handler gets each request and the number of earlier requests.
    pub(crate) fn start(handler: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (handler, log): (Arc<Handler>, _) = (Arc::new(handler), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
                let Some(request) = read(&stream) else { continue };
                if request.method == "END" {
                    return;
                }
                // A slow answer does not delay others.
                std::thread::spawn(move || answer(stream, &request, &*handler, &log));
            }
        });
        Server { url, seen, thread: Some(thread) }
    }

    /// All requests of this method so far.
    pub(crate) fn seen(&self, method: &str) -> Vec<Request> {
        self.seen.lock().unwrap().iter().filter(|request| request.method == method).cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(self.url.trim_start_matches("http://")) {
            let _ = stream.write_all(b"END / HTTP/1.1\r\n\r\n");
        }
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map_or(Ok(0), |text| text.trim().parse()).ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, body: String::from_utf8(body).ok()?, head })
}

fn answer(mut stream: TcpStream, request: &Request, handler: &Handler, log: &Mutex<Vec<Request>>) {
    let before = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    let Answer { head, body, wait, cut } = handler(request, before);
    std::thread::sleep(wait);
    let whole = body.len();
    let (length, sent) = if cut { (whole + 9, whole / 2) } else { (whole, whole) };
    let body = &body[..sent];
    let text = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _ = stream.write_all(text.as_bytes());
}
