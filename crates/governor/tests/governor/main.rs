//! Tests of the governor with real processes, in cgroups if there are any, and of the files shipped with it.

mod container;
mod examples;
mod groups;
mod jobs;
