//! The tests of `tight.rs`, where there are generations.

#[path = "tight.rs"]
mod tight;
