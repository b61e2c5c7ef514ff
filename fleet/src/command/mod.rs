//! The commands. Each is a file or folder with one function from the arguments to the exit status.

pub(crate) mod agent;
pub(crate) mod plan;
pub(crate) mod recommend;
