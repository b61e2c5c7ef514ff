//! Tests that run while no other test runs: they change settings of the whole kernel, or measure shares of
//! time.

mod groups;
mod working_set;
