//! `vellum recommend`: turns Prometheus' history into settings for systemd, Kubernetes and Slurm.
//!
//! ```text
//! Prometheus ─▶ history ───▶ decide (pure) ─┬▶ dropins ──▶ DIR/UNIT.d/50-vellum.conf     (systemd)
//!               of each unit  limit, reason  ├▶ vpa ──▶ status of VerticalPodAutoscalers  (Kubernetes)
//!               or container                 └▶ slurm ──▶ a table for a plugin            (Slurm)
//! ```
//!
//! Invariants: no limit is recommended before the whole history was read, or for a unit with a short,
//! missing or invalid history. No limit is below the largest recommendation of the agent in the history. A
//! label from Prometheus becomes a path only if it is the name of a service.

pub mod decide;
pub mod dropins;
pub mod history;
pub mod slurm;
pub mod vpa;
