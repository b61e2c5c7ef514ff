//! Perf events: each is opened, and then read as a counter, or as records in a ring that the kernel writes.
//!
//! ```text
//! Event::of(What) ─▶ Opening ─ open ─▶ Event ─ Ring::map ─▶ Ring ─ drain ─▶ Record::parse
//!                                        └──── counted: the counter's value
//! ```
//!
//! Every sample has the same fields (`FRAME`), which `Record::parse` decodes.
//!
//! An event is opened switched off, and counts in user mode and the kernel, but not in a hypervisor.
//!
//! The structures and numbers are written out here, and not taken from the crate `perf-event-open-sys2`. That
//! crate needs `memoffset`, which `deny.toml` refuses. Only some forty names would be used.
//!
//! Source: perf_event_open(2) and the kernel's `linux/perf_event.h`.

mod record;
mod ring;

pub use record::{Record, Sample};
pub use ring::Ring;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Close the descriptor when another program is executed.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Redirects an event to another's ring.
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// Reads the event's number, which its records have.
const ID: libc::c_ulong = 0x8008_2407;

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;

/// Read with the count: the time enabled, and the part of it with a counter.
const FORMAT_TIMES: u64 = 1 | 1 << 1;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;

/// The fields of each sample (`sample_type`): process and thread, time, the registers of the frame, a piece
/// of the stack, and the event's number.
const FRAME: u64 = 1 << 1 | 1 << 2 | 1 << 12 | 1 << 13 | 1 << 16;
/// bp, sp and ip, in the kernel's numbering of registers.
const FRAME_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The thing that an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Instructions, by a counter of the processor.
    Instructions,
    /// Page faults of both kinds.
    PageFaults,
    /// Page faults without reading from a device.
    MinorFaults,
    /// Page faults that had to read.
    MajorFaults,
}

/// `struct perf_event_attr`, version 5 of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

/// An event that is not open yet.
#[derive(Clone, Copy, Debug)]
pub struct Opening(Attributes);

impl Opening {
    fn with(mut self, flags: u64) -> Opening {
        self.0.flags |= flags;
        self
    }

    /// This event with `what` in place of its own.
    pub fn instead(mut self, what: What) -> Opening {
        (self.0.kind, self.0.config) = what.numbers();
        self
    }

    /// Threads and processes that are started later inherit it.
    pub fn inherited(self) -> Opening {
        self.with(INHERIT)
    }

    /// It starts when its process, or a process that inherited it, executes a program.
    pub fn from_exec(self) -> Opening {
        self.with(ENABLE_ON_EXEC)
    }

    /// It counts in user mode only, unless `sees_kernel`. To count in the kernel takes privilege.
    pub fn in_kernel(self, sees_kernel: bool) -> Opening {
        if sees_kernel { self } else { self.with(EXCLUDE_KERNEL) }
    }

    /// Its count has times, for [`Event::counted`].
    pub fn timed(mut self) -> Opening {
        self.0.read_format = FORMAT_TIMES;
        self
    }

    /// Each event writes a sample with `stack_bytes` bytes of stack to the ring. The ring becomes readable
    /// when it has `wakeup` bytes unread. All records have a time.
    pub fn sampled(mut self, wakeup: usize, stack_bytes: u32) -> Opening {
        (self.0.period, self.0.sample_type) = (1, FRAME);
        self.0.wakeup = u32::try_from(wakeup).unwrap_or(u32::MAX);
        (self.0.sample_regs_user, self.0.sample_stack_user) = (FRAME_REGISTERS, stack_bytes);
        self.with(WATERMARK | SAMPLE_ID_ALL)
    }

    /// It also records files mapped to be executed, forks, and programs that are executed.
    pub fn with_mappings(self) -> Opening {
        self.with(MMAP | MMAP2 | COMM | COMM_EXEC | TASK)
    }

    /// Opens it on a thread (0: the calling one), on one processor or (-1) wherever the thread runs.
    pub fn open(&self, thread: i32, processor: i32) -> io::Result<Event> {
        let attributes = &raw const self.0;
        // SAFETY: the attributes are as long as their `size` says, and the kernel only reads them.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attributes, thread, processor, -1, CLOSE_ON_EXEC)
        };
        match i32::try_from(fd) {
            // SAFETY: the call above made this descriptor, and nothing else has it.
            Ok(fd) if fd >= 0 => Ok(Event(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl What {
    fn numbers(self) -> (u32, u64) {
        match self {
            What::Instructions => (TYPE_HARDWARE, 1),
            What::PageFaults => (TYPE_SOFTWARE, 2),
            What::MinorFaults => (TYPE_SOFTWARE, 5),
            What::MajorFaults => (TYPE_SOFTWARE, 6),
        }
    }
}

/// The count of an event and of all that inherited it, with times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its number while there was a counter for it.
    pub value: u64,
    /// The time enabled, nanoseconds.
    pub enabled_ns: u64,
    /// The part of it with a counter, nanoseconds.
    pub running_ns: u64,
}

/// An open event.
#[derive(Debug)]
pub struct Event(File);

impl Event {
    /// An event that counts `what`, to be opened.
    pub fn of(what: What) -> Opening {
        let size = size_of::<Attributes>() as u32;
        Opening(Attributes { size, flags: DISABLED | EXCLUDE_HYPERVISOR, ..Attributes::default() })
            .instead(what)
    }

    /// Has it write to the ring of `other`, of the same processor.
    pub fn share_ring(&self, other: &Event) -> io::Result<()> {
        // SAFETY: the request does not touch this process's memory.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), SET_OUTPUT, other.0.as_raw_fd()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The number that its samples have.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: this request writes one number of this size, to a variable that outlives the call.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), ID, &raw mut id) };
        if done == 0 { Ok(id) } else { Err(io::Error::last_os_error()) }
    }

    /// The count of the event and of all that inherited it; 0 if it cannot be read.
    pub fn count(&self) -> u64 {
        let mut value = [0u8; 8];
        (&self.0).read_exact(&mut value).map_or(0, |()| u64::from_ne_bytes(value))
    }

    /// The count of a [timed](Opening::timed) event, with its times.
    ///
    /// # Errors
    /// The kernel's, or `UnexpectedEof` of an event that could not count.
    pub fn counted(&self) -> io::Result<Counted> {
        let mut words = [[0u8; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [value, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Counted { value, enabled_ns, running_ns })
    }

    /// The file to poll: readable when the ring has `wakeup` bytes unread.
    pub fn file(&self) -> &File {
        &self.0
    }
}

/// True if an error of the kernel is about permission: then `perf_event_paranoid` may be too high.
pub fn is_permission(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}
