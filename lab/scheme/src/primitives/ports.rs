//! Built-in procedures for input from strings and files, and output to strings and standard output.
//!
//! ```text
//! slots of an input port:  #t | text | number of bytes read
//! slots of an output port: #f | list of texts, the last one first | unused
//! ```

use crate::call::{ANY, Call, Found, Table};
use crate::datum::SyntaxError;
use crate::fail::Fail;
use crate::immediate;
use crate::memory::{CAR, CDR, Kind, Value};
use crate::reader::Reader;
use crate::value::from_datum;
use std::cell::RefCell;
use std::io::{BufWriter, Stdout, Write, stdout};

/// The procedures.
pub const TABLE: Table = &[
    ("display", 1, 2, |call| print(call, false)),
    ("write", 1, 2, |call| print(call, true)),
    ("write-string", 1, 2, |call| print(call, false)),
    ("write-char", 1, 2, |call| print(call, false)),
    ("newline", 0, 1, |call| write(call, Some(0), "\n")),
    ("open-output-string", 0, ANY, open_output),
    ("get-output-string", 1, 1, output),
    ("open-input-string", 1, 1, |call| input(call, &call.text(0)?)),
    ("open-input-file", 1, 1, open_file),
    ("read-char", 1, 1, |call| next_char(call, true)),
    ("peek-char", 1, 1, |call| next_char(call, false)),
    ("read-line", 1, 1, read_line),
    ("read", 1, 1, read),
    ("eof-object", 0, ANY, |_| Ok(Value::immediate(immediate::EOF))),
    ("eof-object?", 0, ANY, |call| Ok(Value::boolean(call.at(0).is_immediate(immediate::EOF)))),
    ("port?", 0, ANY, |call| call.is(Kind::Port)),
];

thread_local! {
    /// Standard output with a larger buffer: the Rust library's flushes at each line.
    static OUTPUT: RefCell<BufWriter<Stdout>> = RefCell::new(BufWriter::new(stdout()));
}

/// Writes to standard output.
pub fn put(text: &str) -> std::io::Result<()> {
    OUTPUT.with_borrow_mut(|output| output.write_all(text.as_bytes()))
}

/// Flushes standard output.
pub fn flush() -> std::io::Result<()> {
    OUTPUT.with_borrow_mut(BufWriter::flush)
}

fn write<'s>(call: &Call<'_, 's>, port: Option<usize>, text: &str) -> Found<'s> {
    match port.filter(|&index| index < call.count) {
        None => put(text).map_err(|error| Fail::error(format!("{}: standard output: {error}", call.name)))?,
        Some(index) => {
            let port = call.object(index, Kind::Port, "a port")?;
            if !port.get(call.scope, 0).is_false() {
                return Err(call.wrong("a port for output", index));
            }
            let text = call.new_text(text)?;
            let texts = Value::pair(call.scope, &text, &port.get(call.scope, 1))?;
            port.set(call.scope, 1, &texts);
        }
    }
    Ok(Value::unspecified())
}

fn print<'s>(call: &mut Call<'_, 's>, is_written: bool) -> Found<'s> {
    let text = call.printed(&call.at(0), is_written)?;
    write(call, Some(1), &text)
}

fn open_output<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (mode, nothing) = (Value::boolean(false), Value::nil());
    Ok(Value::of_slots(call.scope, Kind::Port, &[&mode, &nothing, &nothing])?)
}

fn output<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let port = call.object(0, Kind::Port, "a port")?;
    let (mut texts, mut place) = (Vec::new(), port.get(call.scope, 1));
    while place.is_a(Kind::Pair) {
        texts.push(place.get(call.scope, CAR).as_text().to_owned());
        place = place.get(call.scope, CDR);
    }
    texts.reverse();
    let text = call.new_text(&texts.concat())?;
    // The joined text replaces its parts.
    port.set(call.scope, 1, &Value::pair(call.scope, &text, &Value::nil())?);
    Ok(text)
}

fn input<'s>(call: &Call<'_, 's>, text: &Value<'_>) -> Found<'s> {
    Ok(Value::of_slots(call.scope, Kind::Port, &[&Value::boolean(true), text, &Value::integer(0)])?)
}

fn open_file<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let value = call.text(0)?;
    let name = value.as_text();
    let text = std::fs::read_to_string(name)
        .map_err(|error| Fail::error(format!("open-input-file: {name}: {error}")))?;
    input(call, &call.new_text(&text)?)
}

/// The unread part of a port: the port, its text, and the place of that part.
fn rest<'s>(call: &Call<'_, 's>) -> Found<'s, (Value<'s>, Value<'s>, usize)> {
    let port = call.object(0, Kind::Port, "a port")?;
    let at = port.get(call.scope, 2).as_integer();
    let at = at.ok_or_else(|| call.wrong("a port for input", 0))?;
    Ok((port.kept(call.scope), port.get(call.scope, 1), at as usize))
}

fn advance(call: &Call<'_, '_>, port: &Value<'_>, to: usize) {
    port.set(call.scope, 2, &Value::integer(to as i64));
}

fn next_char<'s>(call: &mut Call<'_, 's>, takes: bool) -> Found<'s> {
    let (port, text, at) = rest(call)?;
    let Some(next) = text.as_text()[at..].chars().next() else {
        return Ok(Value::immediate(immediate::EOF));
    };
    if takes {
        advance(call, &port, at + next.len_utf8());
    }
    Ok(Value::character(next))
}

fn read_line<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (port, text, at) = rest(call)?;
    let rest = &text.as_text()[at..];
    if rest.is_empty() {
        return Ok(Value::immediate(immediate::EOF));
    }
    let line = rest.split('\n').next().unwrap_or(rest);
    advance(call, &port, (at + line.len() + 1).min(text.len()));
    call.new_text(line)
}

fn read<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (port, text, at) = rest(call)?;
    let mut reader = Reader::new(&text.as_text()[at..], 0);
    let datum = reader.next_datum().map_err(|SyntaxError { place, message, .. }| {
        Fail::error(format!("read: {message} (line {}, column {})", place.line, place.column))
    })?;
    advance(call, &port, text.len() - reader.rest().len());
    match datum {
        Some(datum) => Ok(from_datum(&mut call.machine.symbols, call.scope, &datum)?),
        None => Ok(Value::immediate(immediate::EOF)),
    }
}
