//! Machine-dependent code: the bodies of the functions that are written in assembly, as macros.
//!
//! Each machine has a file, and each file defines the same macros. The comment at a macro's use explains the
//! function and the reason for assembly.

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
