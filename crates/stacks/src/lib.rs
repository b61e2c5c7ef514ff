//! The parts that the two recorders inside a program share.
//!
//! `vellum cost` (`vellum-recorder`) and `vellum heap` (`vellum-heapprofile`) both record stacks, from inside
//! the program, into a file that the command reads. Their ways of counting differ, for a reason stated in the
//! head of each. The rest is the same:
//!
//! | shared | where |
//! | --- | --- |
//! | steps up a stack, rules, lines of Python | [`vellum_unwind`] |
//! | the cache of rules, modules and lines ([`Facts`], [`Known`]) | here |
//! | the path of a module, and its unwinding tables ([`path_of`], [`rule_of`]) | here |
//! | the mapping of the file, and the page that forks clear ([`mod@file`]) | here |
//! | the entries of modules, stacks and lines | `vellum_wire::log` |

#![cfg_attr(not(test), no_std)]

mod facts;
pub mod file;
mod known;
mod modules;

pub use facts::Facts;
pub use known::{Known, key};
pub use modules::{PATH_MAX, path_of, rule_of};

/// Reads memory of this process by the kernel; false if it cannot be read ([`vellum_unwind::Read`]).
pub fn by_kernel(at: u64, into: &mut [u8]) -> bool {
    vellum_sys::map::copy_from(vellum_sys::Addr::new(at as usize), into) == into.len()
}
