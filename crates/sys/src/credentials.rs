//! Calls that change a thread's credentials (user, groups, capabilities), repeated on another thread.
//!
//! In Linux each thread has its own credentials. The C library makes all threads that it started repeat such
//! a call. A background thread that must continue (a pager's, which the program always needs) repeats it with
//! this file's functions. It had the caller's credentials before, so the kernel allows it the same call. The
//! arguments are stored by value, as the caller's memory may be paged out.

use crate::{Span, map, raw, round_up};
use rustix::io::Errno;

/// Words of a `capset`: the version, and two sets of three masks of 32 bits.
const CAPSET_WORDS: usize = 7;

/// A call that changes the calling thread's credentials, and has succeeded once.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    number: usize,
    args: [usize; 6],
    words: [u32; CAPSET_WORDS],
}

const PR_CAP_AMBIENT_IS_SET: usize = 1;
const LANDLOCK_RESTRICT_SELF: libc::c_long = libc::SYS_landlock_restrict_self;

/// True if `prctl` with these arguments changes a thread's rights.
pub fn is_privilege(option: i32, argument: usize) -> bool {
    match option {
        libc::PR_SET_KEEPCAPS
        | libc::PR_CAPBSET_DROP
        | libc::PR_SET_SECUREBITS
        | libc::PR_SET_NO_NEW_PRIVS => true,
        libc::PR_CAP_AMBIENT => argument != PR_CAP_AMBIENT_IS_SET,
        _ => false,
    }
}

impl Change {
    /// No call.
    pub const fn none() -> Change {
        Change { number: 0, args: [0; 6], words: [0; CAPSET_WORDS] }
    }

    /// The call of that number with these arguments, none of which is a pointer.
    pub fn plain(number: libc::c_long, args: [usize; 6]) -> Change {
        Change { number: number as usize, args, words: [0; CAPSET_WORDS] }
    }

    /// `capset` with what its two arguments point to.
    ///
    /// # Safety
    /// The call has succeeded with them.
    pub unsafe fn capset(header: *const u32, data: *const u32) -> Change {
        const VERSION_1: u32 = 0x1998_0330;
        let mut words = [0; CAPSET_WORDS];
        // SAFETY: the kernel has read the same; version 1 has three words.
        unsafe {
            words[0] = header.read_unaligned();
            let count = if words[0] == VERSION_1 { 3 } else { CAPSET_WORDS - 1 };
            for (index, word) in words[1..=count].iter_mut().enumerate() {
                *word = data.add(index).read_unaligned();
            }
        }
        Change { number: libc::SYS_capset as usize, args: [0; 6], words }
    }

    /// Makes the call for the calling thread.
    pub fn apply(&self) -> Result<(), Errno> {
        let mut args = self.args;
        let header = [self.words[0], 0];
        let mut borrowed = None;
        match self.number as libc::c_long {
            libc::SYS_capset => {
                args = [header.as_ptr() as usize, self.words[1..].as_ptr() as usize, 0, 0, 0, 0];
            }
            // The descriptor is the program's, and this thread has a table of its own.
            LANDLOCK_RESTRICT_SELF => {
                let file = programs(args[0])?;
                args[0] = file;
                borrowed = Some(file);
            }
            _ => {}
        }
        // SAFETY: only the calling thread's credentials change; the memory read lives until the call returns.
        let result = unsafe { raw::syscall(self.number as libc::c_long, args) };
        if let Some(file) = borrowed {
            close(file);
        }
        result.map(|_| ())
    }
}

fn close(file: usize) {
    // SAFETY: opened by `programs` and known to nobody else.
    let _ = unsafe { raw::syscall(libc::SYS_close, [file, 0, 0, 0, 0, 0]) };
}

/// A descriptor of the program's, in the calling thread's table.
fn programs(file: usize) -> Result<usize, Errno> {
    let pid = rustix::process::getpid().as_raw_nonzero().get() as usize;
    // SAFETY: the call takes no pointers and only makes a descriptor.
    let process = unsafe { raw::syscall(libc::SYS_pidfd_open, [pid, 0, 0, 0, 0, 0])? };
    // SAFETY: this call, too, takes no pointers and only makes a descriptor.
    let found = unsafe { raw::syscall(libc::SYS_pidfd_getfd, [process, file, 0, 0, 0, 0]) };
    close(process);
    found
}

/// The calling thread's supplementary groups, in memory that is nobody's block.
#[derive(Debug)]
pub struct Groups {
    memory: Span,
    count: usize,
}

impl Groups {
    /// Reads them.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn read() -> Result<Groups, Errno> {
        // SAFETY: a question how many there are.
        let count = unsafe { raw::syscall(libc::SYS_getgroups, [0; 6])? };
        let bytes = round_up((count * size_of::<libc::gid_t>()).max(1), crate::PAGE);
        let mut groups = Groups { memory: map::reserve_writable(bytes)?, count };
        // SAFETY: there is room for `count`.
        groups.count =
            unsafe { raw::syscall(libc::SYS_getgroups, [count, groups.memory.start.get(), 0, 0, 0, 0])? };
        Ok(groups)
    }

    /// To have these and no others. The groups must outlive the change.
    pub fn change(&self) -> Change {
        Change::plain(libc::SYS_setgroups, [self.count, self.memory.start.get(), 0, 0, 0, 0])
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // SAFETY: mapped by `read`, and nobody uses it any more.
        let _ = unsafe { map::release(self.memory) };
    }
}
