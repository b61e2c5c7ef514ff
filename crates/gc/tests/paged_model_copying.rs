//! The tests of `model_copying.rs` on paged blocks.

#[path = "model_copying.rs"]
mod model_copying;
mod paged;
