//! The printer: turns values into text, as `display` and `write` do.

use crate::immediate;
use crate::memory::{CAR, CDR, Kind, Value, in_scope};
use crate::reader::{CHARACTERS, Reader};
use crate::value::DEPTH_MAX;
use std::fmt::Write as _;

/// Greatest number of printed elements of a list, which may be circular.
const LENGTH_MAX: usize = 1 << 22;

/// Adds a value's text to `text`; with `is_written`, in a form that can be read again.
///
/// # Errors
/// If the value nests too deep.
pub fn print(value: &Value<'_>, is_written: bool, text: &mut String) -> Result<(), String> {
    Printer { is_written, text }.value(value, 0)
}

/// The text of a floating-point number, which reads as an inexact number.
pub fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "+nan.0".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+inf.0" } else { "-inf.0" }.to_owned();
    }
    format!("{number:?}")
}

struct Printer<'t> {
    is_written: bool,
    text: &'t mut String,
}

impl Printer<'_> {
    fn value(&mut self, value: &Value<'_>, depth: usize) -> Result<(), String> {
        if depth == DEPTH_MAX {
            return Err(format!("this value nests more than {DEPTH_MAX} deep: it is not printed"));
        }
        let Some(kind) = value.kind() else {
            self.immediate(value.bits().unwrap_or(immediate::UNSPECIFIED));
            return Ok(());
        };
        match kind {
            Kind::Pair => return self.pair(value, depth),
            Kind::Vector => return self.slots("#(", value, 0, depth),
            Kind::Values => return self.slots("#<values ", value, 0, depth),
            Kind::Text if self.is_written => self.quoted('"', value.as_text()),
            Kind::Symbol if self.is_written && !is_plain(value.as_text()) => {
                self.quoted('|', value.as_text());
            }
            Kind::Text | Kind::Symbol => self.text.push_str(value.as_text()),
            Kind::Bytes => {
                let bytes: Vec<String> = (0..value.len()).map(|at| value.byte(at).to_string()).collect();
                let _ = write!(self.text, "#u8({})", bytes.join(" "));
            }
            Kind::Record => in_scope(|scope| {
                let own = value.get(scope, 0);
                let name = if own.is_a(Kind::Type) { own.get(scope, 0) } else { own };
                let _ = match name.kind() {
                    Some(_) => write!(self.text, "#<{}>", name.as_text()),
                    None => write!(self.text, "#<error {}>", value.get(scope, 1).as_text()),
                };
            }),
            Kind::Closure | Kind::Continuation => self.text.push_str("#<procedure>"),
            Kind::Table => self.text.push_str("#<hash table>"),
            Kind::Port => self.text.push_str("#<port>"),
            Kind::Type => self.text.push_str("#<record type>"),
            Kind::Promise => self.text.push_str("#<promise>"),
            Kind::Cell => self.text.push_str("#<cell>"),
        }
        Ok(())
    }

    fn immediate(&mut self, bits: u64) {
        let known = match bits {
            immediate::NIL => "()",
            immediate::TRUE => "#t",
            immediate::FALSE => "#f",
            immediate::EOF => "#<end of file>",
            immediate::UNSPECIFIED => "#<unspecified>",
            _ => "",
        };
        if let Some(number) = immediate::as_integer(bits) {
            let _ = write!(self.text, "{number}");
        } else if let Some(number) = immediate::as_float(bits) {
            self.text.push_str(&float_text(number));
        } else if let Some(character) = immediate::as_character(bits) {
            self.character(character);
        } else if immediate::as_primitive(bits).is_some() {
            self.text.push_str("#<procedure>");
        } else {
            self.text.push_str(known);
        }
    }

    fn character(&mut self, character: char) {
        if !self.is_written {
            return self.text.push(character);
        }
        let name = CHARACTERS.iter().find(|(_, known)| *known == character);
        let _ = match name {
            Some((name, _)) => write!(self.text, "#\\{name}"),
            None if character.is_control() || character.is_whitespace() => {
                write!(self.text, "#\\x{:x}", u32::from(character))
            }
            None => write!(self.text, "#\\{character}"),
        };
    }

    fn quoted(&mut self, quote: char, text: &str) {
        self.text.push(quote);
        for next in text.chars() {
            match next {
                '\n' => self.text.push_str("\\n"),
                '\t' => self.text.push_str("\\t"),
                '\r' => self.text.push_str("\\r"),
                _ if next == quote || next == '\\' => self.text.extend(['\\', next]),
                _ if next.is_control() => _ = write!(self.text, "\\x{:x};", u32::from(next)),
                _ => self.text.push(next),
            }
        }
        self.text.push(quote);
    }

    fn slots(&mut self, open: &str, value: &Value<'_>, from: usize, depth: usize) -> Result<(), String> {
        self.text.push_str(open);
        for index in from..value.len() {
            if index > from {
                self.text.push(' ');
            }
            in_scope(|scope| self.value(&value.get(scope, index), depth + 1))?;
        }
        self.text.push_str(if open.starts_with("#<") { ">" } else { ")" });
        Ok(())
    }

    fn pair(&mut self, value: &Value<'_>, depth: usize) -> Result<(), String> {
        self.text.push('(');
        let mut len = 0;
        in_scope(|scope| {
            let mut place = value.kept(scope);
            loop {
                in_scope(|scope| self.value(&place.get(scope, CAR), depth + 1))?;
                let next = place.get(scope, CDR);
                len += 1;
                if next.is_nil() {
                    return Ok(());
                }
                if len == LENGTH_MAX {
                    self.text.push_str(" ...");
                    return Ok(());
                }
                if !next.is_a(Kind::Pair) {
                    self.text.push_str(" . ");
                    return self.value(&next, depth + 1);
                }
                self.text.push(' ');
                place = next;
            }
        })?;
        self.text.push(')');
        Ok(())
    }
}

/// Whether the name reads as this symbol without bars.
fn is_plain(name: &str) -> bool {
    let mut reader = Reader::new(name, 0);
    let read = reader.next_datum();
    !name.contains('|')
        && reader.rest().is_empty()
        && read.is_ok_and(|datum| datum.is_some_and(|datum| datum.is(name)))
}
