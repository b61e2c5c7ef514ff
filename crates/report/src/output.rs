//! Writes reports to files, each whole or not at all.
//!
//! A report is written to a temporary file beside its destination and renamed when complete, so readers
//! never see a partial file. A wrong destination is an error before the measured program runs.

use crate::exit::failed;
use crate::stdout;
use rustix::fs::{AtFlags, CWD};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", .path.display())]
pub struct OutputError {
    /// The destination.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// The destination of a report.
#[derive(Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// An existing file that is not a regular file (a device, a pipe): written in place.
    Special(PathBuf),
    /// A file, written as a temporary file first.
    File {
        /// The destination.
        path: PathBuf,
        /// The temporary file, until it is renamed.
        temporary: Option<(PathBuf, File)>,
    },
}

impl Output {
    /// Prepares to write to `path`; "-" is standard output.
    pub fn prepare(path: &Path) -> Result<Output, OutputError> {
        if path == Path::new("-") {
            return Ok(Output::Stdout);
        }
        if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Ok(Output::Special(path.to_path_buf()));
        }
        let failed = |source| OutputError { path: path.to_path_buf(), source };
        if path.is_dir() {
            return Err(failed(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        // If `path` is a link, its target is replaced and the link stays.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        // The file has no name if possible (O_TMPFILE), so that none is left, however this process ends.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let nameless = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).mode(0o666).open(folder);
        let file = match nameless {
            Ok(file) => file,
            Err(_) => OpenOptions::new().write(true).create_new(true).open(&part).map_err(failed)?,
        };
        Ok(Output::File { path, temporary: Some((part, file)) })
    }

    /// Writes `content` and puts it in place.
    pub fn write(mut self, content: impl AsRef<[u8]>) -> Result<(), OutputError> {
        let content = content.as_ref();
        let (path, written) = match &mut self {
            Output::Stdout => return stdout::write_all(content),
            Output::Special(path) => (path.clone(), std::fs::write(path, content)),
            Output::File { path, temporary } => (path.clone(), fill_and_rename(path, temporary, content)),
        };
        written.map_err(|source| OutputError { path, source })
    }
}

/// A requested file (`None` if not requested), and its content.
type Wanted<'a> = (Option<Output>, &'a dyn Fn() -> Result<String, OutputError>);

/// Writes each requested file, even if another one fails; failures are printed.
pub fn write_each<const N: usize>(files: [Wanted<'_>; N]) {
    for (output, content) in files {
        if let Some(Err(failure)) = output.map(|output| content().and_then(|content| output.write(content))) {
            failed(failure);
        }
    }
}

/// `value` as JSON on one line with a newline. Every command writes its JSON with this function.
///
/// # Errors
/// If JSON has no form for a value.
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, OutputError> {
    let text = serde_json::to_string(value);
    let failed = |error: serde_json::Error| OutputError { path: "JSON".into(), source: error.into() };
    text.map(|text| text + "\n").map_err(failed)
}

impl Output {
    /// A writer for content too large for memory. Without a later call of [`Output::place`] no file is left.
    pub fn sink(&self) -> Result<Box<dyn Write + Send>, OutputError> {
        let (path, file) = match self {
            Output::Stdout => return Ok(Box::new(io::stdout())),
            Output::Special(path) => (path, OpenOptions::new().write(true).open(path)),
            Output::File { path, temporary: Some((_, file)) } => (path, file.try_clone()),
            Output::File { path, temporary: None } => (path, Err(io::ErrorKind::NotFound.into())),
        };
        match file {
            Ok(file) => Ok(Box::new(file)),
            Err(source) => Err(OutputError { path: path.clone(), source }),
        }
    }

    /// Moves the content written to the sink to the destination.
    pub fn place(self) -> Result<(), OutputError> {
        if matches!(self, Output::File { .. }) { self.write([]) } else { Ok(()) }
    }
}

fn fill_and_rename(path: &Path, temporary: &mut Option<(PathBuf, File)>, content: &[u8]) -> io::Result<()> {
    if let Some((part, file)) = temporary {
        file.write_all(content)?;
        if file.metadata()?.nlink() == 0 {
            // The file gets a temporary name first: only a rename replaces an existing file in one step.
            let _ = std::fs::remove_file(&*part);
            let open = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, open, CWD, part.as_path(), AtFlags::SYMLINK_FOLLOW)?;
        }
        std::fs::rename(part, path)?;
    }
    *temporary = None;
    Ok(())
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Output::File { temporary: Some((part, _)), .. } = self {
            let _ = std::fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r.json");
        let output = Output::prepare(&path).unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "an unused file is removed");
        Output::prepare(&path).unwrap().write("one").unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Output::prepare(&link).unwrap().write("two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn a_sink_appears_only_when_placed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r.bin");
        for whole in [false, true] {
            let output = Output::prepare(&path).unwrap();
            let mut sink = output.sink().unwrap();
            sink.write_all(b"one").unwrap();
            sink.write_all(b"two").unwrap();
            assert!(!path.exists());
            if whole {
                output.place().unwrap();
            }
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn an_impossible_destination_is_refused_early() {
        for path in ["/no/such/directory/r.json", "/proc/r.json", "/tmp"] {
            let error = Output::prepare(Path::new(path)).unwrap_err();
            assert!(error.to_string().contains(path), "{error}");
        }
        Output::prepare(Path::new("/dev/null")).unwrap().write("gone").unwrap();
    }
}
