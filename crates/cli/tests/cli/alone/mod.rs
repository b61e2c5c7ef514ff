//! Tests that have the machine to themselves: they set up the kernel for all of it, or look at shares of time.

mod groups;
mod working_set;
