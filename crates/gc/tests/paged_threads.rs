//! The tests of `threads.rs` on paged blocks.

mod paged;
#[path = "threads.rs"]
mod threads;
