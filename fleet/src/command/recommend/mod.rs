//! `vellum recommend`: turns Prometheus' history into settings for systemd, Kubernetes and Slurm.
//!
//! ```text
//!                                             ┌─▶ systemd: drop-in files
//! history ─▶ a memory limit, with its reason ─┼─▶ kubernetes: status of VerticalPodAutoscalers
//!                                             └─▶ slurm: a table for a plugin
//! ```
//!
//! The command writes only after it has read the whole history. It starts, stops and reloads no service.

mod kubernetes;
mod slurm;
mod systemd;

use crate::Ended;
use clap::{Subcommand, ValueHint};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_fleet::recommend::decide::Rules;
use vellum_fleet::{Access, Address, Error, Server, TokenFile};
use vellum_report::option::{percent_or_none, time, time_or_none};

/// Derive settings from the metrics of `vellum agent` in Prometheus.
#[derive(Debug, clap::Args)]
pub(crate) struct Recommend {
    #[command(subcommand)]
    to: To,
}

#[derive(Debug, Subcommand)]
enum To {
    Kubernetes(kubernetes::Kubernetes),
    Slurm(slurm::Slurm),
    Systemd(systemd::Systemd),
}

/// Options for the history.
#[derive(Debug, clap::Args)]
pub(crate) struct Prometheus {
    /// The address of Prometheus or a compatible server, by http or https.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090", value_parser = address)]
    prometheus: Address,

    /// A file with the bearer token for Prometheus.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// A file with CA certificates (PEM) for Prometheus, in place of the system's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca_file: Option<PathBuf>,
}

impl Prometheus {
    pub(crate) fn server(&self) -> Result<Server, Error> {
        let (token, authorities) = (token(self.token_file.as_deref())?, self.ca_file.clone());
        Server::new(self.prometheus.clone(), &Access { token, authorities, identity: None })
    }
}

/// Options for the numbers.
#[derive(Debug, clap::Args)]
struct Made {
    /// The length of the history in which the largest recommendation is found.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "192h")]
    over: Duration,

    /// The shortest history for which a number is given.
    #[arg(long, value_name = "TIME", value_parser = time_or_none, default_value = "24h")]
    least: Duration,

    /// The margin above the recommendation.
    #[arg(long, value_name = "PERCENT", value_parser = percent_or_none, default_value = "10%")]
    margin: f64,
}

impl Made {
    fn rules(&self) -> Rules {
        Rules { least: self.least, margin: self.margin }
    }
}

pub(crate) fn token(file: Option<&Path>) -> Result<Option<TokenFile>, Error> {
    file.map(TokenFile::open).transpose()
}

fn address(text: &str) -> Result<Address, Error> {
    Address::parse(text, "")
}

pub(crate) fn recommend(args: &Recommend) -> Ended {
    match &args.to {
        To::Kubernetes(args) => kubernetes::recommend(args),
        To::Slurm(args) => slurm::recommend(args),
        To::Systemd(args) => systemd::recommend(args),
    }
}
