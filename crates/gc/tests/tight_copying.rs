//! The tests of `tight.rs`, where objects move.

#[path = "tight.rs"]
mod tight;
