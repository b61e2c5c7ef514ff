//! Tests that have the machine to themselves: they set up the kernel for all of it, or measure
//! shares of time.

mod groups;
mod working_set;
