//! Built-in procedures for numbers: integers of 51 bits, and floating-point numbers.
//!
//! A sum, difference or product of integers that does not fit is an error rather than an inexact number.
//! Programs call `(inexact n)` first for an inexact result.

use crate::call::{ANY, Call, Found, Table, wrong};
use crate::compiler::op::Two;
use crate::datum::Shape;
use crate::fail::Fail;
use crate::immediate::{self, INTEGER_BITS, is_integer};
use crate::memory::{Scope, Value};
use crate::printer::float_text;
use crate::reader;

/// The procedures.
pub const TABLE: Table = &[
    ("+", 0, ANY, |call| fold(call, Two::Add, 0)),
    ("*", 0, ANY, |call| fold(call, Two::Multiply, 1)),
    ("-", 1, ANY, |call| back(call, Two::Subtract, 0)),
    ("/", 1, ANY, divide),
    ("=", 1, ANY, |call| ordered(call, Two::Equal)),
    ("<", 1, ANY, |call| ordered(call, Two::Less)),
    (">", 1, ANY, |call| ordered(call, Two::Greater)),
    ("<=", 1, ANY, |call| ordered(call, Two::AtMost)),
    (">=", 1, ANY, |call| ordered(call, Two::AtLeast)),
    ("quotient", 2, 2, |call| whole(call, i64::checked_div, |one, other| (one / other).trunc())),
    ("remainder", 2, 2, |call| whole(call, i64::checked_rem, |one, other| one % other)),
    ("modulo", 2, 2, |call| {
        whole(
            call,
            |one, other| {
                let rest = one.checked_rem(other)?;
                Some(if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
            },
            |one, other| one - other * (one / other).floor(),
        )
    }),
    ("number?", 1, 1, |call| Ok(Value::boolean(Number::of(&call.at(0)).is_some()))),
    ("integer?", 1, 1, |call| {
        Ok(Value::boolean(Number::of(&call.at(0)).is_some_and(|number| number.real().fract() == 0.0)))
    }),
    ("exact?", 1, 1, is_exact),
    ("exact-integer?", 1, 1, is_exact),
    ("inexact", 1, 1, inexact),
    ("exact", 1, 1, exact),
    ("floor", 1, 1, |call| rounded(call, f64::floor)),
    ("ceiling", 1, 1, |call| rounded(call, f64::ceil)),
    ("truncate", 1, 1, |call| rounded(call, f64::trunc)),
    ("round", 1, 1, |call| rounded(call, f64::round_ties_even)),
    ("sqrt", 1, 1, square_root),
    ("exp", 1, 1, |call| real(call, f64::exp)),
    ("log", 1, 1, |call| real(call, f64::ln)),
    ("sin", 1, 1, |call| real(call, f64::sin)),
    ("cos", 1, 1, |call| real(call, f64::cos)),
    ("atan", 1, 1, |call| real(call, f64::atan)),
    ("number->string", 1, 2, to_text),
    ("string->number", 1, 2, from_text),
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

/// The result of an operation on two integers as a word, if it is an integer that fits.
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
/// If a value is no number, or the result does not fit.
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
    if call.count == 1 {
        return operate(call.scope, two, &Value::integer(start), &call.at(0));
    }
    (1..call.count).try_fold(call.at(0), |rest, index| operate(call.scope, two, &rest, &call.at(index)))
}

fn ordered<'s>(call: &mut Call<'_, 's>, two: Two) -> Found<'s> {
    let mut holds = true;
    for index in 1..call.count {
        holds &= !operate(call.scope, two, &call.at(index - 1), &call.at(index))?.is_false();
    }
    Ok(Value::boolean(holds))
}

fn number<'s>(call: &Call<'_, 's>, index: usize) -> Found<'s, Number> {
    Number::of(&call.at(index)).ok_or_else(|| call.wrong("a number", index))
}

fn divide<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let mut all = (0..call.count).map(|index| number(call, index)).collect::<Result<Vec<_>, _>>()?;
    if all.len() == 1 {
        all.insert(0, Number::Exact(1));
    }
    let mut result = all[0];
    for next in &all[1..] {
        result = match (result, *next) {
            (_, Number::Exact(0)) => return Err(Fail::error("/: division by zero")),
            // There are no fractions: a quotient with a remainder is inexact.
            (Number::Exact(one), Number::Exact(other)) if one % other == 0 => Number::Exact(one / other),
            (one, other) => Number::Inexact(one.real() / other.real()),
        };
    }
    made(call, result)
}

fn made<'s>(call: &Call<'_, 's>, number: Number) -> Found<'s> {
    match number {
        Number::Exact(number) if is_integer(number) => Ok(Value::integer(number)),
        Number::Exact(_) => {
            Err(Fail::error(format!("{}: the result is no integer of {INTEGER_BITS} bits", call.name)))
        }
        Number::Inexact(number) => Ok(Value::float(number)),
    }
}

fn whole<'s>(
    call: &mut Call<'_, 's>,
    exact: fn(i64, i64) -> Option<i64>,
    inexact: fn(f64, f64) -> f64,
) -> Found<'s> {
    match (number(call, 0)?, number(call, 1)?) {
        (_, Number::Exact(0)) => Err(Fail::error(format!("{}: division by zero", call.name))),
        (Number::Exact(one), Number::Exact(other)) => {
            let found = exact(one, other).ok_or_else(|| Fail::error(format!("{}: no room", call.name)))?;
            made(call, Number::Exact(found))
        }
        (one, other) => Ok(Value::float(inexact(one.real(), other.real()))),
    }
}

fn is_exact<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::boolean(matches!(Number::of(&call.at(0)), Some(Number::Exact(_)))))
}

fn inexact<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::float(number(call, 0)?.real()))
}

fn exact<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    match number(call, 0)? {
        Number::Exact(number) => Ok(Value::integer(number)),
        Number::Inexact(number) if number.fract() == 0.0 && number.abs() < (1u64 << 52) as f64 => {
            made(call, Number::Exact(number as i64))
        }
        Number::Inexact(_) => Err(call.wrong("a whole number that there is room for", 0)),
    }
}

fn rounded<'s>(call: &mut Call<'_, 's>, round: fn(f64) -> f64) -> Found<'s> {
    Ok(match number(call, 0)? {
        Number::Exact(number) => Value::integer(number),
        Number::Inexact(number) => Value::float(round(number)),
    })
}

fn real<'s>(call: &mut Call<'_, 's>, function: fn(f64) -> f64) -> Found<'s> {
    Ok(Value::float(function(number(call, 0)?.real())))
}

fn square_root<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let number = number(call, 0)?;
    let root = number.real().sqrt();
    match number {
        Number::Exact(square) if root.fract() == 0.0 && (root as i64).pow(2) == square => {
            Ok(Value::integer(root as i64))
        }
        _ => Ok(Value::float(root)),
    }
}

fn to_text<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let radix = if call.count > 1 { call.integer(1)? } else { 10 };
    let text = match (number(call, 0)?, radix) {
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
        _ => return Err(call.wrong("a radix of 2, 8, 10 or 16", 1)),
    };
    call.new_text(&text)
}

fn from_text<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let radix = if call.count > 1 { call.integer(1)? } else { 10 };
    let radix = u32::try_from(radix).ok().filter(|radix| [2, 8, 10, 16].contains(radix));
    let radix = radix.ok_or_else(|| call.wrong("a radix of 2, 8, 10 or 16", 1))?;
    Ok(match reader::number(call.text(0)?.as_text(), radix) {
        Ok(Some(Shape::Integer(number))) => Value::integer(number),
        Ok(Some(Shape::Float(number))) => Value::float(number),
        _ => Value::boolean(false),
    })
}
