//! Built-in procedures for vectors and bytevectors.

use crate::call::{ANY, Call, Found, Table, wrong};
use crate::fail::Fail;
use crate::immediate;
use crate::machine::STACK_MAX;
use crate::memory::{Kind, Scope, Value};
use crate::value::walk;

/// The procedures.
pub const TABLE: Table = &[
    ("vector?", 1, 1, |call| call.is(Kind::Vector)),
    ("make-vector", 1, 2, make_vector),
    ("vector", 0, ANY, vector),
    ("vector-length", 1, 1, |call| length(call, Kind::Vector, "a vector")),
    ("vector-ref", 2, 2, |call| element(call.scope, &call.at(0), &call.at(1))),
    ("vector-set!", 3, 3, vector_set),
    ("%vector->list", 1, 1, vector_to_list),
    ("list->vector", 1, 1, list_to_vector),
    ("%list->vector", 1, 1, list_to_vector),
    ("bytevector?", 1, 1, |call| call.is(Kind::Bytes)),
    ("make-bytevector", 1, 2, make_bytes),
    ("bytevector-length", 1, 1, |call| length(call, Kind::Bytes, "a bytevector")),
    ("bytevector-u8-ref", 2, 2, bytes_ref),
    ("bytevector-u8-set!", 3, 3, bytes_set),
    ("utf8->string", 1, 1, bytes_to_text),
    ("string->utf8", 1, 1, |call| Ok(Value::bytes(call.scope, call.text(0)?.as_text().as_bytes())?)),
];

/// The longest vector, in elements.
const LENGTH_MAX: i64 = 1 << 28;

fn new_length<'s>(call: &Call<'_, 's>) -> Found<'s, usize> {
    let len = call.integer(0)?;
    match usize::try_from(len) {
        Ok(found) if len <= LENGTH_MAX => Ok(found),
        _ => Err(call.wrong("a length of 0 to 2^28", 0)),
    }
}

fn make_vector<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let len = new_length(call)?;
    let fill = call.maybe(1).unwrap_or_else(Value::unspecified);
    let vector = Value::slots(call.scope, Kind::Vector, len, fill.bits().unwrap_or(immediate::NIL))?;
    if fill.bits().is_none() {
        (0..len).for_each(|index| vector.set(call.scope, index, &fill));
    }
    Ok(vector)
}

fn vector<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let vector = Value::slots(call.scope, Kind::Vector, call.count, immediate::NIL)?;
    (0..call.count).for_each(|index| vector.set(call.scope, index, &call.at(index)));
    Ok(vector)
}

fn length<'s>(call: &mut Call<'_, 's>, kind: Kind, wanted: &str) -> Found<'s> {
    Ok(Value::integer(call.object(0, kind, wanted)?.len() as i64))
}

/// A vector's element.
///
/// # Errors
/// If it is no vector, or has no such element.
#[inline]
pub fn element<'s>(scope: &Scope<'s>, vector: &Value<'_>, index: &Value<'_>) -> Found<'s> {
    if !vector.is_a(Kind::Vector) {
        return Err(wrong(scope, "vector-ref", "a vector", vector));
    }
    match index.as_integer().and_then(|index| usize::try_from(index).ok()) {
        Some(index) if index < vector.len() => Ok(vector.get(scope, index)),
        _ => {
            let wanted = format!("an index less than {}", vector.len());
            Err(wrong(scope, "vector-ref", &wanted, index))
        }
    }
}

fn vector_set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let vector = call.object(0, Kind::Vector, "a vector")?;
    vector.set(call.scope, call.index(1, vector.len())?, &call.at(2));
    Ok(Value::unspecified())
}

fn vector_to_list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let vector = call.object(0, Kind::Vector, "a vector")?;
    let list = (0..vector.len()).rev();
    Ok(list.clone().try_fold(Value::nil(), |rest, index| {
        Value::pair(call.scope, &vector.get(call.scope, index), &rest)
    })?)
}

fn list_to_vector<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (list, mut len) = (call.at(0), 0);
    let is_list = walk::<Fail<'s>>(&list, |_, _| {
        len += 1;
        Ok(len < STACK_MAX)
    })?;
    if !is_list || len == STACK_MAX {
        return Err(call.wrong("a list", 0));
    }
    let vector = Value::slots(call.scope, Kind::Vector, len, immediate::NIL)?;
    let mut index = 0;
    walk::<Fail<'s>>(&list, |scope, element| {
        vector.set(scope, index, &element);
        index += 1;
        Ok(true)
    })?;
    Ok(vector)
}

fn byte<'s>(call: &Call<'_, 's>, index: usize) -> Found<'s, u8> {
    let found = call.at(index).as_integer().and_then(|byte| u8::try_from(byte).ok());
    found.ok_or_else(|| call.wrong("a byte", index))
}

fn make_bytes<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let len = new_length(call)?;
    let fill = if call.count > 1 { byte(call, 1)? } else { 0 };
    Ok(Value::bytes(call.scope, &vec![fill; len])?)
}

fn bytes<'s>(call: &Call<'_, 's>) -> Found<'s> {
    call.object(0, Kind::Bytes, "a bytevector")
}

fn bytes_ref<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let bytes = bytes(call)?;
    let index = call.index(1, bytes.len())?;
    Ok(Value::integer(i64::from(bytes.byte(index))))
}

fn bytes_set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let bytes = bytes(call)?;
    let index = call.index(1, bytes.len())?;
    bytes.set_byte(index, byte(call, 2)?);
    Ok(Value::unspecified())
}

fn bytes_to_text<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let bytes = bytes(call)?;
    let copy = (0..bytes.len()).map(|index| bytes.byte(index)).collect();
    let text = String::from_utf8(copy).map_err(|_| call.wrong("UTF-8", 0))?;
    call.new_text(&text)
}
