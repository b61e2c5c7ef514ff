//! Text files of `/proc`, with names in them that need not be text.
//!
//! A mapped file's name is whatever bytes its creator chose, and the kernel cuts a program's name at 15 bytes
//! wherever a character ends. Readers here look for nothing that depends on names, so bytes that are not
//! UTF-8 are replaced.

use std::io;
use std::path::Path;

/// The whole of a file, with bytes that are not UTF-8 replaced.
///
/// # Errors
/// The kernel's.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_text_are_read_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status");
        std::fs::write(&file, b"Name:\tcaf\xc3\nVmRSS:\t 4 kB\n").unwrap();
        assert!(text(&file).unwrap().ends_with("\nVmRSS:\t 4 kB\n"));
        assert!(text(folder.path().join("none")).is_err());
    }
}
