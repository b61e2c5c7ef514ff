//! Reads the kernel's small text files, and parses numbers and sizes in text, without allocating.
//!
//! [`size`] parses all sizes that users write: in options, environment variables and job tables.

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

/// The decimal number at the start of `text` (after blanks), or `None` without one or on overflow.
pub fn number(text: &[u8]) -> Option<u64> {
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit());
    let mut value: Option<u64> = None;
    for digit in digits {
        value = Some(value.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit - b'0'))?);
    }
    value
}

/// A number of bytes as people write it: `262144`, `512M`, `512MiB`, `1.5G`, `6 GiB`. Units are powers of
/// 1024, in either case, and a part of a byte is cut off. `None` for everything else (decimal units such as
/// `GB` too), and for what overflows.
pub fn size(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim_ascii_start();
    let shift = match unit.first().map(u8::to_ascii_lowercase) {
        None => 0,
        Some(b'b') if unit.len() == 1 => 0,
        Some(letter) if unit.len() == 1 || unit[1..].eq_ignore_ascii_case(b"ib") => {
            10 * (1 + b"kmgt".iter().position(|known| *known == letter)?)
        }
        Some(_) => return None,
    };
    let (whole, fraction) = match digits.iter().position(|byte| *byte == b'.') {
        Some(_) if shift == 0 => return None,
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &b"0"[..]),
    };
    // In 2⁻⁶⁴ of a unit: fraction digits beyond the nineteenth are too small to count.
    let mut part = 0_u128;
    for digit in fraction.iter().rev() {
        part = (part + (u128::from(digit.checked_sub(b'0')?) << 64)) / 10;
    }
    if fraction.is_empty() || whole.is_empty() {
        return None;
    }
    // Rounded up in its last place, so that 0.1 of ten is one; `part` stays below a unit.
    let part = ((part + u128::from(part > 0)) << shift) >> 64;
    let whole = u128::from(decimal(whole)?).checked_mul(1 << shift)?;
    u64::try_from(whole + part).ok()
}

/// The decimal number that is all of `text`.
pub fn decimal(text: &[u8]) -> Option<u64> {
    (!text.is_empty() && text.iter().all(u8::is_ascii_digit)).then(|| number(text)).flatten()
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
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("262144", 262_144),
            ("64 B", 64),
            ("512M", 512 << 20),
            ("512MiB", 512 << 20),
            ("1.5G", 3 << 29),
            (" 6 GiB ", 6 << 30),
            ("2g", 2 << 30),
            ("500k", 500 << 10),
            ("0.1 KiB", 102),
            ("0.5T", 1 << 39),
            ("16777215.5TiB", (16_777_215 << 40) + (1 << 39)),
        ] {
            assert_eq!(size(text.as_bytes()), Some(bytes), "{text}");
        }
        for wrong in [
            "",
            "M",
            ".",
            ".5G",
            "5.G",
            "1..2M",
            "1.2.3M",
            "1.5",
            "1.5 B",
            "-1G",
            "+1G",
            "1e3G",
            "5 GB",
            "5 MM",
            "5 iB",
            "5 KiBs",
            "16777216T",
            "99999999999999999999",
            "6 PiB",
            "75 %",
            "1,024",
        ] {
            assert_eq!(size(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn lines() {
        assert_eq!(line_after(b"a 1\nb 2\n", b"b "), Some(&b"2"[..]));
        assert_eq!(line_after(b"a 1\n", b"c "), None);
    }
}
