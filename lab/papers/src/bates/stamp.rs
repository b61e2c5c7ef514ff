//! The first stamp of Bates 1999: the time is read as text from a file that the kernel writes, and converted
//! to a number. The paper's code, in Limbo:
//!
//! ```text
//! buf := array[128] of byte;           128 bytes, allocated
//! n := sys->read(tsfd, buf, len buf);  a system call, in which the kernel formats a number as text
//! return big string buf[0:n];          the part that was read is copied to a string and converted
//! ```
//!
//! Linux has no `/dev/busec`, the paper's file. `/proc/uptime` is similar: it can be read repeatedly from
//! the beginning, and its text is the current time. Its resolution of 10 ms does not matter, since a fine
//! clock times the stamp from outside.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub(super) const FILE: &str = "/proc/uptime";
/// The size of the paper's buffer.
const BUFFER_BYTES: usize = 128;

/// Makes slow stamps.
#[derive(Debug)]
pub(super) struct SlowStamp {
    file: File,
}

impl SlowStamp {
    pub(super) fn open() -> io::Result<SlowStamp> {
        let stamp = SlowStamp { file: File::open(FILE)? };
        // Makes one stamp, so that a failure shows before a thousand are made.
        stamp.now().map(|_| stamp)
    }

    /// Seconds since the machine's start.
    #[inline(never)]
    pub(super) fn now(&self) -> io::Result<f64> {
        let mut buffer = vec![0u8; BUFFER_BYTES];
        let length = self.file.read_at(&mut buffer, 0)?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        let number = text.split(' ').next().and_then(|word| word.parse().ok());
        number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} holds {text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_never_decrease() {
        match SlowStamp::open() {
            Ok(stamp) => {
                let first = stamp.now().unwrap();
                assert!(first > 0.0 && stamp.now().unwrap() >= first);
            }
            Err(error) => vellum_skip::skip(format_args!("{FILE}: {error}")),
        }
    }
}
