//! Reading the kernel's small text files, and numbers out of text, without allocating.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

/// Reads at most `buffer.len()` bytes of the file called `path`.
pub fn read<'b>(path: &core::ffi::CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let file: OwnedFd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::read(&file, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(&buffer[..filled])
}

/// The decimal number at the start of `text` (after blanks), or `None` if there is none or it overflows.
pub fn number(text: &[u8]) -> Option<u64> {
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit());
    let mut value: Option<u64> = None;
    for digit in digits {
        value = Some(value.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit - b'0'))?);
    }
    value
}

/// The line of `text` that begins with `prefix`, without the prefix.
pub fn line_after<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(b"  42 kB"), Some(42));
        assert_eq!(number(b"max\n"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"99999999999999999999"), None);
    }

    #[test]
    fn lines() {
        assert_eq!(line_after(b"a 1\nb 2\n", b"b "), Some(&b"2"[..]));
        assert_eq!(line_after(b"a 1\n", b"c "), None);
    }
}
