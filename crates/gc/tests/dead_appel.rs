//! The tests of `dead.rs`, where there are generations.

#[path = "dead.rs"]
mod dead;
