//! Tests of the allocator through its public functions.

mod come_back;
mod idle;
mod model;
mod threads;
