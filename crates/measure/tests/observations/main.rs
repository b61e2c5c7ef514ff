//! The formats of observations, from outside: what is written is read back, and whatever is read is taken or reported.

mod any;
mod errors;
mod formats;
mod fuzz;
