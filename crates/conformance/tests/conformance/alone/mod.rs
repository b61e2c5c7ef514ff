//! Tests that have the machine to themselves: control groups with little memory, and a setting of
//! the kernel's.

mod commitment;
mod limits;
