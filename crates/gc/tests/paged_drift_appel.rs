//! The tests of `drift_appel.rs` on paged blocks.

#[path = "drift_appel.rs"]
mod drift_appel;
mod paged;
