//! Tests that run with nothing else on the machine: control groups with little memory, bounds that hold
//! while the pager's thread gets a processor, and a kernel setting.

mod bounds;
mod commitment;
mod limits;
