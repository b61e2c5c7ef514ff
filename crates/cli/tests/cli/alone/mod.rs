//! Tests that run while no other test runs: they measure shares of time.

mod working_set;
