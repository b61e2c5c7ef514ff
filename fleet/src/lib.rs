//! What every container, unit and job step of a node is worth, for the engines that clusters already run.
//!
//! One machine's watch says how much memory a job needs, and what less would cost it. This crate does so for
//! all that runs on a node, without being told what does, and hands the numbers to Prometheus. It schedules,
//! stores and limits nothing.
//!
//! ```text
//! Discovery ─▶ came, went ─┐
//!   group    (whose it is, by its path)                 ┌─▶ page (OpenMetrics) ─▶ Prometheus
//!   Pods     (namespace, pod, container)                │
//!                          ▼                            │
//!                        Agent ─▶ Watched … Watched ─▶ View
//!                          ▲
//!                        Turns   whose step is next, within one bound for all
//! ```
//!
//! [`TlsFiles`] is the TLS under which the page is served; the server itself is the governor's.
//!
//! [`recommend`] goes the other way: what Prometheus remembers becomes what systemd, Kubernetes and Slurm
//! set. [`plan`] says what a whole fleet would need.
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | group | a control group; here one that holds a job |
//! | level | a group above jobs: a slice, a pod, a Slurm job |
//! | turn | one cycle of a group's watch |
//! | share | the part of one processor that all watches may cost together |
//!
//! # Promises
//!
//! - Each watch keeps to its own budget ([`vellum_reference::Options`]); all together, and all that the agent
//!   does besides, to the share.
//! - Nothing is written to any control group, and nothing is left behind, however the agent ends.
//! - A group may go at any moment. Where one cannot be watched, a notice says why, and it is tried again.

mod address;
mod agent;
mod discover;
pub mod group;
mod http;
pub mod kube;
mod metrics;
mod oom;
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

pub use address::{Address, AddressError};
pub use agent::{Agent, AgentError, Notice, Published, Setting};
pub use discover::{Change, Discovery, RootError, usual_root};
pub use http::{Access, AccessError, HttpError, Server};
pub use pods::{PodsFrom, PodsFromError};
pub use prometheus::HistoryError;
pub use tls::{TlsError, TlsFiles};
pub use token::{TokenError, TokenFile};
pub use view::{Page, State, View};
