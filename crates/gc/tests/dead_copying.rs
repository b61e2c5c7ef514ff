//! The tests of `dead.rs`, where objects move.

#[path = "dead.rs"]
mod dead;
