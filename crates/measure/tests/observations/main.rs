//! The formats of observations, from outside: written series are read back, and everything read is taken or
//! reported.

mod any;
mod errors;
mod formats;
mod fuzz;
