//! The machine: the bodies of the functions that are written in assembly, as macros that each such function
//! consists of.
//!
//! One file a machine, each with the same names. What a function is for, and why it is assembly, is said
//! where it is.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{
    KINDS, KNOWN, MAPPING, WATCHED, copying, go_to, load, operator, system_call, try_or_throw,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{NUMBERS, copying, go_to, load, operator, system_call, try_or_throw};
