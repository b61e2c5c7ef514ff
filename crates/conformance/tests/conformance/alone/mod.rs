//! Tests that run while nothing else runs on the machine: `limits` uses cgroups with little memory, `bounds`
//! needs a processor for the pager's thread, and `commitment` changes a kernel setting.

mod bounds;
mod commitment;
mod limits;
