//! Escapes for names and labels, since spaces and colons separate the fields of a line.
//!
//! Percent-encoding (RFC 3986, section 2.1): bytes with a meaning of their own become `%` and two hexadecimal
//! digits. Letters beyond ASCII stay as they are. Reading is strict: a `%` that starts no escape is an error
//! with its place. A file written without escapes would otherwise be misread.

use std::borrow::Cow;

/// True if `byte` must be escaped in a header or word.
fn is_special(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || matches!(byte, b':' | b',' | b'%' | b'#')
}

/// Appends `text` so that [`unescape`] returns it, as part of one word without colons or commas.
pub(super) fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match u8::try_from(character).ok().filter(|byte| is_special(*byte)) {
            Some(byte) => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
            None => out.push(character),
        }
    }
}

/// The text without escapes, or the byte of `text` at which the first invalid escape begins.
pub(super) fn unescape(text: &str) -> Result<Cow<'_, str>, usize> {
    let Some(first) = text.find('%') else { return Ok(Cow::Borrowed(text)) };
    let bytes = text.as_bytes();
    let mut result = bytes[..first].to_vec();
    let mut at = first;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digit =
                |offset: usize| bytes.get(at + offset).and_then(|byte| char::from(*byte).to_digit(16));
            let (high, low) = digit(1).zip(digit(2)).ok_or(at)?;
            result.push((high << 4 | low) as u8);
            at += 3;
        } else {
            result.push(bytes[at]);
            at += 1;
        }
    }
    // Escapes may stand for bytes that are not UTF-8.
    String::from_utf8(result).map(Cow::Owned).map_err(|_| first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        escape(&mut out, text);
        out
    }

    #[test]
    fn special_bytes_are_escaped() {
        assert_eq!(escaped("malloc: 64 B, 10%"), "malloc%3A%2064%20B%2C%2010%25");
        assert_eq!(escaped("größe\t#\u{7f}"), "größe%09%23%7F");
    }

    #[test]
    fn invalid_escapes_have_a_place() {
        for (text, place) in [("ab%4", 2), ("%zz", 0), ("a%20%", 4), ("ab%FFc", 2), ("%é", 0)] {
            assert_eq!(unescape(text), Err(place), "{text}");
        }
        assert_eq!(unescape("%c3%A9").unwrap(), "é");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text: String) {
            let written = escaped(&text);
            prop_assert!(!written.contains([' ', ':', ',', '\n', '\t', '#']));
            prop_assert_eq!(unescape(&written).unwrap(), text);
        }
    }
}
