//! The pager from outside, with a kernel and, for its policies, without.

mod common;

mod compressed;
mod ends;
mod forks;
mod full;
mod kept;
mod kills;
mod model;
mod moves;
mod policies;
mod recency;
mod simulated;
mod stacks;
