//! Memory limits for an experiment: its own paging device and its own memory cgroup.
//!
//! ```text
//! Device   a zram disk with the highest swap priority     Group   a memory cgroup with a limit
//!   └── dropped: swapoff, reset, removed                   └── dropped: removed after its last process
//! ```
//!
//! The paging device may also be a file on a disk, [`SwapFile`]. All three need root, and fail with an
//! error without it. Existing swap and cgroups are not touched, and nothing is left behind:
//!
//! - After a signal to end, the experiment's loop checks [`Interrupt`](vellum_process::Interrupt) and
//!   returns.
//! - After a kill, a waiting shell removes device and cgroups ([`Undoing`](vellum_process::Undoing)).
//! - Processes must end first, then their cgroup, then the device. Rust drops the variables declared last
//!   first, so declare them in the opposite order: device, cgroup, processes.

mod device;
mod group;
mod swap_file;

pub use device::{Device, DeviceError};
pub use group::{BETWEEN_RELIEFS, Group, RELIEF_BYTES};
pub use swap_file::SwapFile;
pub use vellum_kernel::GroupError;
