//! The tests of `model.rs` on paged blocks.

#[path = "model.rs"]
mod model;
mod paged;
