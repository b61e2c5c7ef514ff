//! Tests of the observation formats through the public interface.

mod any;
mod errors;
mod formats;
mod fuzz;
