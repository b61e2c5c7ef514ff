//! Tests that measure shares of CPU time. They run while no other test runs.

mod working_set;
