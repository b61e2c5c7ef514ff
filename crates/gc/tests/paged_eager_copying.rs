//! The tests of `eager_copying.rs` on paged blocks.

#[path = "eager_copying.rs"]
mod eager_copying;
mod paged;
