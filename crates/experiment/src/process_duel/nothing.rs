//! A program that does nothing, to measure the cost of starting and ending a process.
//!
//! `/bin/true` does more: it runs a dynamic loader, maps a C library and sets up a locale. This program
//! is 129 bytes, written here byte by byte, with one system call that ends it. Its file is in memory:
//!
//! ```text
//! 0x000  ELF header ─ entry ──────────────┐
//! 0x040  one program header: load it all  │
//! 0x078  xor edi, edi ; mov eax, 231 ; syscall      exit_group(0)
//! ```
//!
//! `/bin/true` is used instead, and reported, if files in memory may not be executed (a sysctl can forbid
//! it), or on another processor architecture.

use super::output::{Streams, memory_file};
use super::results::CPU_STEP_NS;
use super::spawn::{self, Words};
use super::{Output, ProcessDuelError};
use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use vellum_measure::{Base, Sample};
use vellum_timing::clock::Clock;

/// The program's length in bytes, and the offset of its code.
const CODE_AT: usize = 0x78;
/// The address of its mapping: any valid one.
#[cfg(target_arch = "x86_64")]
const BASE: u64 = 0x0040_0000;
const STAND_IN: &str = "/bin/true";

/// The number of runs of the empty program.
const NOTHINGS: usize = 20;

/// The cost of starting and ending a process.
#[derive(Clone, Debug, PartialEq)]
pub struct NothingCost {
    /// The program that ran, in words.
    pub what: &'static str,
    /// Wall time, nanoseconds.
    pub wall: Base,
    /// User and system time, nanoseconds.
    pub cpu: Base,
}

/// The empty program, ready to be started.
#[derive(Debug)]
struct Nothing {
    /// Keeps the file in memory open while its path is used.
    _file: Option<File>,
    program: Words,
    /// The program, in words.
    what: &'static str,
}

impl Nothing {
    /// Writes the program to a file in memory.
    fn new() -> io::Result<Nothing> {
        let image = image().ok_or(io::ErrorKind::Unsupported)?;
        let mut file = memory_file()?;
        file.write_all(&image)?;
        file.set_permissions(Permissions::from_mode(0o500))?;
        // A file that is open for writing cannot be executed, so it is opened again for reading, and the
        // first descriptor closed.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let reopened = File::open(path)?;
        let path = format!("/proc/self/fd/{}", reopened.as_raw_fd());
        Ok(Nothing { program: bare(path), _file: Some(reopened), what: "a program of one system call" })
    }

    /// The program to use if files in memory cannot be executed.
    fn stand_in() -> Nothing {
        Nothing { program: bare(STAND_IN), _file: None, what: STAND_IN }
    }
}

/// A program without arguments or environment.
fn bare(path: impl Into<Vec<u8>>) -> Words {
    let program = CString::new(path).unwrap_or_default();
    Words { argv: vec![program.clone()], program, env: Vec::new() }
}

/// Times runs of the empty program.
pub(super) fn time_nothing(clock: &Clock) -> Result<NothingCost, ProcessDuelError> {
    let mut streams = Streams::open(Output::Discard, None)?;
    let mut nothing = Nothing::new().unwrap_or_else(|_| Nothing::stand_in());
    // The first run also shows if the program can be executed at all.
    if spawn::run(&nothing.program, clock, streams.ready()?).is_err() {
        nothing = Nothing::stand_in();
    }
    let (mut wall, mut cpu) = (Sample::new(NOTHINGS), Sample::new(NOTHINGS));
    for _ in 0..NOTHINGS {
        let run = spawn::run(&nothing.program, clock, streams.ready()?)?;
        wall.add(run.wall_ns);
        cpu.add(run.cpu_ns());
    }
    let step = clock.step_ns();
    match (Base::with_step("process-wall", &wall, step), Base::with_step("process-cpu", &cpu, CPU_STEP_NS)) {
        (Some(wall), Some(cpu)) => Ok(NothingCost { what: nothing.what, wall, cpu }),
        _ => unreachable!("durations are finite and never negative"),
    }
}

#[cfg(target_arch = "x86_64")]
fn image() -> Option<[u8; 0x81]> {
    let mut bytes = [0u8; 0x81];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    // ELF, 64 bits, little end first, version 1; an executable for x86-64.
    put(0x00, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(0x10, &[2, 0, 62, 0, 1, 0, 0, 0]);
    put(0x18, &(BASE + CODE_AT as u64).to_le_bytes());
    // Program headers at 0x40; sizes of both headers; one program header.
    put(0x20, &0x40u64.to_le_bytes());
    put(0x34, &[0x40, 0, 0x38, 0, 1, 0]);
    // Load the whole file, readable and executable, from its start, page-aligned.
    put(0x40, &[1, 0, 0, 0, 5, 0, 0, 0]);
    put(0x50, &BASE.to_le_bytes());
    put(0x58, &BASE.to_le_bytes());
    put(0x60, &0x81u64.to_le_bytes());
    put(0x68, &0x81u64.to_le_bytes());
    put(0x70, &0x1000u64.to_le_bytes());
    put(CODE_AT, &[0x31, 0xff, 0xb8, 231, 0, 0, 0, 0x0f, 0x05]);
    Some(bytes)
}

#[cfg(not(target_arch = "x86_64"))]
fn image() -> Option<[u8; 0]> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_exits_with_zero() {
        for nothing in [Nothing::new().unwrap_or_else(|_| Nothing::stand_in()), Nothing::stand_in()] {
            let path = nothing.program.program.to_str().unwrap();
            let status = std::process::Command::new(path).status().unwrap();
            assert!(status.success(), "{}", nothing.what);
        }
    }
}
