//! The commands: a file or a folder each, with one function that takes the arguments and returns the exit
//! status.

pub(crate) mod agent;
pub(crate) mod plan;
pub(crate) mod recommend;
