//! The tests of `threads.rs`, where objects move.

#[path = "threads.rs"]
mod threads;
