//! Tests of the pager through its public interface, with a store on a disk.

mod common;

mod bound;
mod forks;
mod full;
mod kills;
mod model;
mod stacks;
mod system_calls;
