//! The standard streams of the timed processes, and the check that each process writes the same output.

use super::{Output, ProcessDuelError};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create, seek};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The number of output bytes compared at a time.
const AT_ONCE: usize = 1 << 16;
/// The number of bytes at the end of standard error that are searched for its last line.
const LAST_WORDS: u64 = 2048;

/// An empty file that exists only in memory.
pub(super) fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create(c"vellum", MemfdFlags::CLOEXEC)?))
}

/// The processes' standard descriptors.
#[derive(Debug)]
pub(super) struct Streams {
    input: File,
    output: Option<File>,
    errors: Option<File>,
    /// The output of the first process.
    first: Option<File>,
    kind: Output,
}

impl Streams {
    /// Opens the streams; standard input is `input`, or empty.
    pub(super) fn open(kind: Output, input: Option<&Path>) -> Result<Streams, ProcessDuelError> {
        let path = input.unwrap_or(Path::new("/dev/null"));
        let opened = File::open(path);
        let input = opened.map_err(|source| ProcessDuelError::Input { path: path.to_owned(), source })?;
        let output = match kind {
            Output::Discard => {
                Some(File::options().write(true).open("/dev/null").map_err(ProcessDuelError::Output)?)
            }
            Output::Equal => Some(memory_file().map_err(ProcessDuelError::Output)?),
            Output::Inherit => None,
        };
        let errors =
            (kind != Output::Inherit).then(memory_file).transpose().map_err(ProcessDuelError::Output)?;
        Ok(Streams { input, output, errors, first: None, kind })
    }

    /// Empties the last output, rewinds the input, and returns the descriptors for the next process.
    pub(super) fn ready(&mut self) -> Result<[RawFd; 3], ProcessDuelError> {
        let system = |error: rustix::io::Errno| ProcessDuelError::Output(error.into());
        let rewind = |file: &File| seek(file, rustix::fs::SeekFrom::Start(0)).map(drop);
        match rewind(&self.input) {
            // A pipe or terminal cannot be rewound; reading continues where it is.
            Ok(()) | Err(rustix::io::Errno::SPIPE) => {}
            Err(other) => return Err(system(other)),
        }
        let written = self.output.as_ref().filter(|_| self.kind == Output::Equal);
        for file in written.into_iter().chain(&self.errors) {
            ftruncate(file, 0).and_then(|()| rewind(file)).map_err(system)?;
        }
        let fd = |file: &Option<File>, ours: RawFd| file.as_ref().map_or(ours, AsRawFd::as_raw_fd);
        Ok([self.input.as_raw_fd(), fd(&self.output, 1), fd(&self.errors, 2)])
    }

    /// The last line that the last process wrote to standard error, if it was kept.
    pub(super) fn last_words(&self) -> String {
        let text = || {
            let file = self.errors.as_ref()?;
            let length = file.metadata().ok()?.len();
            seek(file, rustix::fs::SeekFrom::Start(length.saturating_sub(LAST_WORDS))).ok()?;
            let mut bytes = Vec::new();
            file.take(LAST_WORDS).read_to_end(&mut bytes).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = text().unwrap_or_default();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }

    /// If outputs are compared: the first byte, from 0, in which the last process's output differs from the
    /// first one's.
    pub(super) fn difference(&mut self) -> Result<Option<u64>, ProcessDuelError> {
        if self.kind != Output::Equal {
            return Ok(None);
        }
        match (&self.first, &self.output) {
            (Some(first), Some(output)) => first_difference(first, output).map_err(ProcessDuelError::Output),
            _ => {
                let fresh = memory_file().map_err(ProcessDuelError::Output)?;
                self.first = self.output.replace(fresh);
                Ok(None)
            }
        }
    }
}

fn first_difference(a: &File, b: &File) -> io::Result<Option<u64>> {
    let (mut left, mut right) = (vec![0; AT_ONCE], vec![0; AT_ONCE]);
    let mut at = 0;
    loop {
        let (m, n) = (fill(a, &mut left, at)?, fill(b, &mut right, at)?);
        let same = left[..m].iter().zip(&right[..n]).take_while(|(a, b)| a == b).count();
        if same < m.max(n) {
            return Ok(Some(at + same as u64));
        }
        if m == 0 {
            return Ok(None);
        }
        at += m as u64;
    }
}

/// Reads from `at` until the buffer is full or the file ends.
fn fill(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], at + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn outputs_are_compared_to_the_last_byte() {
        let file = |bytes: &[u8]| {
            let mut file = memory_file().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        let long = vec![7u8; AT_ONCE + 10];
        let mut other = long.clone();
        assert_eq!(first_difference(&file(&long), &file(&long)).unwrap(), None);
        *other.last_mut().unwrap() = 8;
        assert_eq!(first_difference(&file(&long), &file(&other)).unwrap(), Some(AT_ONCE as u64 + 9));
        assert_eq!(first_difference(&file(&long), &file(&long[..5])).unwrap(), Some(5));
        assert_eq!(first_difference(&file(b""), &file(b"x")).unwrap(), Some(0));
    }
}
