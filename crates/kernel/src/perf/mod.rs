//! Perf events: opened, then read as counters, or as records from the ring that the kernel writes.
//!
//! ```text
//! Event::of(What) ─ Opening ─ open ─▶ Event ─ Ring::map ─▶ Ring ─ drain ─▶ Record::parse
//!                                       └──── counted: the counter's value
//! ```
//!
//! [`Parts`] are the fields that a record of the event contains; `Record::parse` decodes by the same
//! value.
//!
//! An event is opened switched off, and counts in user mode and the kernel, but not in a hypervisor.
//!
//! The structures and numbers are written out here, and not taken from the crate `perf-event-open-sys2`.
//! That crate needs `memoffset`, which `deny.toml` refuses. Some forty of its names would be used here.
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
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
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

/// bp, sp and ip, in the kernel's numbering of registers.
const FRAME_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The thing that an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Instructions, by a counter of the processor.
    Instructions,
    /// Time on a processor, in nanoseconds.
    CpuClock,
    /// Page faults of both kinds.
    PageFaults,
    /// Page faults without reading from a device.
    MinorFaults,
    /// Page faults that had to read.
    MajorFaults,
}

/// The parts of each sample, in the kernel's numbering (`sample_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(u64);

impl Parts {
    /// The address of the instruction.
    pub const ADDRESS: Parts = Parts(1);
    /// Process and thread. Every sample has them.
    const THREAD: Parts = Parts(1 << 1);
    const TIME: Parts = Parts(1 << 2);
    const REGISTERS: Parts = Parts(1 << 12);
    const STACK: Parts = Parts(1 << 13);
    const IDENTIFIER: Parts = Parts(1 << 16);
    /// Time, the event's number, the registers of the frame, and a piece of the stack.
    pub const FRAME: Parts = Parts(Self::TIME.0 | Self::REGISTERS.0 | Self::STACK.0 | Self::IDENTIFIER.0);

    fn has(self, part: Parts) -> bool {
        self.0 & part.0 != 0
    }
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

    /// Each `period`-th event writes a sample of these parts to the ring. The ring becomes readable when it
    /// has `wakeup` bytes unread.
    pub fn sampled(mut self, period: u64, parts: Parts, wakeup: usize) -> Opening {
        self.0.period = period;
        self.0.sample_type = parts.0 | Parts::THREAD.0;
        self.0.wakeup = u32::try_from(wakeup).unwrap_or(u32::MAX);
        self.with(WATERMARK)
    }

    /// Samples have the registers of the frame and `bytes` bytes of stack. All records have a time.
    pub fn with_stack(mut self, bytes: u32) -> Opening {
        (self.0.sample_regs_user, self.0.sample_stack_user) = (FRAME_REGISTERS, bytes);
        self.with(SAMPLE_ID_ALL)
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
            What::CpuClock => (TYPE_SOFTWARE, 0),
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

    /// Starts it.
    pub fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    /// Stops it, and all that inherited it.
    pub fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    /// Has it write to the ring of `other`, of the same processor.
    pub fn share_ring(&self, other: &Event) -> io::Result<()> {
        self.control(SET_OUTPUT, other.0.as_raw_fd())
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

    /// A second handle of the same event.
    pub fn duplicate(&self) -> io::Result<Event> {
        self.0.try_clone().map(Event)
    }

    /// The file to poll: readable when the ring has `wakeup` bytes unread.
    pub fn file(&self) -> &File {
        &self.0
    }

    fn control(&self, request: libc::c_ulong, value: libc::c_int) -> io::Result<()> {
        // SAFETY: none of these three requests touches this process's memory.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), request, value) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// True if an error of the kernel is about permission: then `perf_event_paranoid` may be too high.
pub fn is_permission(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}
