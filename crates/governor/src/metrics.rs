//! The governor's metrics: the list of families, and the value of each in a [`Snapshot`].

use crate::exposition::{Exposition, MetricsError};
use crate::families::Quantity::{Bytes, Number, Ratio, Seconds};
use crate::families::{self, Family, NAME, SECONDS};
use crate::snapshot::{JobSnapshot, Snapshot, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

const BUDGET: Family = Family::gauge("budget", Bytes, "What all jobs may have together");
const EFFECTIVE_BUDGET: Family =
    Family::gauge("effective_budget", Bytes, "The same with what the machine or the container has");
const ALL_RESIDENT: Family = Family::gauge("resident", Bytes, "What all jobs hold");
const AVAILABLE: Family =
    Family::gauge("available", Bytes, "What the machine or the container could still give");
const SWAP_FREE: Family = Family::gauge("swap_free", Bytes, "Where memory can be put");
const SQUEEZED: Family = Family::gauge("squeezed", Number, "Whether memory is short");
const BRAKED: Family = Family::gauge("braked", Number, "Whether stalls keep anything from being taken");
const STALLED: Family =
    Family::gauge("stalled", Ratio, "Part of the last period that tasks stalled on memory");
const OWN_CPU: Family = Family::counter("governor_cpu", Seconds, "The governor's own CPU time");
const STATE: Family = Family::gauge("job_state", Number, "1 for the state that the job is in");

/// The families that have one value for a job, or none.
type Value = fn(&JobSnapshot) -> Option<f64>;
const BEFORE_AGES: [(Family, Value); 6] = [
    (families::RESIDENT, |job| Some(job.resident_bytes as f64)),
    (families::SWAPPED, |job| Some(job.swapped_bytes as f64)),
    (families::WORTH, |job| job.worth_bytes.map(|bytes| bytes as f64)),
    (families::ADVISED, |job| job.advised_bytes.map(|bytes| bytes as f64)),
    (families::SLOWDOWN_TWO_THIRDS, |job| job.slowdown_two_thirds),
    (Family::gauge("job_target", Bytes, "What it may have"), |job| Some(job.target_bytes as f64)),
];
const AFTER_AGES: [(Family, Value); 12] = [
    (Family::counter("job_taken", Bytes, "What was taken from it"), |job| Some(job.taken_bytes as f64)),
    (families::WINDOW, |job| job.window_seconds),
    (families::WAITING, |job| job.waiting),
    (Family::gauge("job_delay", Seconds, "What a fault costs it"), |job| Some(job.delay_seconds)),
    (families::WATCH_COST, |job| Some(job.watch_share)),
    (Family::gauge("job_major_fault_rate", Number, "Faults a second that had to read"), |job| {
        Some(job.major_faults_per_second)
    }),
    (families::CPU, |job| Some(job.cpu_seconds)),
    (Family::counter("job_suspended", Seconds, "How long it was suspended"), |job| {
        Some(job.suspended_seconds)
    }),
    (Family::gauge("job_suspended_longest", Seconds, "Its longest suspension"), |job| {
        Some(job.suspended_longest_seconds)
    }),
    (families::PROCESSES, |job| Some(job.processes as f64)),
    (Family::counter("job_suspensions", Number, "How often it was suspended"), |job| {
        Some(job.suspensions as f64)
    }),
    (Family::counter("job_restarts", Number, "How often it was started again"), |job| {
        Some(job.restarts as f64)
    }),
];

#[derive(Debug)]
pub(crate) struct MetricsServer {
    exposition: Exposition,
    latest: Arc<Mutex<Arc<Snapshot>>>,
}

impl MetricsServer {
    pub(crate) fn start(address: SocketAddr) -> Result<MetricsServer, MetricsError> {
        let latest: Arc<Mutex<Arc<Snapshot>>> = Arc::default();
        let theirs = Arc::clone(&latest);
        let page = move || render(&Arc::clone(&theirs.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok(MetricsServer { exposition: Exposition::start(address, None, None, page)?, latest })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.exposition.address()
    }

    pub(crate) fn publish(&self, snapshot: &Arc<Snapshot>) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(snapshot);
    }
}

pub(crate) fn render(snapshot: &Arc<Snapshot>) -> String {
    families::page(Told(Arc::clone(snapshot)))
}

#[derive(Debug)]
struct Told(Arc<Snapshot>);

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let to = &mut encoder;
        let all = &*self.0;
        let flag = |is: bool| f64::from(u8::from(is));
        families::build_info(to)?;
        BUDGET.one(to, all.budget_bytes as f64)?;
        EFFECTIVE_BUDGET.one(to, all.effective_budget_bytes as f64)?;
        ALL_RESIDENT.one(to, all.resident_bytes as f64)?;
        AVAILABLE.one(to, all.available_bytes as f64)?;
        SWAP_FREE.one(to, all.swap_free_bytes as f64)?;
        SQUEEZED.one(to, flag(all.squeezed))?;
        BRAKED.one(to, flag(all.braked))?;
        if let Some(stalled) = all.stalled {
            STALLED.one(to, stalled)?;
        }
        OWN_CPU.one(to, all.cpu_seconds)?;
        let each = |to: &mut DescriptorEncoder<'_>, (family, value): &(Family, Value)| {
            let row = |job: &JobSnapshot| value(job).map(|value| ([(NAME, job.name.clone())], value));
            family.rows(to, all.jobs.iter().filter_map(row))
        };
        BEFORE_AGES.iter().try_for_each(|family| each(to, family))?;
        let ages = all.jobs.iter().flat_map(|job| {
            let row = |seconds: u64| [(NAME, job.name.clone()), (SECONDS, seconds.to_string())];
            job.untouched.iter().map(move |age| (row(age.seconds), age.bytes as f64))
        });
        families::UNTOUCHED.rows(to, ages)?;
        AFTER_AGES.iter().try_for_each(|family| each(to, family))?;
        let states = all.jobs.iter().flat_map(|job| {
            let labels = |state: State| [(NAME, job.name.as_str()), ("state", state.word())];
            State::ALL.into_iter().map(move |state| (labels(state), flag(job.state == state)))
        });
        STATE.rows(to, states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn ask(address: SocketAddr) -> String {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
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
        let body = ask(server.address());
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
}
