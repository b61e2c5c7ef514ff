//! Memory pressure, by the kernel's pressure-stall information: a trigger if one can be set, or an average.

use crate::caps::{self, Caps};
use crate::text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

/// Stalled 100 ms within 2 s, the shortest window that needs no privilege.
const TRIGGER: &[u8] = b"some 100000 2000000\0";

/// A memory-pressure trigger. Its descriptor lives in the helper thread's own table.
#[derive(Debug)]
pub struct Trigger(OwnedFd);

impl Trigger {
    /// Sets the trigger, or `None` where the kernel or a container forbids it.
    pub fn set() -> Option<Trigger> {
        if !caps::has(Caps::PRESSURE) {
            return None;
        }
        let open = rustix::fs::open(c"/proc/pressure/memory", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let armed = open.and_then(|file| rustix::io::write(&file, TRIGGER).map(|_| Trigger(file)));
        if let Err(errno) = armed {
            caps::refuse(Caps::PRESSURE, errno);
        }
        armed.ok()
    }

    /// Returns whether the trigger fired since the last call.
    pub fn fired(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().contains(PollFlags::PRI)
    }
}

/// True if tasks of this machine were stalled on memory for over a hundredth of the last ten seconds.
pub fn is_stalled() -> bool {
    let mut buffer = [0u8; 256];
    text::read(c"/proc/pressure/memory", &mut buffer)
        .and_then(|pressure| text::line_after(pressure, b"some avg10="))
        .and_then(text::number)
        .is_some_and(|percent| percent >= 1)
}
