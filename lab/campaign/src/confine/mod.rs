//! Short memory, made for an experiment: a paging device and a memory cgroup of its own.
//!
//! ```text
//! Device   a zram disk, swapped to before any other     Group   a memory cgroup with a limit
//!   └── dropped: swapoff, reset, removed                  └── dropped: removed after its last process
//! ```
//!
//! A paging device may also be a file on a disk, [`SwapFile`]. All need root, and say so. Existing swap and
//! groups are not touched, and nothing is left behind. When a signal asks to end, the experiment's loop asks
//! [`Interrupt`](vellum_process::Interrupt) and returns; when we are killed, a shell removes what there is
//! ([`Undoing`](vellum_process::Undoing)).
//!
//! Order: processes end first, then their group goes, then the device; so declare them the other way round.

mod device;
mod group;
mod swap_file;

pub use device::{Device, DeviceError};
pub use group::{BETWEEN_RELIEFS, Group, RELIEF_BYTES};
pub use swap_file::SwapFile;
pub use vellum_kernel::GroupError;
