//! The tests of `dead.rs` on paged blocks, where objects move.

#[path = "dead.rs"]
mod dead;
mod paged;
