//! `vellum recommend`: from Prometheus' history to settings of systemd, Kubernetes and Slurm.
//!
//! ```text
//! Prometheus ─┬▶ history    ─┐                 ┌▶ dropins ──▶ DIR/UNIT.d/50-vellum.conf     (systemd)
//!             └▶ containers ─┴▶ decide (pure) ─┼▶ vpa ──▶ status of VerticalPodAutoscalers  (Kubernetes)
//!                of each unit    a number, and why └▶ slurm ──▶ a table for a plugin           (Slurm)
//! ```
//!
//! Invariants: no number is given before the whole history was read, or for a unit with a short, missing or
//! invalid history. No number is below the largest recommendation in the history. A label from Prometheus
//! becomes a path only if it is the name of a service.

pub mod containers;
pub mod decide;
pub mod dropins;
pub mod history;
pub mod slurm;
pub mod vpa;
