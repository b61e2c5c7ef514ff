//! Sends requests to a process that uses Vellum, such as to sample its blocks ([`vellum_wire::door`]).
//!
//! A request is a path and a byte, written into memory that the process's library reserves for requests. The
//! kernel allows a user to read and write the memory of their own processes. The process serves the request
//! when its background thread next wakes, or when its allocator needs new memory.

use crate::door::{DoorError, exported};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use vellum_wire::door::{Ask, DONE, DOOR_PATH_MAX, DOOR_SYMBOL, HARDENED, HeapDoor};

/// A process that takes requests.
#[derive(Debug)]
pub struct Asked {
    pid: u32,
    memory: File,
    door: u64,
}

/// A request was not made, or not served.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Its memory cannot be read or written.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The process is hardened.
    #[error("process {0} is hardened (VELLUM_HARDEN), and takes no samples")]
    Hardened(u32),
    /// Somebody else has asked.
    #[error("another command is reading process {0}; try again when that has ended")]
    Taken(u32),
    /// The path is too long.
    #[error("the path {0} is longer than the process has room for; set XDG_RUNTIME_DIR to a shorter one")]
    LongPath(std::path::PathBuf),
    /// It filters its system calls.
    #[error("process {0} filters its system calls, so its background thread cannot sample")]
    Filtered(u32),
    /// The process cannot use the file.
    #[error(
        "process {pid} cannot use the file ({source}); name one that exists in its own file system and that its user may write"
    )]
    Refused {
        /// Its number.
        pid: u32,
        /// The system's error in that process.
        source: io::Error,
    },
}

impl Asked {
    /// Finds the place for requests to process `pid`.
    pub fn of(pid: u32) -> Result<Asked, AskError> {
        let read = |pointer: &[u8; 8], memory: &File| {
            let door = u64::from_ne_bytes(*pointer);
            let mut head = [0; 12];
            memory.read_exact_at(&mut head, door).ok()?;
            HeapDoor::is_known(&head).then_some(door)
        };
        let (memory, door) = exported(pid, DOOR_SYMBOL, File::options().read(true).write(true), read)?;
        Ok(Asked { pid, memory, door })
    }

    fn byte(&self, at: usize) -> Result<u8, DoorError> {
        let mut byte = [0];
        let read = self.memory.read_exact_at(&mut byte, self.door + at as u64);
        read.map_err(|_| DoorError::NoProcess(self.pid))?;
        Ok(byte[0])
    }

    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), DoorError> {
        let explain = |source: io::Error| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => DoorError::Forbidden { pid: self.pid, source },
            _ => DoorError::NoProcess(self.pid),
        };
        self.memory.write_all_at(bytes, self.door + at as u64).map_err(explain)
    }

    /// Makes a request, with a path if it needs one. [`Asked::answer`] has the result.
    pub fn ask(&self, what: Ask, path: Option<&Path>) -> Result<(), AskError> {
        if self.byte(HeapDoor::MODE_AT)? == HARDENED as u8 {
            return Err(AskError::Hardened(self.pid));
        }
        if self.byte(HeapDoor::ASK_AT)? != 0 {
            return Err(AskError::Taken(self.pid));
        }
        if let Some(path) = path {
            let mut bytes = path.as_os_str().as_bytes().to_vec();
            bytes.push(0);
            if bytes.len() > DOOR_PATH_MAX {
                return Err(AskError::LongPath(path.to_path_buf()));
            }
            self.write(HeapDoor::PATH_AT, &bytes)?;
        }
        self.write(HeapDoor::ANSWER_AT, &0u32.to_ne_bytes())?;
        // One byte is there or not: nothing reads half of it.
        Ok(self.write(HeapDoor::ASK_AT, &[what as u8])?)
    }

    /// Withdraws the pending request, if there is one.
    pub fn withdraw(&self) -> Result<(), AskError> {
        Ok(self.write(HeapDoor::ASK_AT, &[0])?)
    }

    /// The path of the last request.
    pub fn path(&self) -> Option<std::path::PathBuf> {
        let mut bytes = [0; DOOR_PATH_MAX];
        self.memory.read_exact_at(&mut bytes, self.door + HeapDoor::PATH_AT as u64).ok()?;
        let length = bytes.iter().position(|&byte| byte == 0).filter(|&length| length > 0)?;
        Some(std::ffi::OsStr::from_bytes(&bytes[..length]).into())
    }

    /// The mode that the process is in, as [`vellum_wire::door`] numbers them.
    pub fn mode(&self) -> Result<u8, AskError> {
        Ok(self.byte(HeapDoor::MODE_AT)?)
    }

    /// True if it has served the last request.
    pub fn answer(&self) -> Result<bool, AskError> {
        let mut bytes = [0; 4];
        let read = self.memory.read_exact_at(&mut bytes, self.door + HeapDoor::ANSWER_AT as u64);
        read.map_err(|_| DoorError::NoProcess(self.pid))?;
        match u32::from_ne_bytes(bytes) {
            0 => Ok(false),
            DONE => Ok(true),
            refused => match (refused >> 1) as i32 {
                libc::EPERM => Err(AskError::Filtered(self.pid)),
                libc::EBUSY => Err(AskError::Hardened(self.pid)),
                errno => {
                    Err(AskError::Refused { pid: self.pid, source: io::Error::from_raw_os_error(errno) })
                }
            },
        }
    }
}
