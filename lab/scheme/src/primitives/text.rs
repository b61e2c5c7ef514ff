//! Built-in procedures for immutable strings, symbols and characters.

use crate::call::{ANY, Call, Found, Table};
use crate::fail::Fail;
use crate::immediate;
use crate::memory::{Kind, Value};
use crate::value::walk;
use std::cmp::Ordering;

/// The procedures.
pub const TABLE: Table = &[
    ("string?", 1, 1, |call| call.is(Kind::Text)),
    ("symbol?", 1, 1, |call| call.is(Kind::Symbol)),
    ("symbol->string", 1, 1, |call| call.new_text(call.object(0, Kind::Symbol, "a symbol")?.as_text())),
    ("string->symbol", 1, 1, text_to_symbol),
    ("string-length", 1, 1, length),
    ("string-ref", 2, 2, text_ref),
    ("substring", 1, 3, substring),
    ("string-copy", 1, 3, substring),
    ("string-append", 0, ANY, append),
    ("string", 0, ANY, string),
    ("make-string", 1, 2, make_string),
    ("string->list", 1, 1, text_to_list),
    ("list->string", 1, 1, list_to_text),
    ("string=?", 1, ANY, |call| compare(call, Ordering::is_eq)),
    ("string<?", 1, ANY, |call| compare(call, Ordering::is_lt)),
    ("string>?", 1, ANY, |call| compare(call, Ordering::is_gt)),
    ("string<=?", 1, ANY, |call| compare(call, Ordering::is_le)),
    ("string>=?", 1, ANY, |call| compare(call, Ordering::is_ge)),
    ("string-upcase", 1, 1, |call| mapped(call, str::to_uppercase)),
    ("string-downcase", 1, 1, |call| mapped(call, str::to_lowercase)),
    ("string-search", 2, 2, search),
    ("char?", 1, 1, |call| Ok(Value::boolean(call.at(0).bits().and_then(immediate::as_character).is_some()))),
    ("char->integer", 1, 1, |call| Ok(Value::integer(i64::from(u32::from(char_at(call, 0)?))))),
    ("integer->char", 1, 1, integer_to_char),
    ("char-upcase", 1, 1, |call| letter(call, |letter| letter.to_uppercase().next())),
    ("char-downcase", 1, 1, |call| letter(call, |letter| letter.to_lowercase().next())),
    ("char-alphabetic?", 1, 1, |call| tested(call, char::is_alphabetic)),
    ("char-numeric?", 1, 1, |call| tested(call, char::is_numeric)),
    ("char-whitespace?", 1, 1, |call| tested(call, char::is_whitespace)),
];

/// The longest text, in characters.
const LENGTH_MAX: i64 = 1 << 28;

fn text_to_symbol<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let text = call.text(0)?;
    Ok(call.machine.symbols.intern(call.scope, text.as_text())?)
}

fn length<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::integer(call.text(0)?.as_text().chars().count() as i64))
}

fn text_ref<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let value = call.text(0)?;
    let (text, index) = (value.as_text(), call.index(1, value.len().max(1))?);
    let found = if text.is_ascii() {
        text.as_bytes().get(index).map(|&byte| char::from(byte))
    } else {
        text.chars().nth(index)
    };
    found.map(Value::character).ok_or_else(|| call.wrong("an index within the string", 1))
}

fn substring<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let value = call.text(0)?;
    let text = value.as_text();
    if text.is_ascii() {
        return call.new_text(&text[call.range(1, text.len())?]);
    }
    let range = call.range(1, text.chars().count())?;
    call.new_text(&text.chars().skip(range.start).take(range.len()).collect::<String>())
}

fn append<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let mut all = String::new();
    for index in 0..call.count {
        all.push_str(call.text(index)?.as_text());
    }
    call.new_text(&all)
}

fn char_at<'s>(call: &Call<'_, 's>, index: usize) -> Found<'s, char> {
    call.at(index).as_character().ok_or_else(|| call.wrong("a character", index))
}

fn string<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let text = (0..call.count).map(|index| char_at(call, index)).collect::<Found<'s, String>>()?;
    call.new_text(&text)
}

fn make_string<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let len = call.integer(0)?;
    if !(0..=LENGTH_MAX).contains(&len) {
        return Err(call.wrong("a length of 0 to 2^28", 0));
    }
    let fill = if call.count > 1 { char_at(call, 1)? } else { ' ' };
    call.new_text(&fill.to_string().repeat(len as usize))
}

fn text_to_list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let text = call.text(0)?;
    Ok(text
        .as_text()
        .chars()
        .rev()
        .try_fold(Value::nil(), |rest, next| Value::pair(call.scope, &Value::character(next), &rest))?)
}

fn list_to_text<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let mut text = String::new();
    let is_list = walk::<Fail<'s>>(&call.at(0), |_, element| {
        let next = element.as_character();
        text.extend(next);
        Ok(next.is_some() && text.len() < LENGTH_MAX as usize)
    })?;
    // A text shorter than the list means that the walk stopped early.
    let len = text.chars().count();
    let mut places = 0;
    walk::<Fail<'s>>(&call.at(0), |_, _| {
        places += 1;
        Ok(places <= len)
    })?;
    if is_list && places == len {
        return call.new_text(&text);
    }
    Err(call.wrong("a list of characters", 0))
}

fn compare<'s>(call: &mut Call<'_, 's>, holds: fn(Ordering) -> bool) -> Found<'s> {
    let mut all = true;
    for index in 1..call.count {
        let (one, other) = (call.text(index - 1)?, call.text(index)?);
        all &= holds(one.as_text().cmp(other.as_text()));
    }
    Ok(Value::boolean(all))
}

fn mapped<'s>(call: &mut Call<'_, 's>, map: fn(&str) -> String) -> Found<'s> {
    call.new_text(&map(call.text(0)?.as_text()))
}

/// `(string-search pattern text)`: the first place of the pattern, or `#f`.
fn search<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (pattern, value) = (call.text(0)?, call.text(1)?);
    let text = value.as_text();
    let found = text.find(pattern.as_text()).map(|at| text[..at].chars().count() as i64);
    Ok(found.map_or(Value::boolean(false), Value::integer))
}

fn integer_to_char<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let code = call.integer(0)?;
    let found = u32::try_from(code).ok().and_then(char::from_u32).map(Value::character);
    found.ok_or_else(|| call.wrong("a character's code", 0))
}

fn letter<'s>(call: &mut Call<'_, 's>, map: fn(char) -> Option<char>) -> Found<'s> {
    let letter = char_at(call, 0)?;
    Ok(Value::character(map(letter).unwrap_or(letter)))
}

fn tested<'s>(call: &mut Call<'_, 's>, test: fn(char) -> bool) -> Found<'s> {
    Ok(Value::boolean(test(char_at(call, 0)?)))
}
