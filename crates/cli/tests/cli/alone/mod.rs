//! Tests that run with nothing else on the machine: they change settings of the whole kernel, or measure
//! shares of time.

mod groups;
mod working_set;
