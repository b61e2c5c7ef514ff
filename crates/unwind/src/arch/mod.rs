//! Machine-dependent parts: register numbers, and where a frame has its return address.
//!
//! Each machine has one file, with the same names.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(target_arch = "aarch64"))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{BP, OP_BREG_BP, RA, SP, VENDOR, is_call, plain, return_address, saved};
#[cfg(not(target_arch = "aarch64"))]
pub(crate) use x86_64::{BP, OP_BREG_BP, RA, SP, VENDOR, is_call, plain, return_address, saved};
