//! Reads whole text files of the kernel, and finds the lines and numbers in them.

use std::io;
use std::path::{Path, PathBuf};

/// A file of the kernel that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// The whole of a file, with bytes that are not UTF-8 replaced.
pub fn text(path: impl AsRef<Path>) -> Result<String, Unreadable> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| Unreadable { path: path.to_path_buf(), source })?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

pub(crate) fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path).ok()?.trim().parse().ok()
}

/// The text of the first line that begins with `name` and a blank or colon, without both.
pub(crate) fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([' ', ':'])).map(str::trim)
}

pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    line(text, name)?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_utf8_do_not_hide_the_other_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status");
        std::fs::write(&path, b"Name:\tcaf\xc3\nVmRSS:\t 4 kB\n").unwrap();
        assert_eq!(field(&text(&path).unwrap(), "VmRSS"), Some(4));
        let error = text(folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("/none: No such file"), "{error}");
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let events = "low 0\noom_kill 3\noom 2\nmodel name\t: Z 1\n";
        assert_eq!(
            (field(events, "oom"), field(events, "oom_kill"), field(events, "max")),
            (Some(2), Some(3), None)
        );
        assert_eq!(field("oom x\n", "oom"), None);
    }
}
