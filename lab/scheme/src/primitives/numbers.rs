//! Numbers: integers of 51 bits, and floating-point numbers.
//!
//! A sum, difference or product of integers for which there is no room is an error: an inexact result nobody
//! asked for would be worse. `(inexact n)` asks for it.

use crate::call::{Call, Found, Table, wrong};
use crate::compiler::op::Two;
use crate::datum::Shape;
use crate::fail::Fail;
use crate::immediate::{self, INTEGER_BITS, is_integer};
use crate::memory::{Scope, Value};
use crate::printer::float_text;
use crate::reader;

/// The procedures.
pub const TABLE: Table = &[
    ("+", |call| fold(call, Two::Add, 0)),
    ("*", |call| fold(call, Two::Multiply, 1)),
    ("-", |call| back(call, Two::Subtract, 0)),
    ("/", divide),
    ("=", |call| ordered(call, Two::Equal)),
    ("<", |call| ordered(call, Two::Less)),
    (">", |call| ordered(call, Two::Greater)),
    ("<=", |call| ordered(call, Two::AtMost)),
    (">=", |call| ordered(call, Two::AtLeast)),
    ("quotient", |call| whole(call, "quotient", i64::checked_div, |one, other| (one / other).trunc())),
    ("remainder", |call| whole(call, "remainder", i64::checked_rem, |one, other| one % other)),
    ("modulo", |call| {
        whole(
            call,
            "modulo",
            |one, other| {
                let rest = one.checked_rem(other)?;
                Some(if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
            },
            |one, other| one - other * (one / other).floor(),
        )
    }),
    ("number?", is_number),
    ("integer?", is_whole),
    ("exact?", is_exact),
    ("exact-integer?", is_exact),
    ("inexact", inexact),
    ("exact", exact),
    ("floor", |call| rounded(call, "floor", f64::floor)),
    ("ceiling", |call| rounded(call, "ceiling", f64::ceil)),
    ("truncate", |call| rounded(call, "truncate", f64::trunc)),
    ("round", |call| rounded(call, "round", f64::round_ties_even)),
    ("sqrt", square_root),
    ("exp", |call| real(call, "exp", f64::exp)),
    ("log", |call| real(call, "log", f64::ln)),
    ("sin", |call| real(call, "sin", f64::sin)),
    ("cos", |call| real(call, "cos", f64::cos)),
    ("atan", |call| real(call, "atan", f64::atan)),
    ("number->string", to_text),
    ("string->number", from_text),
];

#[derive(Clone, Copy)]
enum Number {
    Exact(i64),
    Inexact(f64),
}

impl Number {
    fn of(value: &Value<'_>) -> Option<Number> {
        let bits = value.bits()?;
        let exact = immediate::as_integer(bits).map(Number::Exact);
        exact.or_else(|| immediate::as_float(bits).map(Number::Inexact))
    }

    fn real(self) -> f64 {
        match self {
            Number::Exact(number) => number as f64,
            Number::Inexact(number) => number,
        }
    }
}

/// The word of an operation on two integers, if it is one and there is room.
#[inline(always)]
pub fn quickly(two: Two, left: i64, right: i64) -> Option<u64> {
    let number = match two {
        Two::Add => left + right,
        Two::Subtract => left - right,
        Two::Multiply => left.checked_mul(right)?,
        Two::Less => return Some(immediate::boolean(left < right)),
        Two::Greater => return Some(immediate::boolean(left > right)),
        Two::AtMost => return Some(immediate::boolean(left <= right)),
        Two::AtLeast => return Some(immediate::boolean(left >= right)),
        Two::Equal | Two::Same => return Some(immediate::boolean(left == right)),
        Two::Cons | Two::VectorRef => return None,
    };
    is_integer(number).then(|| immediate::integer(number))
}

fn name_of(two: Two) -> &'static str {
    match two {
        Two::Add => "+",
        Two::Subtract => "-",
        Two::Multiply => "*",
        Two::Less => "<",
        Two::Greater => ">",
        Two::AtMost => "<=",
        Two::AtLeast => ">=",
        _ => "=",
    }
}

/// An operation on two numbers.
///
/// # Errors
/// If they are none, or there is no room for the result.
pub fn operate<'s>(scope: &Scope<'s>, two: Two, left: &Value<'_>, right: &Value<'_>) -> Found<'s> {
    let name = name_of(two);
    let one = Number::of(left).ok_or_else(|| wrong(scope, name, "a number", left))?;
    let other = Number::of(right).ok_or_else(|| wrong(scope, name, "a number", right))?;
    if let (Number::Exact(one), Number::Exact(other)) = (one, other) {
        let found = quickly(two, one, other).map(Value::immediate);
        return found.ok_or_else(|| overflow(scope, name, left, right));
    }
    let (one, other) = (one.real(), other.real());
    Ok(match two {
        Two::Add => Value::float(one + other),
        Two::Subtract => Value::float(one - other),
        Two::Multiply => Value::float(one * other),
        Two::Less => Value::boolean(one < other),
        Two::Greater => Value::boolean(one > other),
        Two::AtMost => Value::boolean(one <= other),
        Two::AtLeast => Value::boolean(one >= other),
        _ => Value::boolean(one == other),
    })
}

#[cold]
fn overflow<'s>(scope: &Scope<'s>, name: &str, left: &Value<'_>, right: &Value<'_>) -> Fail<'s> {
    match crate::value::list(scope, &[left, right]) {
        Ok(about) => {
            let message = format!("{name}: the result is no integer of {INTEGER_BITS} bits (see inexact):");
            Fail::Error(message, Some(about))
        }
        Err(memory) => Fail::Memory(memory),
    }
}

fn fold<'s>(call: &mut Call<'_, 's>, two: Two, start: i64) -> Found<'s> {
    (0..call.count)
        .try_fold(Value::integer(start), |sum, index| operate(call.scope, two, &sum, &call.at(index)))
}

fn back<'s>(call: &mut Call<'_, 's>, two: Two, start: i64) -> Found<'s> {
    call.takes(name_of(two), 1, usize::MAX)?;
    if call.count == 1 {
        return operate(call.scope, two, &Value::integer(start), &call.at(0));
    }
    (1..call.count).try_fold(call.at(0), |rest, index| operate(call.scope, two, &rest, &call.at(index)))
}

fn ordered<'s>(call: &mut Call<'_, 's>, two: Two) -> Found<'s> {
    call.takes(name_of(two), 1, usize::MAX)?;
    let mut holds = true;
    for index in 1..call.count {
        holds &= !operate(call.scope, two, &call.at(index - 1), &call.at(index))?.is_false();
    }
    Ok(Value::boolean(holds))
}

fn number<'s>(call: &Call<'_, 's>, name: &str, index: usize) -> Found<'s, Number> {
    Number::of(&call.at(index)).ok_or_else(|| call.wrong(name, "a number", index))
}

fn divide<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("/", 1, usize::MAX)?;
    let mut all = (0..call.count).map(|index| number(call, "/", index)).collect::<Result<Vec<_>, _>>()?;
    if all.len() == 1 {
        all.insert(0, Number::Exact(1));
    }
    let mut result = all[0];
    for next in &all[1..] {
        result = match (result, *next) {
            (_, Number::Exact(0)) => return Err(Fail::error("/: division by zero")),
            // There are no fractions: what does not come out even is inexact.
            (Number::Exact(one), Number::Exact(other)) if one % other == 0 => Number::Exact(one / other),
            (one, other) => Number::Inexact(one.real() / other.real()),
        };
    }
    made(call, "/", result)
}

fn made<'s>(call: &Call<'_, 's>, name: &str, number: Number) -> Found<'s> {
    match number {
        Number::Exact(number) if is_integer(number) => Ok(Value::integer(number)),
        Number::Exact(_) => {
            Err(Fail::error(format!("{name}: the result is no integer of {INTEGER_BITS} bits")))
        }
        Number::Inexact(number) => {
            let _ = call;
            Ok(Value::float(number))
        }
    }
}

fn whole<'s>(
    call: &mut Call<'_, 's>,
    name: &str,
    exact: fn(i64, i64) -> Option<i64>,
    inexact: fn(f64, f64) -> f64,
) -> Found<'s> {
    call.takes(name, 2, 2)?;
    match (number(call, name, 0)?, number(call, name, 1)?) {
        (_, Number::Exact(0)) => Err(Fail::error(format!("{name}: division by zero"))),
        (Number::Exact(one), Number::Exact(other)) => {
            let found = exact(one, other).ok_or_else(|| Fail::error(format!("{name}: no room")))?;
            made(call, name, Number::Exact(found))
        }
        (one, other) => Ok(Value::float(inexact(one.real(), other.real()))),
    }
}

fn is_number<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("number?", 1, 1)?;
    Ok(Value::boolean(Number::of(&call.at(0)).is_some()))
}

fn is_whole<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("integer?", 1, 1)?;
    Ok(Value::boolean(Number::of(&call.at(0)).is_some_and(|number| number.real().fract() == 0.0)))
}

fn is_exact<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("exact?", 1, 1)?;
    Ok(Value::boolean(matches!(Number::of(&call.at(0)), Some(Number::Exact(_)))))
}

fn inexact<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("inexact", 1, 1)?;
    Ok(Value::float(number(call, "inexact", 0)?.real()))
}

fn exact<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("exact", 1, 1)?;
    match number(call, "exact", 0)? {
        Number::Exact(number) => Ok(Value::integer(number)),
        Number::Inexact(number) if number.fract() == 0.0 && number.abs() < (1u64 << 52) as f64 => {
            made(call, "exact", Number::Exact(number as i64))
        }
        Number::Inexact(_) => Err(call.wrong("exact", "a whole number that there is room for", 0)),
    }
}

fn rounded<'s>(call: &mut Call<'_, 's>, name: &str, round: fn(f64) -> f64) -> Found<'s> {
    call.takes(name, 1, 1)?;
    Ok(match number(call, name, 0)? {
        Number::Exact(number) => Value::integer(number),
        Number::Inexact(number) => Value::float(round(number)),
    })
}

fn real<'s>(call: &mut Call<'_, 's>, name: &str, function: fn(f64) -> f64) -> Found<'s> {
    call.takes(name, 1, 1)?;
    Ok(Value::float(function(number(call, name, 0)?.real())))
}

fn square_root<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("sqrt", 1, 1)?;
    let number = number(call, "sqrt", 0)?;
    let root = number.real().sqrt();
    match number {
        Number::Exact(square) if root.fract() == 0.0 && (root as i64).pow(2) == square => {
            Ok(Value::integer(root as i64))
        }
        _ => Ok(Value::float(root)),
    }
}

fn to_text<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("number->string", 1, 2)?;
    let radix = if call.count > 1 { call.integer("number->string", 1)? } else { 10 };
    let text = match (number(call, "number->string", 0)?, radix) {
        (Number::Exact(number), 10) => number.to_string(),
        (Number::Exact(number), 2 | 8 | 16) => {
            let (sign, size) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
            let digits = match radix {
                2 => format!("{size:b}"),
                8 => format!("{size:o}"),
                _ => format!("{size:x}"),
            };
            format!("{sign}{digits}")
        }
        (Number::Inexact(number), 10) => float_text(number),
        _ => return Err(call.wrong("number->string", "a radix of 2, 8, 10 or 16", 1)),
    };
    call.new_text(&text)
}

fn from_text<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("string->number", 1, 2)?;
    let radix = if call.count > 1 { call.integer("string->number", 1)? } else { 10 };
    let radix = u32::try_from(radix).ok().filter(|radix| [2, 8, 10, 16].contains(radix));
    let radix = radix.ok_or_else(|| call.wrong("string->number", "a radix of 2, 8, 10 or 16", 1))?;
    Ok(match reader::number(call.text("string->number", 0)?.as_text(), radix) {
        Ok(Some(Shape::Integer(number))) => Value::integer(number),
        Ok(Some(Shape::Float(number))) => Value::float(number),
        _ => Value::boolean(false),
    })
}
