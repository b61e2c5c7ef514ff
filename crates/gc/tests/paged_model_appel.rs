//! The tests of `model_appel.rs` on paged blocks.

#[path = "model_appel.rs"]
mod model_appel;
mod paged;
