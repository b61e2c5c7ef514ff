//! The tests of `cards_appel.rs` on paged blocks.

#[path = "cards_appel.rs"]
mod cards_appel;
mod paged;
