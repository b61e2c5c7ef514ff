//! The C interface: its header, and C programs that use it.

mod header;
mod programs;
