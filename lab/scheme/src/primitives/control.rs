//! Built-in procedures for several values, errors, evaluation and the process.

use crate::call::{ANY, Call, Found, Table};
use crate::fail::{Compile, Fail};
use crate::immediate;
use crate::memory::{CDR, Kind, Value};
use crate::value::{is_equal, is_eqv, list, to_datum};
use std::time::{SystemTime, UNIX_EPOCH};

/// The procedures.
pub const TABLE: Table = &[
    ("values", 0, ANY, values),
    ("%values->list", 0, ANY, values_to_list),
    ("procedure?", 1, 1, is_procedure),
    ("eq?", 2, 2, eqv),
    ("eqv?", 2, 2, eqv),
    ("equal?", 2, 2, |call| Ok(Value::boolean(is_equal(&call.at(0), &call.at(1), 0)?))),
    ("not", 1, 1, not),
    ("%not", 1, 1, not),
    ("boolean?", 1, 1, is_boolean),
    ("error", 1, ANY, error),
    ("%fatal", 0, ANY, fatal),
    ("error-object?", 1, 1, |call| Ok(Value::boolean(is_own(&call.at(0))))),
    ("error-object-message", 1, 1, |call| part(call, 1)),
    ("error-object-irritants", 1, 1, |call| part(call, 2)),
    ("error-object-place", 1, 1, |call| part(call, 3)),
    ("%compile", 1, 1, compile),
    ("exit", 0, 1, exit),
    ("command-line", 0, ANY, command_line),
    ("current-second", 0, ANY, current_second),
];

/// `(values value ...)`.
pub fn values<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    if call.count == 1 {
        return Ok(call.at(0));
    }
    let all = Value::slots(call.scope, Kind::Values, call.count, immediate::NIL)?;
    (0..call.count).for_each(|index| all.set(call.scope, index, &call.at(index)));
    Ok(all)
}

fn values_to_list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let values = call.at(0);
    if !values.is_a(Kind::Values) {
        return Ok(list(call.scope, &[&values])?);
    }
    (0..values.len()).rev().try_fold(Value::nil(), |rest, index| {
        Ok(Value::pair(call.scope, &values.get(call.scope, index), &rest)?)
    })
}

fn is_procedure<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let value = call.at(0);
    let is_primitive = value.bits().and_then(immediate::as_primitive).is_some();
    Ok(Value::boolean(is_primitive || value.is_a(Kind::Closure) || value.is_a(Kind::Continuation)))
}

fn eqv<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::boolean(is_eqv(&call.at(0), &call.at(1))))
}

fn not<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::boolean(call.at(0).is_false()))
}

fn is_boolean<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let value = call.at(0);
    Ok(Value::boolean(value.is_false() || value.is_immediate(immediate::TRUE)))
}

fn error<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let message = call.printed(&call.at(0), false)?;
    let about = (1..call.count)
        .rev()
        .try_fold(Value::nil(), |rest, index| Value::pair(call.scope, &call.at(index), &rest))?;
    Err(Fail::Error(message, Some(about)))
}

/// Ends the program with an error that no handler has handled.
fn fatal<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let value = call.at(0);
    if !is_own(&value) {
        let place = call.machine.here();
        let place = call.machine.place(place);
        return Err(Fail::Uncaught(format!("{place}: raised: {}", call.printed(&value, true)?)));
    }
    let mut text = format!("{}: {}", value.get(call.scope, 3).as_text(), value.get(call.scope, 1).as_text());
    let mut about = value.get(call.scope, 2);
    while about.is_a(Kind::Pair) {
        text.push(' ');
        text.push_str(&call.printed(&about.get(call.scope, 0), true)?);
        about = about.get(call.scope, CDR);
    }
    Err(Fail::Uncaught(text))
}

fn is_own(value: &Value<'_>) -> bool {
    value.is_a(Kind::Record)
        && crate::memory::in_scope(|scope| value.get(scope, 0).is_immediate(immediate::CONDITION))
}

fn part<'s>(call: &Call<'_, 's>, slot: usize) -> Found<'s> {
    let value = call.at(0);
    if is_own(&value) { Ok(value.get(call.scope, slot)) } else { Err(call.wrong("an error object", 0)) }
}

/// A procedure that runs a datum as a program.
fn compile<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let datum = to_datum(&call.at(0), 0)?;
    match call.machine.compile(&datum) {
        Ok(entry) => Ok(Value::slots(call.scope, Kind::Closure, 1, immediate::integer(i64::from(entry)))?),
        Err(Compile::Syntax(error)) => Err(Fail::error(format!("eval: {}", error.message))),
        Err(Compile::Memory(error)) => Err(Fail::Memory(error)),
    }
}

fn exit<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let status = match call.maybe(0) {
        None => 0,
        Some(value) if value.is_immediate(immediate::TRUE) => 0,
        Some(value) => value.as_integer().and_then(|status| i32::try_from(status).ok()).unwrap_or(1),
    };
    Err(Fail::Exit(status))
}

fn command_line<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let mut all = Value::nil();
    for argument in call.machine.arguments.iter().rev() {
        all = Value::pair(call.scope, &Value::text(call.scope, Kind::Text, argument)?, &all)?;
    }
    Ok(all)
}

fn current_second<'s>(_call: &mut Call<'_, 's>) -> Found<'s> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Value::float(since.as_secs_f64()))
}
