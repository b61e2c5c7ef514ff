//! The test of `confined.rs`, where objects move.

#[path = "confined.rs"]
mod confined;
