//! The tests of `tight.rs` on paged blocks, where objects move.

mod paged;
#[path = "tight.rs"]
mod tight;
