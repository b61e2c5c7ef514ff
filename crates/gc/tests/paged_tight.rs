//! The tests of `tight.rs` on paged blocks.

mod paged;
#[path = "tight.rs"]
mod tight;
