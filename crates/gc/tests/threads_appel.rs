//! The tests of `threads.rs`, where there are generations.

#[path = "threads.rs"]
mod threads;
