//! Tests of the C interface: the header, and C programs that use the library.

mod header;
mod programs;
