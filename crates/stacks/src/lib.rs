//! Code that the two recorders inside a program share: `vellum cost` (`vellum-recorder`) and `vellum heap`
//! (`vellum-heapprofile`).
//!
//! Both record stacks, from inside the program, into a file that the command reads. They count in different
//! ways, for a reason stated in the head of each. Common code is here or in other crates:
//!
//! | shared code | where |
//! | --- | --- |
//! | steps up a stack, unwinding rules, lines of Python | [`vellum_unwind`] |
//! | the cache of rules, modules and lines ([`Facts`], [`Known`]) | here |
//! | the path of a module, and its unwinding tables ([`path_of`], [`rule_of`]) | here |
//! | the mapping of the file, and the page that forks clear ([`mod@file`]) | here |
//! | the log entries that describe modules, stacks and lines | `vellum_wire::log` |

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
