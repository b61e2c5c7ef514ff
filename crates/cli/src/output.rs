//! Files written whole or not at all.
//!
//! A report is written to a temporary file beside its place and renamed when complete, so that a reader never sees half of
//! one. Whether the place can be written is found out before the program runs, not after an hour of it.

use crate::run::Failure;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where a report will go.
#[derive(Debug)]
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file that is there already and is no regular file (a device, a pipe): written in place.
    Special(PathBuf),
    /// A file, by way of a temporary one.
    File {
        /// The place.
        path: PathBuf,
        /// The temporary file, until it is renamed.
        temporary: Option<(PathBuf, File)>,
    },
}

impl Output {
    /// Prepares to write to `path`; "-" is standard output.
    pub(crate) fn prepare(path: &Path) -> Result<Output, Failure> {
        if path == Path::new("-") {
            return Ok(Output::Stdout);
        }
        if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Ok(Output::Special(path.to_path_buf()));
        }
        let failed = |source| Failure::Output { path: path.to_path_buf(), source };
        if path.is_dir() {
            return Err(failed(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        // A link stays a link: what it points to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(failed)?;
        Ok(Output::File { path, temporary: Some((part, file)) })
    }

    /// Writes `text` and puts it in place.
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        let (path, written) = match &mut self {
            Output::Stdout => {
                let mut out = io::stdout().lock();
                (PathBuf::from("standard output"), out.write_all(text.as_bytes()).and_then(|()| out.flush()))
            }
            Output::Special(path) => (path.clone(), std::fs::write(path, text)),
            Output::File { path, temporary } => (path.clone(), fill_and_rename(path, temporary, text)),
        };
        written.map_err(|source| Failure::Output { path, source })
    }
}

/// `value` as JSON text, ending in a newline.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    // Plain structs of numbers and strings: there is nothing that could fail to serialise.
    let mut text = serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    text.push('\n');
    text
}

fn fill_and_rename(path: &Path, temporary: &mut Option<(PathBuf, File)>, text: &str) -> io::Result<()> {
    if let Some((part, file)) = temporary {
        file.write_all(text.as_bytes())?;
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
        assert_eq!(
            std::fs::read_dir(place.path()).unwrap().count(),
            0,
            "an unused temporary file is removed"
        );
        Output::prepare(&path).unwrap().write("one").unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Output::prepare(&link).unwrap().write("two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn an_impossible_place_is_refused_beforehand() {
        for path in ["/no/such/directory/r.json", "/proc/r.json", "/tmp"] {
            let error = Output::prepare(Path::new(path)).unwrap_err();
            assert!(error.to_string().contains(path), "{error}");
        }
        Output::prepare(Path::new("/dev/null")).unwrap().write("gone").unwrap();
    }
}
