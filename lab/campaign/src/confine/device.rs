//! A paging device for an experiment: a zram disk, made for the experiment and removed with it.
//!
//! The machine's own swap is not touched: a new disk is made, used as swap, and removed. If the kernel
//! lacks zram or refuses to make a disk, the error names the remedy.

use std::ffi::{CString, OsStr};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_process::Undoing;

const CONTROL: &str = "/sys/class/zram-control";
const PAGE: usize = 4096;
/// Higher than the priority of any other swap, so that the jobs' pages go here.
const PRIORITY: libc::c_int = 32_000;
/// From `linux/swap.h`: use the priority in the low bits.
const SWAP_FLAG_PREFER: libc::c_int = 0x8000;
/// Tries to remove a disk that is still in use, and the pause between tries.
const TRIES: usize = 50;
const BETWEEN: Duration = Duration::from_millis(100);

/// Removes the disk with the given number.
const REMOVE: &str = "swapoff /dev/zram$1; echo 1 > /sys/block/zram$1/reset \
    && echo $1 > /sys/class/zram-control/hot_remove";

/// A paging device could not be made.
#[derive(Debug, thiserror::Error)]
#[error("no paging device: {what} failed ({source}); it needs root and {needs}")]
pub struct DeviceError {
    pub(super) what: &'static str,
    pub(super) needs: &'static str,
    pub(super) source: io::Error,
}

/// The header that makes `bytes` bytes swap: version 1, the number of the last page, and the signature at the
/// end of the first page.
pub(super) fn swap_header(bytes: u64) -> Vec<u8> {
    let mut header = vec![0; PAGE];
    header[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&((bytes / PAGE as u64 - 1) as u32).to_ne_bytes());
    header[PAGE - 10..].copy_from_slice(b"SWAPSPACE2");
    header
}

/// Swaps to `path`, in preference to any other swap.
pub(super) fn swap_on(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a NUL-terminated string that lives across the call.
    match unsafe { libc::swapon(path.as_ptr(), SWAP_FLAG_PREFER | PRIORITY) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(super) fn swap_off(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a NUL-terminated string that lives across the call.
    match unsafe { libc::swapoff(path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A zram disk used as swap.
#[derive(Debug)]
pub struct Device {
    number: u32,
    node: PathBuf,
    swapping: bool,
    _undoing: Undoing,
}

impl Device {
    /// Makes a disk of `bytes` and swaps to it.
    ///
    /// # Errors
    /// [`DeviceError`] naming the step that failed; everything made until then is removed.
    pub fn new(bytes: u64) -> Result<Self, DeviceError> {
        let failed = |what| move |source| DeviceError { what, needs: "a kernel with zram", source };
        let number =
            fs::read_to_string(Path::new(CONTROL).join("hot_add")).map_err(failed("adding a zram disk"))?;
        let number: Result<u32, _> = number.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into());
        let number = number.map_err(failed("reading the number of a zram disk"))?;
        let node = PathBuf::from(format!("/dev/zram{number}"));
        // From here on the disk is removed on every way out.
        let _undoing = Undoing::by(REMOVE, &[OsStr::new(&number.to_string())]);
        let mut device = Self { number, node, swapping: false, _undoing };
        let size = device.attribute("disksize");
        fs::write(size, bytes.to_string()).map_err(failed("setting the size of a zram disk"))?;
        device.format(bytes).map_err(failed("writing the swap header"))?;
        swap_on(&device.node).map_err(failed("swapon"))?;
        device.swapping = true;
        Ok(device)
    }

    fn attribute(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(format!("zram{}", self.number)).join(name)
    }

    fn format(&self, bytes: u64) -> io::Result<()> {
        let mut disk = OpenOptions::new().write(true).open(&self.node)?;
        disk.write_all(&swap_header(bytes))?;
        disk.sync_all()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.swapping
            && let Err(error) = swap_off(&self.node)
        {
            eprintln!("vellum: swapoff {} failed ({error}); do it by hand", self.node.display());
            return;
        }
        let gone = (0..TRIES).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(BETWEEN);
            }
            fs::write(self.attribute("reset"), "1").is_ok()
                && fs::write(Path::new(CONTROL).join("hot_remove"), self.number.to_string()).is_ok()
        });
        if !gone {
            let (number, control) = (self.number, CONTROL);
            eprintln!("vellum: zram{number} is still there; remove it: echo {number} > {control}/hot_remove");
        }
    }
}
