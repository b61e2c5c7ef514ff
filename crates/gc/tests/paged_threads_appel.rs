//! The tests of `threads_appel.rs` on paged blocks.

mod paged;
#[path = "threads.rs"]
mod threads;
