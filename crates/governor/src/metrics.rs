//! The state in the OpenMetrics text format, over HTTP on a loopback address, as Prometheus fetches it.
//!
//! A thread accepts. Each connection has a thread of its own, at most [`CONNECTIONS_MAX`] at once, and
//! [`REQUEST_TIME`] in all for its request. So a silent or slow peer costs a thread for two seconds and
//! delays nobody. The only request is `GET /metrics`.

use crate::snapshot::{JobSnapshot, Snapshot, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most connections at once.
pub(crate) const CONNECTIONS_MAX: usize = 8;
/// The time for a request, and the time for reading the answer.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(2);
/// The longest request.
pub(crate) const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The most lines of a request's head.
const HEADERS_MAX: usize = 64;

/// Metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("metrics: cannot listen at {address}: {source}; give metrics another port, or leave it out")]
pub struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// The state that the threads share.
#[derive(Debug, Default)]
struct Shared {
    snapshot: Mutex<Arc<Snapshot>>,
    stop: AtomicBool,
    connections: AtomicUsize,
}

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at `address`; port 0 takes any that is free.
    pub(crate) fn start(address: SocketAddr) -> Result<MetricsServer, MetricsError> {
        let failed = |source| MetricsError { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("metrics".into()).spawn(move || accept(&listener, &theirs));
        Ok(MetricsServer { address, shared, thread: Some(thread.map_err(failed)?) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes the state from now on.
    pub(crate) fn publish(&self, snapshot: &Arc<Snapshot>) {
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(snapshot);
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes the thread that accepts. If that fails it is left to the end of the process.
        if TcpStream::connect_timeout(&self.address, REQUEST_TIME).is_ok()
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

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let (status, kind, body) = match request(&mut stream)? {
        Asked::Metrics => {
            let snapshot = Arc::clone(&shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner));
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", render(&snapshot))
        }
        Asked::Other => ("404 Not Found", "text/plain", "there is /metrics\n".to_owned()),
        Asked::Method => ("405 Method Not Allowed", "text/plain", "only GET\n".to_owned()),
        Asked::Nonsense => ("400 Bad Request", "text/plain", "this is no request\n".to_owned()),
    };
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

/// The request.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Metrics,
    Other,
    Method,
    Nonsense,
}

fn request(stream: &mut TcpStream) -> io::Result<Asked> {
    let until = Instant::now() + REQUEST_TIME;
    let mut text = Vec::with_capacity(1024);
    let mut piece = [0; 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut piece)?;
        text.extend_from_slice(&piece[..read]);
        match asked(&text) {
            Some(asked) => return Ok(asked),
            None if read > 0 && text.len() < REQUEST_BYTES_MAX => {}
            None => return Ok(Asked::Nonsense),
        }
    }
}

/// The request at the start of `text`; `None` if it is incomplete.
pub(crate) fn asked(text: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(text) {
        Ok(httparse::Status::Complete(_)) => {
            let path = request.path.and_then(|path| path.split('?').next());
            Some(match (request.method, path) {
                (Some("GET"), Some("/metrics")) => Asked::Metrics,
                (Some("GET"), _) => Asked::Other,
                _ => Asked::Method,
            })
        }
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(Asked::Nonsense),
    }
}

/// The state as text.
pub(crate) fn render(snapshot: &Arc<Snapshot>) -> String {
    let mut registry = Registry::with_prefix("vellum");
    registry.register_collector(Box::new(Told(Arc::clone(snapshot))));
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode(&mut out, &registry);
    out
}

#[derive(Debug)]
struct Told(Arc<Snapshot>);

type Encoded = Result<(), std::fmt::Error>;

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Encoded {
        let to = &mut encoder;
        let all = &*self.0;
        let flag = |is: bool| f64::from(u8::from(is));
        to.encode_descriptor("build", "The program that says this", None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        one(to, "budget", "What all jobs may have together", Some(Unit::Bytes), all.budget_bytes as f64)?;
        one(
            to,
            "effective_budget",
            "The same with what the machine or the container has",
            Some(Unit::Bytes),
            all.effective_budget_bytes as f64,
        )?;
        one(to, "resident", "What all jobs hold", Some(Unit::Bytes), all.resident_bytes as f64)?;
        one(
            to,
            "available",
            "What the machine or the container could still give",
            Some(Unit::Bytes),
            all.available_bytes as f64,
        )?;
        one(to, "swap_free", "Where memory can be put", Some(Unit::Bytes), all.swap_free_bytes as f64)?;
        one(to, "squeezed", "Whether memory is short", None, flag(all.squeezed))?;
        one(to, "braked", "Whether stalls keep anything from being taken", None, flag(all.braked))?;
        if let Some(stalled) = all.stalled {
            one(to, "stalled", "Part of the last period that tasks stalled on memory", ratio(), stalled)?;
        }
        let own = to.encode_descriptor(
            "governor_cpu",
            "The governor's own CPU time",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        ConstCounter::new(all.cpu_seconds).encode(own)?;
        self.of_memory(to)?;
        self.of_work(to)?;
        self.of_state(to)
    }
}

/// A part of 1, as Prometheus' users name it.
fn ratio() -> Option<Unit> {
    Some(Unit::Other("ratio".to_owned()))
}

/// The label that has a job's name. Prometheus itself gives everything that it fetches one named `job`.
const NAME: &str = "name";

impl Told {
    fn of_memory(&self, to: &mut DescriptorEncoder<'_>) -> Encoded {
        let bytes = || Some(Unit::Bytes);
        let size =
            |of: fn(&JobSnapshot) -> Option<u64>| move |job: &JobSnapshot| of(job).map(|bytes| bytes as f64);
        self.gauge(to, "job_resident", "What the job holds", bytes(), size(|job| Some(job.resident_bytes)))?;
        self.gauge(to, "job_swapped", "What it holds in swap", bytes(), size(|job| Some(job.swapped_bytes)))?;
        self.gauge(to, "job_worth", "Its working set at its window", bytes(), size(|job| job.worth_bytes))?;
        self.gauge(
            to,
            "job_advised",
            "The memory limit that should cost at most 2 % of its time",
            bytes(),
            size(|job| job.advised_bytes),
        )?;
        self.gauge(
            to,
            "job_slowdown_two_thirds",
            "The slowdown expected under two thirds of the advised limit, at least",
            ratio(),
            |job| job.slowdown_two_thirds,
        )?;
        self.gauge(to, "job_target", "What it may have", bytes(), size(|job| Some(job.target_bytes)))?;
        let help = "What it holds and has not touched for this many seconds";
        let mut family =
            to.encode_descriptor("job_untouched", help, Some(&Unit::Bytes), MetricType::Gauge)?;
        for job in &self.0.jobs {
            for age in &job.untouched {
                let seconds = age.seconds.to_string();
                let labels = [(NAME, job.name.as_str()), ("seconds", seconds.as_str())];
                ConstGauge::new(age.bytes as f64).encode(family.encode_family(&labels)?)?;
            }
        }
        self.counter(to, "job_taken", "What was taken from it", bytes(), |job| job.taken_bytes as f64)
    }

    fn of_work(&self, to: &mut DescriptorEncoder<'_>) -> Encoded {
        let seconds = || Some(Unit::Seconds);
        self.gauge(to, "job_window", "Its window, in user CPU time", seconds(), |job| job.window_seconds)?;
        self.gauge(to, "job_waiting", "What it waits for a unit of work there", ratio(), |job| job.waiting)?;
        self.gauge(to, "job_delay", "What a fault costs it", seconds(), |job| Some(job.delay_seconds))?;
        self.gauge(to, "job_watch_cost", "What watching costs it, of its user CPU time", ratio(), |job| {
            Some(job.watch_share)
        })?;
        self.gauge(to, "job_major_fault_rate", "Faults a second that had to read", None, |job| {
            Some(job.major_faults_per_second)
        })?;
        self.counter(to, "job_cpu", "Its CPU time", seconds(), |job| job.cpu_seconds)?;
        self.counter(to, "job_suspended", "How long it was suspended", seconds(), |job| {
            job.suspended_seconds
        })?;
        self.gauge(to, "job_suspended_longest", "Its longest suspension", seconds(), |job| {
            Some(job.suspended_longest_seconds)
        })
    }

    fn of_state(&self, to: &mut DescriptorEncoder<'_>) -> Encoded {
        self.gauge(to, "job_processes", "Its living processes", None, |job| Some(job.processes as f64))?;
        self.counter(to, "job_suspensions", "How often it was suspended", None, |job| {
            job.suspensions as f64
        })?;
        self.counter(to, "job_restarts", "How often it was started again", None, |job| job.restarts as f64)?;
        let mut family =
            to.encode_descriptor("job_state", "1 for the state that the job is in", None, MetricType::Gauge)?;
        for job in &self.0.jobs {
            for state in State::ALL {
                let labels = [(NAME, job.name.as_str()), ("state", state.word())];
                let value = u32::from(job.state == state);
                ConstGauge::new(f64::from(value)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn gauge(
        &self,
        to: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: impl Fn(&JobSnapshot) -> Option<f64>,
    ) -> Encoded {
        let mut family = to.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for job in &self.0.jobs {
            if let Some(value) = value(job) {
                ConstGauge::new(value).encode(family.encode_family(&[(NAME, job.name.as_str())])?)?;
            }
        }
        Ok(())
    }

    fn counter(
        &self,
        to: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: impl Fn(&JobSnapshot) -> f64,
    ) -> Encoded {
        let mut family = to.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for job in &self.0.jobs {
            ConstCounter::new(value(job)).encode(family.encode_family(&[(NAME, job.name.as_str())])?)?;
        }
        Ok(())
    }
}

fn one(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, unit: Option<Unit>, value: f64) -> Encoded {
    let family = to.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
    ConstGauge::new(value).encode(family)
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

    fn serving() -> MetricsServer {
        let server = MetricsServer::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let job = JobSnapshot {
            name: "a".into(),
            resident_bytes: 4096,
            worth_bytes: Some(2048),
            advised_bytes: Some(3072),
            untouched: vec![crate::snapshot::Untouched { seconds: 60, bytes: 1024 }],
            ..JobSnapshot::default()
        };
        let snapshot =
            Snapshot { jobs: vec![job], budget_bytes: 7, stalled: Some(0.25), ..Snapshot::default() };
        server.publish(&Arc::new(snapshot));
        server
    }

    #[test]
    fn what_is_served_is_openmetrics() {
        let server = serving();
        let answer = ask(server.address(), b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200 OK") && head.contains("application/openmetrics-text"),
            "{head}"
        );
        for line in [
            "# TYPE vellum_job_resident_bytes gauge",
            "# UNIT vellum_job_resident_bytes bytes",
            "vellum_budget_bytes 7.0",
            "vellum_job_resident_bytes{name=\"a\"} 4096.0",
            concat!("vellum_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "vellum_stalled_ratio 0.25",
            "vellum_job_advised_bytes{name=\"a\"} 3072.0",
            "vellum_job_untouched_bytes{name=\"a\",seconds=\"60\"} 1024.0",
            "vellum_job_worth_bytes{name=\"a\"} 2048.0",
            "vellum_job_suspensions_total{name=\"a\"} 0.0",
            "vellum_job_state{name=\"a\",state=\"ended\"} 1.0",
        ] {
            assert!(body.lines().any(|said| said == line), "no {line:?} in\n{body}");
        }
        assert!(!body.contains("job_window_seconds{"), "what is not known is not told");
        assert!(!body.contains("job=") && !body.contains("_ratios"), "{body}");
        assert!(body.ends_with("# EOF\n"));
    }

    #[test]
    fn other_requests_and_garbage_are_answered_shortly() {
        let server = serving();
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
        let server = serving();
        let mut slow: Vec<TcpStream> =
            (1..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        slow.iter_mut().for_each(|stream| stream.write_all(b"GET /met").unwrap());
        let answer = ask(server.address(), b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
