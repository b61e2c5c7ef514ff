//! The library of `vellum agent`, `recommend` and `plan`: memory recommendations for each job of a node.
//!
//! `vellum watch` measures how much memory one job needs, and how much a smaller limit would slow it down.
//! This crate watches all jobs of a node in this way, without configuration, and exports the figures to
//! Prometheus. It schedules and limits nothing: cluster engines do.
//!
//! ```text
//! Discovery ─▶ cgroups that come and go
//!   group.rs (the kind of job, by the cgroup's path)    ┌─▶ page (OpenMetrics) ─▶ Prometheus
//!   Pods     (namespace, pod, container)                │
//!                           ▼                           │
//!                         Agent ─▶ a Watched per cgroup ─▶ View (snapshot)
//!                           ▲
//!                         Turns   schedules the watches within one CPU budget
//! ```
//!
//! The HTTP server is the one of `vellum-governor`; [`TlsFiles`] configures its TLS.
//!
//! [`recommend`] turns Prometheus' history into settings of systemd, Kubernetes and Slurm. [`plan`]
//! computes the memory that a whole fleet would need.
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | group | a cgroup that holds a job |
//! | level | a cgroup above jobs: a slice, a pod, a Slurm job |
//! | turn | one measurement of a group's working sets (a cycle of its watch) |
//! | share | the part of one processor that all watches may cost together |
//!
//! # Guarantees
//!
//! - Each watch keeps to its budget ([`vellum_reference::Options`]). All watches and the agent's other
//!   work together keep to the share.
//! - Nothing is written to any cgroup, and nothing is left behind, however the agent ends.
//! - A cgroup may disappear at any moment. If it cannot be watched, a notice gives the reason, and the
//!   agent retries.

mod address;
mod agent;
mod discover;
mod error;
pub mod group;
mod http;
pub mod kube;
mod metrics;
pub mod plan;
mod pods;
mod prometheus;
#[doc(hidden)]
pub mod readers;
pub mod recommend;
mod tls;
mod token;
mod turns;
mod view;
mod watched;

pub use address::Address;
pub use agent::{Agent, Notice, Published, Setting};
pub use discover::usual_root;
pub use error::Error;
pub use http::{Access, HttpError, Server};
pub use pods::PodsFrom;
pub use tls::TlsFiles;
pub use token::TokenFile;
