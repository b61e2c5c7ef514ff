//! A swap file for an experiment, on a given file system: made for the experiment and removed with it.
//!
//! [`Device`](super::Device) pages to memory and this file to a disk, for comparison with other pagers that
//! use a file on the same disk.

use super::device::{DeviceError, swap_header, swap_off, swap_on};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use vellum_process::Undoing;

/// A file used as swap.
#[derive(Debug)]
pub struct SwapFile {
    path: PathBuf,
    swapping: bool,
    _undoing: Undoing,
}

impl SwapFile {
    /// Makes a file of `bytes` bytes in `folder` and swaps to it.
    ///
    /// # Errors
    /// [`DeviceError`] naming the step that failed; everything made until then is removed.
    pub fn new(folder: &Path, bytes: u64) -> Result<Self, DeviceError> {
        let failed = |what| {
            move |source| DeviceError {
                what,
                needs: "room on a file system that swap files may lie on (ext4, XFS)",
                source,
            }
        };
        let path = folder.join(format!(".vellum-swap-{}", std::process::id()));
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = opened.map_err(failed("making a swap file"))?;
        // From here on the file is removed on every way out.
        let _undoing = Undoing::by("swapoff \"$1\"; rm \"$1\"", &[path.as_os_str()]);
        let mut made = Self { path, swapping: false, _undoing };
        // SAFETY: the call takes no pointers; the descriptor is open while `file` lives.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } != 0 {
            return Err(failed("finding room for a swap file")(std::io::Error::last_os_error()));
        }
        file.write_all(&swap_header(bytes)).map_err(failed("writing the swap header"))?;
        file.sync_all().map_err(failed("writing the swap header"))?;
        swap_on(&made.path).map_err(failed("swapon"))?;
        made.swapping = true;
        Ok(made)
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        if self.swapping
            && let Err(error) = swap_off(&self.path)
        {
            eprintln!(
                "vellum: swapoff {} failed ({error}); do it by hand, and remove it",
                self.path.display()
            );
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            eprintln!("vellum: {} is still there ({error}); remove it", self.path.display());
        }
    }
}
