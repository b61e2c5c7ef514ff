//! From what Prometheus remembers to what engines set: `vellum recommend`.
//!
//! ```text
//! Prometheus ─┬▶ history    ─┐                 ┌▶ dropins ──▶ DIR/UNIT.d/50-vellum.conf     (systemd)
//!             └▶ containers ─┴▶ decide (pure) ─┼▶ vpa ──▶ status of VerticalPodAutoscalers  (Kubernetes)
//!                of each unit    a number, and why └▶ slurm ──▶ a table for a plugin           (Slurm)
//! ```
//!
//! Invariants: either all of the history was read, or nothing is decided; a unit whose history is short,
//! missing or absurd gets no number; no number is below the largest advice in the history; a label from
//! Prometheus never becomes a path unless it is the name of a service.

pub mod containers;
pub mod decide;
pub mod dropins;
pub mod history;
pub mod slurm;
pub mod vpa;
