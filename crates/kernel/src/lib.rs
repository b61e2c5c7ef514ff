//! Parsers of what Linux reports on processes and the machine: `/proc`, `/sys`, cgroups, perf events.
//!
//! ```text
//! /proc/PID/stat, statm, children     Pid, Stat          processes, and their CPU time and memory
//! /proc/PID/status                    Status             memory, capabilities
//! /proc/PID/maps, smaps               mapping            mappings, and how much of each is resident
//! /proc/pressure, memory.pressure     Stalls             time that tasks waited for a resource
//! memory.max, cgroup.procs, ...       Cgroup             cgroups of both versions
//! lru_gen                             generations        pages of a cgroup by age
//! perf_event_open                     perf               events, their rings and records
//! /proc/kallsyms                      symbols            functions of the kernel
//! /proc/meminfo, cpuinfo, /sys, ...   machine            processors, memory, settings
//! ```
//!
//! - A value has its unit in its type: [`Bytes`], [`std::time::Duration`].
//! - A missing value is `None`, because kernels and containers hide files. Exception: a process without
//!   memory has sizes of 0 in [`Status`].
//! - An error names the file ([`Unreadable`]).
//! - Names of files and programs may be any bytes. In texts, bytes that are not UTF-8 are replaced.
//!
//! Readers that run inside the user's programs may not allocate; `vellum-sys` has those readers.

mod bytes;
mod cgroup;
mod file;
pub mod generations;
pub mod machine;
pub mod mapping;
pub mod perf;
mod pressure;
#[doc(hidden)]
pub mod readers;
mod stat;
mod status;
pub mod symbols;

pub use bytes::Bytes;
pub use cgroup::{Cgroup, Control, GroupError, Kills, Statistics, V1, V2, Version};
pub use file::{Unreadable, text};
pub use pressure::{Stalled, Stalls};
pub use stat::{Pid, Stat, Used, child_pids, started_ticks, statm_resident};
pub use status::{SYS_NICE, SYS_PTRACE, Status, has_capability};
