//! `vellum agent`: exports memory recommendations for this node's jobs to Prometheus.
//!
//! ```text
//! Setting (options) ─▶ Agent ─▶ step, step, … ─▶ notices, printed as lines
//!                        └─▶ Published (the page of metrics) ─▶ Exposition (HTTP server) ─▶ Prometheus
//!   --once: runs until each cgroup has a working-set curve, then prints the page to standard output
//! ```
//!
//! The process has two threads (agent and server), and one more for each connection. A signal may end it at
//! any moment: it leaves no change in any cgroup or process.

use crate::Ended;
use crate::command::recommend::token;
use clap::ValueHint;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vellum_fleet::{Access, Agent, Notice, PodsFrom, Setting, TlsFiles, usual_root};
use vellum_governor::{Admits, DEVICE_DELAY, Exposition, Stop, Tls};
use vellum_reference::{Delay, Options, SourceChoice};
use vellum_report::option::{percent, percent_or_none, time, time_or_none};
use vellum_report::stdout::{self, say};
use vellum_report::{OutputError, units};

/// The default for --for with --once.
const ONCE: Duration = Duration::from_secs(300);

/// Export a memory recommendation for every container, unit and job step of this node to Prometheus.
///
/// Finds control groups as they come and go (Kubernetes, docker, podman, cri-o, systemd, Slurm; versions 1
/// and 2). Watches each group like `vellum watch --cgroup`, in turns and within one CPU budget for all.
/// Serves metrics at http://ADDRESS/metrics, or by https (docs/fleet.md). Limits, suspends and writes
/// nothing. Root is needed to read the processes of other users.
///
/// Exit status: 0 after a signal, or at the end of --for or --once; 125 if the hierarchy, the address or a
/// file cannot be used.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum agent\n  vellum agent --listen 0.0.0.0:9189 --token-file /etc/vellum/token \\\n    \
    --tls-certificate /etc/vellum/tls.crt --tls-key /etc/vellum/tls.key\n  \
    vellum agent --pods http://127.0.0.1:10255/pods\n  vellum agent --once > /var/lib/node-exporter/vellum.prom"
)]
pub(crate) struct AgentArgs {
    /// The root of the control groups (default: /sys/fs/cgroup, or its memory hierarchy with version 1).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Option<PathBuf>,

    /// The address at which metrics are served; port 0 takes any free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9189")]
    listen: SocketAddr,

    /// Serve only clients that send the token in this file (Authorization: Bearer). The file is read again
    /// for each request.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// Serve only over TLS (https), with the certificate in this file (PEM), followed by its intermediate
    /// certificates. The file is read again for each connection.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// The certificate's key (PEM, without a passphrase). The file is read again for each connection.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// The source of the names of pods: the kubelet's endpoint, such as http://127.0.0.1:10255/pods
    /// (read-only) or https://127.0.0.1:10250/pods, or a file written by `kubectl get pods -A -o json`.
    #[arg(long, value_name = "URL|FILE")]
    pods: Option<PodsFrom>,

    /// A file with the bearer token for the kubelet.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "pods")]
    pods_token_file: Option<PathBuf>,

    /// A file with the CA certificates (PEM) for the kubelet.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "pods")]
    pods_ca_file: Option<PathBuf>,

    /// Watch groups of unknown shape, too, if they have processes and no groups below.
    #[arg(long)]
    all: bool,

    /// The share of one processor that all watches may cost together.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "2%")]
    total: f64,

    /// The share of a job's CPU time that watching it may cost.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    budget: f64,

    /// The share of one processor that watching a job may cost, if that is more than --budget.
    #[arg(long, value_name = "PERCENT", value_parser = percent_or_none, default_value = "0.05%")]
    idle_budget: f64,

    /// The CPU time that a job's first curve may take beyond both; the rest of its watch repays it.
    #[arg(long, value_name = "TIME", value_parser = time_or_none, default_value = "60ms")]
    burst: Duration,

    /// The smallest window, in user CPU time of the job, at least 50ms; each further one is twice as long.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100ms")]
    delta: Duration,

    /// The delay of a page fault, such as 100us, in place of measuring it on the swap device or disk of this
    /// machine.
    #[arg(long, value_name = "TIME", value_parser = time)]
    delay: Option<Duration>,

    /// The source of references: auto, or a name from `vellum watch --sources`.
    #[arg(long, value_name = "NAME", default_value = SourceChoice::AUTO)]
    source: SourceChoice,

    /// Instead of serving, write the metrics to standard output when each group has a curve, or after five
    /// minutes, and end.
    #[arg(long)]
    once: bool,

    /// End after this time, such as 30s or 5min.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
}

impl AgentArgs {
    fn options(&self) -> Options {
        Options {
            delta: self.delta,
            budget: self.budget,
            idle_budget: self.idle_budget,
            burst: self.burst,
            source: self.source.kind(),
            ..Options::default()
        }
    }

    /// S, with a line about its source.
    fn delay(&self) -> (Delay, String) {
        let what = "S, the delay of a page fault";
        match self.delay.map_or_else(Delay::measure, |given| Ok(Delay::given(given))) {
            Ok(delay) => {
                let mean = units::time(Duration::from_nanos(delay.mean_ns as u64));
                (delay, format!("{what}: {mean}"))
            }
            Err(why) => {
                let assumed = units::time(DEVICE_DELAY);
                (
                    Delay::given(DEVICE_DELAY),
                    format!("{what}, cannot be measured ({why}); {assumed} is assumed"),
                )
            }
        }
    }
}

/// Runs the agent until a signal, the end of the time, or the end of its reader.
pub(crate) fn agent(args: &AgentArgs) -> Ended {
    let (served, pods) = (args.token_file.as_deref(), args.pods_token_file.as_deref());
    let (token, pods_token) = (token(served)?, token(pods)?);
    let tls = args.tls_certificate.as_deref().zip(args.tls_key.as_deref());
    let tls = tls.map(|(certificate, key)| TlsFiles::open(certificate, key)).transpose()?;
    // Before there is another thread: those made later inherit it.
    let stop = Stop::block()?;
    args.options().check()?;
    let (delay, of_delay) = args.delay();
    let root = args.root.clone().map_or_else(usual_root, Ok)?;
    let setting = Setting {
        root: root.clone(),
        others: args.all,
        pods: args.pods.clone(),
        access: Access { token: pods_token, authorities: args.pods_ca_file.clone(), identity: None },
        watch: args.options(),
        share: args.total,
        delay,
    };
    let mut agent = Agent::new(setting)?;
    let page = agent.page();
    let server = match args.once {
        true => None,
        false => {
            let page = page.clone();
            let tls = tls.clone().map(|tls| Box::new(tls) as Box<dyn Tls>);
            let admits =
                token.map(|token| Box::new(move |given: Option<&[u8]>| token.admits(given)) as Admits);
            Some(Exposition::start(args.listen, admits, tls, move || page.text())?)
        }
    };
    let mut teller = Teller { quiet: args.once, began: Instant::now(), trouble: None };
    let greeting = |server: &Exposition| {
        format!("groups below {}; metrics at {}\n{of_delay}\n", root.display(), server.url())
    };
    let mut heard = say::<OutputError>(&server.as_ref().map(greeting).unwrap_or_default())?;
    let limit = args.time.or(args.once.then_some(ONCE));
    while heard {
        let (notices, wait) = agent.step();
        heard = teller.notices(&notices)? && teller.certificate(tls.as_ref())?;
        let left = limit.map(|limit| limit.saturating_sub(teller.began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) || (args.once && agent.is_answered()) {
            break;
        }
        let wait = left.map_or(wait, |left| wait.min(left));
        if heard && stop.wait_with(wait, agent.wake()) {
            break;
        }
    }
    if args.once {
        agent.publish();
        stdout::write_all(page.text_file().as_bytes())?;
    }
    Ok(0)
}

/// Prints notices.
struct Teller {
    /// True if standard output is for metrics: only problems are then printed, to standard error.
    quiet: bool,
    began: Instant,
    /// The last printed problem of the certificate.
    trouble: Option<String>,
}

impl Teller {
    /// Prints notices; returns false if the reader has closed the output.
    fn notices(&self, notices: &[Notice]) -> Result<bool, OutputError> {
        let mut text = String::new();
        for notice in notices {
            let line = notice.text.replace(char::is_control, "?");
            match self.quiet {
                false => text += &self.line(&line),
                true if notice.is_trouble => say!("vellum: {line}"),
                true => {}
            }
        }
        say(&text)
    }

    /// Prints changes of the certificate's state; returns false if the reader has closed the output.
    fn certificate(&mut self, tls: Option<&TlsFiles>) -> Result<bool, OutputError> {
        let now = tls.and_then(TlsFiles::trouble);
        if now == self.trouble {
            return Ok(true);
        }
        let line = match &now {
            Some(why) => format!("{why}. The certificate of before stays in force"),
            None => "the new certificate is in force".to_owned(),
        };
        self.trouble = now;
        say(&self.line(&line.replace(char::is_control, "?")))
    }

    fn line(&self, text: &str) -> String {
        format!("{:9.1} s  {text}\n", self.began.elapsed().as_secs_f64())
    }
}
