//! The governor with real processes, in control groups where there are any, and what is shipped beside it.

mod container;
mod examples;
mod groups;
mod jobs;
