//! The tests of `dead_appel.rs` on paged blocks.

#[path = "dead.rs"]
mod dead;
mod paged;
