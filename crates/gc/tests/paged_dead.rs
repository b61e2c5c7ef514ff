//! The tests of `dead.rs` on paged blocks.

#[path = "dead.rs"]
mod dead;
mod paged;
