//! `vellum recommend kubernetes`: writes the status of VerticalPodAutoscalers, once or repeatedly.
//!
//! ```text
//! once:     Pass (over all objects) ─▶ a line for each container, the number of objects written
//! --every:  Lease (elects one leader) ─▶ Pass ─▶ pause ─▶ Lease ─▶ …
//! ```
//!
//! A failed pass is reported and, with `--every`, repeated after the pause; no object is half written. A
//! changed object ends the pause early ([`Watch`](vellum_fleet::kube::Watch)).

use super::{Made, Prometheus, address, token};
use crate::Ended;
use clap::ValueHint;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use vellum_fleet::kube::{Api, Lease, LeaseName, Patience, is_label};
use vellum_fleet::recommend::vpa::{Pass, Summary};
use vellum_fleet::{Access, Address, Server};
use vellum_governor::Stop;
use vellum_report::OutputError;
use vellum_report::option::time;
use vellum_report::stdout::{self, say};

/// Changes of objects are collected for this long, …
const GATHERED: Duration = Duration::from_secs(1);
/// … and a pass that they cause begins no earlier than this after the last one.
const APART: Duration = Duration::from_secs(10);
/// The directory of a pod's service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Write the recommendations of VerticalPodAutoscalers that name the recommender `vellum`.
///
/// Sets the memory numbers in the status of each object (autoscaling.k8s.io/v1) with `recommenders: [{name:
/// vellum}]`. The target of each container is the largest recommendation in the history plus the margin,
/// within the object's resource policy. Pods are recognised by their names. Containers with too little
/// history get no numbers; a condition gives the reason. In a cluster, the pod's service account is used;
/// elsewhere, run `kubectl proxy` and give --api http://127.0.0.1:8001.
///
/// Exit status: 0; 1 if an object could not be written; 125 if Prometheus or the API server does not answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  vellum recommend kubernetes --dry-run --api http://127.0.0.1:8001\n  \
    vellum recommend kubernetes --every 5min --prometheus http://prometheus.monitoring:9090")]
pub(super) struct Kubernetes {
    #[command(flatten)]
    prometheus: Prometheus,

    #[command(flatten)]
    made: Made,

    /// The API server (default: the server of the cluster in which this runs).
    #[arg(long, value_name = "URL", value_parser = address)]
    api: Option<Address>,

    /// A file with the bearer token for the API server.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    api_token_file: Option<PathBuf>,

    /// A file with the CA certificates (PEM) for the API server.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    api_ca_file: Option<PathBuf>,

    /// The client certificate for the API server (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "client_key")]
    client_certificate: Option<PathBuf>,

    /// The key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "client_certificate")]
    client_key: Option<PathBuf>,

    /// Only objects of this namespace.
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,

    /// Repeat after this time, as the only leader. New and changed objects are noticed within seconds, if
    /// watching them is permitted.
    #[arg(long, value_name = "TIME", value_parser = time)]
    every: Option<Duration>,

    /// The Lease by which the leader is elected, with --every.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "kube-system/vellum-recommender")]
    lease: LeaseName,

    /// Print the numbers and their reasons, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

fn namespace(text: &str) -> Result<String, &'static str> {
    is_label(text).then(|| text.to_owned()).ok_or("write the name of a namespace, such as default")
}

/// The error outside a pod without an API server.
const NOWHERE: &str = "not in a pod of Kubernetes; give the API server (--api URL; `kubectl proxy` serves \
    http://127.0.0.1:8001)";

impl Kubernetes {
    fn server(&self) -> Result<Server, Box<dyn Error>> {
        let identity = self.client_certificate.clone().zip(self.client_key.clone());
        let (address, token_file, authorities) = match &self.api {
            Some(address) => (address.clone(), self.api_token_file.clone(), self.api_ca_file.clone()),
            None => {
                let part = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
                let (host, port) =
                    part("KUBERNETES_SERVICE_HOST").zip(part("KUBERNETES_SERVICE_PORT")).ok_or(NOWHERE)?;
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                let address = Address::parse(&format!("https://{host}:{port}"), "")?;
                let file = |name: &str| Path::new(ACCOUNT).join(name);
                let token = self.api_token_file.clone().unwrap_or_else(|| file("token"));
                let authorities = self.api_ca_file.clone().unwrap_or_else(|| file("ca.crt"));
                (address, Some(token), Some(authorities))
            }
        };
        let access = Access { token: token(token_file.as_deref())?, authorities, identity };
        Ok(Server::new(address, &access)?)
    }
}

pub(super) fn recommend(args: &Kubernetes) -> Ended {
    let pass = Pass {
        api: Api::new(args.server()?, Patience::default()),
        prometheus: args.prometheus.server()?,
        namespace: args.namespace.clone(),
        over: args.made.over,
        rules: args.made.rules(),
        is_dry: args.dry_run,
    };
    let Some(every) = args.every else {
        let summary = pass.run(|_| Ok(true))?;
        stdout::write_all(text(&summary, args.dry_run).as_bytes())?;
        return Ok(u8::from(summary.failed > 0));
    };
    again_and_again(args, &pass, every)
}

fn again_and_again(args: &Kubernetes, pass: &Pass, every: Duration) -> Ended {
    let stop = Stop::block()?;
    let mut lease = Lease::new(args.lease.clone(), holder(), Lease::DURATION);
    let watch = pass.watch();
    let watch = watch.map_err(|why| {
        format!("objects cannot be watched: {why}; raise the limit of threads or of open files")
    })?;
    let (mut next, mut before) = (Instant::now(), String::new());
    let (mut ended, mut trouble) = (None, None);
    loop {
        let mut may_write = |api: &Api| if args.dry_run { Ok(true) } else { lease.hold(api) };
        let said = match may_write(&pass.api) {
            Ok(true) if next > Instant::now() => None,
            Ok(true) => {
                let done = pass.run(may_write);
                ended = Some(Instant::now());
                next = Instant::now() + every;
                Some(done.map_or_else(|why| format!("{why}\n"), |summary| text(&summary, args.dry_run)))
            }
            Ok(false) => {
                // If this process becomes the leader, it begins at once.
                next = Instant::now();
                Some("another recommender is the leader; waiting\n".to_owned())
            }
            Err(why) => Some(format!("{why}; nothing was changed\n")),
        };
        // A repeated message is printed once.
        if let Some(said) = said.filter(|said| *said != before) {
            if !say::<OutputError>(&said)? {
                break;
            }
            before = said;
        }
        let now = watch.trouble();
        if now != trouble && !say::<OutputError>(&noticed(now.as_deref()))? {
            break;
        }
        trouble = now;
        let left = next.saturating_duration_since(Instant::now());
        let wait = if left.is_zero() { Lease::RENEW } else { left.min(Lease::RENEW) };
        if stop.wait_with(wait, [watch.wake()]) {
            break;
        }
        if watch.take() > 0 {
            let soon = Instant::now() + GATHERED;
            next = next.min(ended.map_or(soon, |ended| soon.max(ended + APART)));
        }
    }
    lease.give_back(&pass.api);
    Ok(0)
}

fn noticed(trouble: Option<&str>) -> String {
    match trouble {
        Some(why) => {
            format!("changed objects are not noticed at once: {}\n", why.replace(char::is_control, "?"))
        }
        None => "changed objects are noticed at once\n".to_owned(),
    }
}

fn text(summary: &Summary, is_dry: bool) -> String {
    let text: String = summary.lines.iter().map(|line| format!("{line}\n")).collect();
    let Summary { objects, written, failed, .. } = summary;
    let verb = if is_dry { "would be written" } else { "written" };
    let failed = if *failed == 0 { String::new() } else { format!(", {failed} failed") };
    text + &match objects {
        0 => "no VerticalPodAutoscaler names the recommender vellum\n".to_owned(),
        _ => format!("{objects} objects: {written} {verb}{failed}\n"),
    }
}

/// A unique name of this recommender: the pod's name, the process and the time.
fn holder() -> String {
    let name = rustix::system::uname();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let host: String = name.nodename().to_string_lossy().chars().filter(|c| !c.is_control()).collect();
    format!("{host}_{}_{:x}", std::process::id(), now.as_nanos())
}
