//! The bearer token that requests for metrics must carry. The token is in a file, which keeps it out of
//! process lists and logs. The file is read again for each request, so the token can be replaced at any time.
//!
//! Invariants: no token is ever printed. If the file is empty or cannot be read, every request is refused.
//! The time to compare two tokens does not depend on where they differ.

use crate::Error;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const TOKEN_MAX: u64 = 4096;

/// A file with a token.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Opens the file at `path`, which contains a token.
    ///
    /// # Errors
    /// If the file cannot be read, or has no token.
    pub fn open(path: &Path) -> Result<TokenFile, Error> {
        let failed = |why: &dyn Display, way_out| Error::option("--token-file", path, why, way_out);
        let missing = format!("it has no token of 1 to {TOKEN_MAX} visible characters");
        match read(path) {
            Err(why) => Err(failed(&why, "give a file that has the token and nothing else")),
            Ok(None) => Err(failed(&missing, "write one line")),
            Ok(Some(_)) => Ok(TokenFile(path.to_owned())),
        }
    }

    /// The current token of the file, to be sent to a server.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        String::from_utf8(read(&self.0).ok()??).ok()
    }

    /// True if these credentials (the value of `Authorization`) are the file's current token.
    #[must_use]
    pub fn admits(&self, credentials: Option<&[u8]>) -> bool {
        let Ok(Some(token)) = read(&self.0) else { return false };
        credentials.and_then(bearer).is_some_and(|given| same(given, &token))
    }
}

/// The token in the file.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(TOKEN_MAX + 2).read_to_end(&mut text)?;
    let token = text.trim_ascii();
    let is_one =
        !token.is_empty() && token.len() as u64 <= TOKEN_MAX && token.iter().all(u8::is_ascii_graphic);
    Ok(is_one.then(|| token.to_vec()))
}

/// The token in `Bearer TOKEN`, with the scheme in upper or lower case (RFC 9110, section 11.1).
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = credentials.split_at_checked(b"bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_of_the_file_is_admitted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let missing = TokenFile::open(&path).unwrap_err().to_string();
        assert!(missing.contains("token: No such file"), "{missing}");
        for (text, good) in [("", false), ("\n", false), ("a b", false), ("a\nb", false), ("  abc \n", true)]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(TokenFile::open(&path).is_ok(), good, "{text:?}");
        }
        let file = TokenFile::open(&path).unwrap();
        for (given, good) in [
            ("Bearer abc", true),
            ("BEARER  abc", true),
            ("Bearer abcd", false),
            ("abc", false),
            ("Bearer", false),
        ] {
            assert_eq!(file.admits(Some(given.as_bytes())), good, "{given}");
        }
        assert!(!file.admits(None));
        fs::write(&path, "").unwrap();
        assert!(!file.admits(Some(b"Bearer ")), "an empty file admits nobody");
        fs::remove_file(&path).unwrap();
        assert!(!file.admits(Some(b"Bearer abc")));
        fs::write(&path, "x".repeat(TOKEN_MAX as usize + 1)).unwrap();
        assert!(TokenFile::open(&path).is_err());
    }
}
