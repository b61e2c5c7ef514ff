//! Reads the counters of another process from its memory, and finds the addresses of symbols that its library
//! exports.
//!
//! ```text
//! /proc/PID/maps ─▶ address of libvellum.so ─▶ its symbol COUNTERS_SYMBOL ─▶ /proc/PID/mem: symbol ─▶ slot
//!                                              its symbol DOOR_SYMBOL (`crate::asked`)
//! ```
//!
//! A slot is the counters of one process. The process that is read neither stops nor does anything: each
//! sample is one read of [`SLOT_BYTES`] bytes. The kernel allows this for processes of the same user,
//! unless the system restricts it to children (ptrace(2), "access mode").

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Object, ObjectSymbol, ReadCache, elf};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use vellum_kernel::mapping;
use vellum_wire::{COUNTERS_SYMBOL, ExportedCounters, SLOT_BYTES, Slot};

/// The prefix of the names of the runtime's files.
const LIBRARY: &str = "libvellum.so";

/// Why a process's counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// Its memory may not be read.
    #[error(
        "cannot read the memory of process {pid} ({source}); run as root, or set kernel.yama.ptrace_scope to 0 for your own processes"
    )]
    Forbidden {
        /// Its number.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The process does not run on Vellum.
    #[error(
        "process {0} has not loaded {LIBRARY} of this version; start it with `vellum run` of the same version"
    )]
    NoLibrary(u32),
}

/// A process whose counters can be read again and again.
#[derive(Debug)]
pub struct Counters {
    memory: File,
    slot: u64,
}

impl Counters {
    /// Finds the counters of process `pid`.
    pub fn of(pid: u32) -> Result<Counters, DoorError> {
        let read = |bytes: &[u8; ExportedCounters::BYTES], _: &File| ExportedCounters::read(bytes);
        let (memory, slot) = exported(pid, COUNTERS_SYMBOL, File::options().read(true), read)?;
        Ok(Counters { memory, slot })
    }

    /// The counters now; `None` when the process has ended.
    pub fn read(&self) -> Option<Box<Slot>> {
        let mut slot = Box::new(Slot::new());
        // SAFETY: a slot is SLOT_BYTES bytes of atomics, any bits of which are valid, and this one is nobody
        // else's yet.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(std::ptr::from_mut::<Slot>(&mut slot).cast::<u8>(), SLOT_BYTES)
        };
        self.memory.read_exact_at(bytes, self.slot).ok()?;
        Some(slot)
    }
}

/// The memory of process `pid`, opened so, and what `read` makes of the first bytes of a symbol that its
/// library exports.
pub(crate) fn exported<const BYTES: usize, T>(
    pid: u32,
    symbol: &str,
    how: &OpenOptions,
    read: impl Fn(&[u8; BYTES], &File) -> Option<T>,
) -> Result<(File, T), DoorError> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let explain = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => DoorError::NoProcess(pid),
        _ if source.raw_os_error() == Some(libc::ESRCH) => DoorError::NoProcess(pid),
        _ => DoorError::Forbidden { pid, source },
    };
    let maps = std::fs::read(place.join("maps")).map_err(explain)?;
    let memory = how.open(place.join("mem")).map_err(explain)?;
    for (start, path) in libraries(&maps) {
        // The library as the process sees it, which may live in a container.
        let seen = place.join("root").join(path.strip_prefix("/").unwrap_or(path));
        let Some(door) = door_of(&seen, symbol).or_else(|| door_of(path, symbol)) else {
            continue;
        };
        let mut bytes = [0; BYTES];
        match memory.read_exact_at(&mut bytes, start.wrapping_add(door)) {
            Ok(()) => {}
            // The file has been replaced since by one with the symbol elsewhere.
            Err(error)
                if error.kind() == io::ErrorKind::UnexpectedEof
                    || error.raw_os_error() == Some(libc::EIO) =>
            {
                continue;
            }
            Err(error) => return Err(explain(error)),
        }
        if let Some(found) = read(&bytes, &memory) {
            return Ok((memory, found));
        }
    }
    Err(DoorError::NoLibrary(pid))
}

/// The first address of each mapped file that may be the runtime, and its path.
fn libraries(maps: &[u8]) -> impl Iterator<Item = (u64, &Path)> {
    mapping::mappings(maps).filter_map(|mapping| {
        let path = Path::new(OsStr::from_bytes(mapping.path));
        let name = path.file_name()?.as_bytes();
        let begins = path.is_absolute() && mapping.offset == 0 && name.starts_with(LIBRARY.as_bytes());
        begins.then_some((mapping.start, path))
    })
}

/// Bytes from where the file is mapped to a symbol that it exports.
pub(crate) fn door_of(path: &Path, symbol: &str) -> Option<u64> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = ElfFile64::<object::Endianness, _>::parse(&cache).ok()?;
    let endian = file.endian();
    let headers = file.elf_program_headers();
    let first = headers.iter().find(|header| header.p_type(endian) == elf::PT_LOAD)?.p_vaddr(endian);
    let door = file.dynamic_symbols().find(|found| found.name() == Ok(symbol))?;
    Some(door.address().wrapping_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_a_list_of_mappings() {
        let maps = b"7f00-7f01 r--p 00000000 fe:00 12 /usr/lib/libc.so.6\n\
                    7f10-7f20 r--p 00000000 fe:00 13 /opt/a b/libvellum.so\n\
                    7f20-7f30 r-xp 00010000 fe:00 13 /opt/a b/libvellum.so\n\
                    7f40-7f50 rw-p 00000000 00:00 0 \n";
        assert_eq!(libraries(maps).collect::<Vec<_>>(), [(0x7f10, Path::new("/opt/a b/libvellum.so"))]);
    }
}
