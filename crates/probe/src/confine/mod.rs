//! Short memory, made for an experiment: a paging device and a memory cgroup of its own.
//!
//! ```text
//! Device   a zram disk, swapped to before any other     Group   a memory cgroup with a limit
//!   └── dropped: swapoff, reset, removed                  └── dropped: removed when its last process has left
//! ```
//!
//! A paging device may also be a file on a disk, [`SwapFile`]. All need root, and say so. Nothing that was there before is touched, and nothing is left, also when a signal asks to end:
//! [`Interrupt`](crate::Interrupt) turns signals into a question that the experiment's loop answers by going home.
//!
//! Order: processes end first, then their group goes, then the device; so declare them the other way round.

mod device;
mod group;
mod swap_file;

pub use device::{Device, DeviceError};
pub use group::{BETWEEN_RELIEFS, Group, GroupError, RELIEF_BYTES};
pub use swap_file::SwapFile;
