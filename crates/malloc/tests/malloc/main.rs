//! The allocator from outside.

mod come_back;
mod idle;
mod model;
mod threads;
