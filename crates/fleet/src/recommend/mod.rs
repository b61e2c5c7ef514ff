//! From what Prometheus remembers to what systemd sets: `vellum recommend systemd`.
//!
//! ```text
//! Prometheus ──▶ history ──▶ decide (pure) ──▶ dropins ──▶ DIR/UNIT.d/50-vellum.conf
//!                of each unit  a number, and why
//! ```
//!
//! Invariants: either all of the history was read, or nothing is decided; a unit whose history is short,
//! missing or absurd gets no number; no number is below the largest advice in the history; a label from
//! Prometheus never becomes a path unless it is the name of a service.

pub mod decide;
pub mod dropins;
pub mod history;
