//! Escapes for names and labels, since spaces and colons separate the fields of a line.
//!
//! Percent-encoding (RFC 3986, section 2.1): bytes with a special meaning in the format become `%` and two
//! hexadecimal digits. Letters beyond ASCII stay as they are. Reading is strict: a `%` that starts no escape
//! is reported as an error with its position. Otherwise a file written without escapes would be misread.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::error::{LineError, Place, Problem};
use super::words::Word;

/// True if `byte` must be escaped in a header or word.
fn is_special(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || matches!(byte, b':' | b',' | b'%' | b'#')
}

/// A text written so that [`unescape`] returns it, as part of one word without colons or commas.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut byte_or_char = self.0.chars().map(|letter| (letter, u8::try_from(letter)));
        byte_or_char.try_for_each(|(letter, byte)| match byte {
            Ok(byte) if is_special(byte) => write!(f, "%{byte:02X}"),
            _ => f.write_char(letter),
        })
    }
}

/// The text that `word` writes.
pub(super) fn text(place: Place, (column, word): Word<'_>) -> Result<String, LineError> {
    let wrong = |at: usize| {
        let found = word[at..].chars().take(3).collect();
        place.error_at(column + at, Problem::Escape(found))
    };
    unescape(word).map(Cow::into_owned).map_err(wrong)
}

/// The text without escapes, or the byte of `text` at which the first invalid escape begins.
fn unescape(text: &str) -> Result<Cow<'_, str>, usize> {
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
        Escaped(text).to_string()
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
