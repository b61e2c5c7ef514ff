//! The tests of `threads.rs` on paged blocks, where objects move.

mod paged;
#[path = "threads.rs"]
mod threads;
