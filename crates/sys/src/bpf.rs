//! BPF programs that iterate over a process's mappings in the kernel: the calls to load and run them.
//!
//! Only the calls for reading page tables are here. They make maps of one value, a program that the kernel
//! calls for each mapping of a process, and a file whose reading runs the program. All of this needs
//! `CAP_BPF` and `CAP_PERFMON`, or root, and is freed when its descriptors are closed.
//!
//! Source: include/uapi/linux/bpf.h; each request structure is the beginning of `union bpf_attr`.

use crate::raw;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;

const MAP_CREATE: usize = 0;
const MAP_LOOKUP: usize = 1;
const MAP_UPDATE: usize = 2;
const PROG_LOAD: usize = 5;
const LINK_CREATE: usize = 28;
const ITER_CREATE: usize = 33;
const ARRAY: u32 = 2;
const TRACING: u32 = 26;
const TRACE_ITER: u32 = 28;
/// The helpers that read kernel memory are for programs under this licence.
const LICENCE: &core::ffi::CStr = c"GPL";

#[repr(C)]
struct MapRequest {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct ValueRequest {
    map: u32,
    reserved: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramRequest {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
    types: u32,
    function_record_bytes: u32,
    functions: u64,
    function_records: u32,
    line_record_bytes: u32,
    lines: u64,
    line_records: u32,
    attach_to: u32,
}

#[repr(C)]
struct LinkRequest {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    iterator: u64,
    iterator_bytes: u32,
    reserved: u32,
}

/// Which task an iterator is about.
#[repr(C)]
struct TaskIterator {
    thread: u32,
    process: u32,
    process_fd: u32,
    reserved: u32,
}

// Where the kernel reads what.
const _: () = assert!(core::mem::offset_of!(ProgramRequest, log) == 32);
const _: () = assert!(core::mem::offset_of!(ProgramRequest, attach_type) == 68);
const _: () = assert!(core::mem::offset_of!(ProgramRequest, attach_to) == 108);
const _: () = assert!(core::mem::offset_of!(LinkRequest, iterator) == 16);

/// # Safety
/// The memory that the request points to is valid, with the lengths in the request.
unsafe fn bpf<T>(command: usize, request: &T) -> Result<usize, Errno> {
    let block = [command, core::ptr::from_ref(request) as usize, size_of::<T>(), 0, 0, 0];
    // SAFETY: the request lives through the call, and what it points to is valid (`# Safety`).
    unsafe { raw::syscall(libc::SYS_bpf, block) }
}

/// # Safety
/// [`bpf`], for a command that returns a descriptor.
unsafe fn open<T>(command: usize, request: &T) -> Result<OwnedFd, Errno> {
    // SAFETY: the request and what it points to are valid (`# Safety`).
    let fd = unsafe { bpf(command, request) }?;
    // SAFETY: the kernel has just opened it for us, to be closed on exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn number(fd: impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd() as u32
}

/// A map of one value of `bytes` zeroed bytes.
///
/// # Errors
/// `PERM` without the privilege; `NOSYS` on a kernel without BPF; `NOMEM`.
pub fn value(bytes: usize) -> Result<OwnedFd, Errno> {
    let request = MapRequest { kind: ARRAY, key_bytes: 4, value_bytes: bytes as u32, entries: 1, flags: 0 };
    // SAFETY: the request points to nothing.
    unsafe { open(MAP_CREATE, &request) }
}

/// Sets a map's value, which has `N` bytes.
///
/// # Safety
/// The map was made by [`value`] with `N` bytes: the kernel reads as many as the map has.
pub unsafe fn set<const N: usize>(map: impl AsFd, bytes: &[u8; N]) -> Result<(), Errno> {
    let key = 0u32;
    let (map, key) = (number(map), &raw const key as u64);
    let request = ValueRequest { map, reserved: 0, key, value: bytes.as_ptr() as u64, flags: 0 };
    // SAFETY: a key of four bytes, and as many bytes as the map's value has by this function's condition.
    unsafe { bpf(MAP_UPDATE, &request) }.map(|_| ())
}

/// A map's value, which has `N` bytes.
///
/// # Safety
/// The map was made by [`value`] with `N` bytes: the kernel writes as many as the map has.
pub unsafe fn get<const N: usize>(map: impl AsFd) -> Result<[u8; N], Errno> {
    let key = 0u32;
    let mut bytes = [0; N];
    let (map, key) = (number(map), &raw const key as u64);
    let request = ValueRequest { map, reserved: 0, key, value: bytes.as_mut_ptr() as u64, flags: 0 };
    // SAFETY: a key of four bytes, and room for what the map's value has by this function's condition.
    unsafe { bpf(MAP_LOOKUP, &request) }?;
    Ok(bytes)
}

/// Loads a program that an iterator calls: the one whose function has the type number `attach_to`. If the
/// kernel refuses it, `log` receives the reason, ended by a zero; an empty `log` receives nothing.
///
/// # Errors
/// `PERM` without the privilege, `ACCES` or `INVAL` for a program that the kernel's verifier does not accept.
pub fn load_iterator(code: &[u64], attach_to: u32, log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let request = ProgramRequest {
        kind: TRACING,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        attach_type: TRACE_ITER,
        attach_to,
        ..ProgramRequest::default()
    };
    // SAFETY: code, licence and log live through the call and are as long as said; the kernel's verifier sees
    // to it that the program itself does no harm.
    unsafe { open(PROG_LOAD, &request) }
}

/// A file that runs the program for each mapping of the process `pid` when it is read to its end.
///
/// # Errors
/// `SRCH` or `INVAL` if there is no such process; `PERM` without the privilege.
pub fn iterate(program: impl AsFd, pid: i32) -> Result<OwnedFd, Errno> {
    let task = TaskIterator { thread: pid as u32, process: 0, process_fd: 0, reserved: 0 };
    let request = LinkRequest {
        program: number(program),
        target: 0,
        attach_type: TRACE_ITER,
        flags: 0,
        iterator: &raw const task as u64,
        iterator_bytes: size_of::<TaskIterator>() as u32,
        reserved: 0,
    };
    // SAFETY: the description of the task lives through the call and is as long as said.
    let link = unsafe { open(LINK_CREATE, &request) }?;
    let request = [number(&link), 0u32];
    // SAFETY: the request points to nothing. The file keeps what it needs of the link.
    unsafe { open(ITER_CREATE, &request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_or_refused_for_a_reason() {
        match value(16) {
            Ok(map) => {
                // SAFETY: made with 16 bytes, as all three calls have them.
                unsafe {
                    assert_eq!(get::<16>(&map), Ok([0; 16]));
                    set(&map, &[7; 16]).unwrap();
                    assert_eq!(get::<16>(&map), Ok([7; 16]));
                }
            }
            Err(errno) => vellum_skip::skip(format_args!("no BPF here: {errno}")),
        }
    }
}
