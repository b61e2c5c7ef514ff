//! The tests of `cards.rs` on paged blocks.

#[path = "cards.rs"]
mod cards;
mod paged;
