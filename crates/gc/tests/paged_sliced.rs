//! The tests of `sliced.rs` on paged blocks.

mod paged;
#[path = "sliced.rs"]
mod sliced;
