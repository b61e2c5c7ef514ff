//! Tests that have the machine to themselves: control groups with little memory, bounds that hold while
//! the pager's thread gets a processor, and a setting of the kernel's.

mod bounds;
mod commitment;
mod limits;
