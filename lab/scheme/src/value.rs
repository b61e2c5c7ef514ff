//! Operations on values that several parts of the interpreter use: lists, equality, data conversion.

use crate::datum::{Datum, Place, Shape};
use crate::fail::Fail;
use crate::immediate;
use crate::memory::{CAR, CDR, Kind, OutOfMemory, Scope, Value, in_scope};
use crate::symbols::Symbols;

/// Greatest nesting of values that are compared, copied or printed.
pub const DEPTH_MAX: usize = 500;
/// Greatest number of elements of a list in a program.
const LENGTH_MAX: usize = 1 << 16;
/// Elements of a list that share a scope.
const STRETCH: usize = 32;

/// A list of these values.
pub fn list<'s>(scope: &Scope<'s>, elements: &[&Value<'_>]) -> Result<Value<'s>, OutOfMemory> {
    elements.iter().rev().try_fold(Value::nil(), |rest, element| Value::pair(scope, element, &rest))
}

/// Calls `each` with the elements of a list, with a new scope every few elements. `each` returns `false` to
/// stop. Returns false if the list is improper or circular.
///
/// # Errors
/// Those of `each`.
pub fn walk<E>(
    list: &Value<'_>,
    mut each: impl for<'t> FnMut(&Scope<'t>, Value<'t>) -> Result<bool, E>,
) -> Result<bool, E> {
    enum Walked {
        On,
        Stopped,
        Ended(bool),
    }
    // A cell on the outer scope holds the place in the list, since the inner scopes end.
    in_scope(|outer| {
        let at = Value::slots(outer, Kind::Cell, 1, immediate::NIL);
        let Ok(at) = at else { return Ok(false) };
        at.set(outer, 0, list);
        loop {
            let walked = in_scope(|scope| {
                let mut place = at.get(scope, 0);
                for _ in 0..STRETCH {
                    if !place.is_a(Kind::Pair) {
                        return Ok(Walked::Ended(place.is_nil()));
                    }
                    if !each(scope, place.get(scope, CAR))? {
                        return Ok(Walked::Stopped);
                    }
                    place = place.get(scope, CDR);
                }
                at.set(scope, 0, &place);
                Ok(Walked::On)
            })?;
            match walked {
                Walked::On => {}
                Walked::Stopped => return Ok(true),
                Walked::Ended(is_proper) => return Ok(is_proper),
            }
        }
    })
}

/// Whether both are the same number, character, constant or object. An exact and an inexact number differ.
pub fn is_eqv(one: &Value<'_>, other: &Value<'_>) -> bool {
    one.is(other) || (one.is_a(Kind::Text) && other.is_a(Kind::Text) && one.len() == 0 && other.len() == 0)
}

/// Whether both have equal contents.
///
/// # Errors
/// If they nest too deep.
pub fn is_equal(one: &Value<'_>, other: &Value<'_>, depth: usize) -> Result<bool, Fail<'static>> {
    if one.is(other) {
        return Ok(true);
    }
    let (Some(kind), Some(same)) = (one.kind(), other.kind()) else { return Ok(false) };
    if kind != same {
        return Ok(false);
    }
    if depth == DEPTH_MAX {
        return Err(Fail::error("equal?: the values nest too deep, or have no end"));
    }
    match kind {
        Kind::Text => Ok(one.as_text() == other.as_text()),
        Kind::Bytes => {
            Ok(one.len() == other.len() && (0..one.len()).all(|at| one.byte(at) == other.byte(at)))
        }
        Kind::Vector => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for index in 0..one.len() {
                let same =
                    in_scope(|scope| is_equal(&one.get(scope, index), &other.get(scope, index), depth + 1))?;
                if !same {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Kind::Pair => in_scope(|scope| {
            let (mut one, mut other) = (one.kept(scope), other.kept(scope));
            while one.is_a(Kind::Pair) && other.is_a(Kind::Pair) {
                if one.is(&other) {
                    return Ok(true);
                }
                let same =
                    in_scope(|scope| is_equal(&one.get(scope, CAR), &other.get(scope, CAR), depth + 1))?;
                if !same {
                    return Ok(false);
                }
                (one, other) = (one.get(scope, CDR), other.get(scope, CDR));
            }
            is_equal(&one, &other, depth + 1)
        }),
        _ => Ok(false),
    }
}

/// A datum as a value.
pub fn from_datum<'s>(
    symbols: &mut Symbols,
    scope: &Scope<'s>,
    datum: &Datum,
) -> Result<Value<'s>, OutOfMemory> {
    match &datum.shape {
        Shape::Boolean(holds) => Ok(Value::boolean(*holds)),
        Shape::Integer(number) => Ok(Value::integer(*number)),
        Shape::Float(number) => Ok(Value::float(*number)),
        Shape::Char(character) => Ok(Value::character(*character)),
        Shape::Text(text) => Value::text(scope, Kind::Text, text),
        Shape::Symbol(name) => symbols.intern(scope, name),
        Shape::Bytes(bytes) => Value::bytes(scope, bytes),
        Shape::List(elements, tail) => {
            let end = match tail {
                Some(tail) => from_datum(symbols, scope, tail)?,
                None => Value::nil(),
            };
            elements.iter().rev().try_fold(end, |rest, element| {
                let element = from_datum(symbols, scope, element)?;
                Value::pair(scope, &element, &rest)
            })
        }
        Shape::Vector(elements) => {
            let vector = Value::slots(scope, Kind::Vector, elements.len(), immediate::NIL)?;
            for (index, element) in elements.iter().enumerate() {
                let element = from_datum(symbols, scope, element)?;
                vector.set(scope, index, &element);
            }
            Ok(vector)
        }
    }
}

/// A value as a datum, without a place.
///
/// # Errors
/// If it contains an object that cannot occur in a program, or nests too deep.
pub fn to_datum(value: &Value<'_>, depth: usize) -> Result<Datum, Fail<'static>> {
    if depth == DEPTH_MAX {
        return Err(Fail::error("eval: the program nests too deep"));
    }
    let shape = match (value.bits(), value.kind()) {
        (Some(immediate::TRUE), _) => Shape::Boolean(true),
        (Some(immediate::FALSE), _) => Shape::Boolean(false),
        (Some(immediate::NIL), _) => Shape::List(Vec::new(), None),
        (_, Some(Kind::Text)) => Shape::Text(value.as_text().into()),
        (_, Some(Kind::Symbol)) => Shape::Symbol(value.as_text().into()),
        (_, Some(Kind::Bytes)) => Shape::Bytes((0..value.len()).map(|at| value.byte(at)).collect()),
        (_, Some(Kind::Vector)) => {
            let element = |at| in_scope(|scope| to_datum(&value.get(scope, at), depth + 1));
            Shape::Vector((0..value.len()).map(element).collect::<Result<_, _>>()?)
        }
        (_, Some(Kind::Pair)) => {
            let mut elements = Vec::new();
            let tail = in_scope(|scope| {
                let mut at = value.kept(scope);
                while at.is_a(Kind::Pair) {
                    if elements.len() == LENGTH_MAX {
                        return Err(Fail::error("eval: a list of the program is too long, or has no end"));
                    }
                    elements.push(to_datum(&at.get(scope, CAR), depth + 1)?);
                    at = at.get(scope, CDR);
                }
                if at.is_nil() { Ok(None) } else { to_datum(&at, depth + 1).map(|tail| Some(Box::new(tail))) }
            })?;
            Shape::List(elements, tail)
        }
        (Some(bits), _) => {
            let number = immediate::as_integer(bits).map(Shape::Integer);
            let number = number.or_else(|| immediate::as_float(bits).map(Shape::Float));
            let found = number.or_else(|| immediate::as_character(bits).map(Shape::Char));
            found.ok_or_else(|| Fail::error("eval: the program has a part that is no datum"))?
        }
        _ => return Err(Fail::error("eval: the program has a part that is no datum")),
    };
    Ok(Datum { place: Place::default(), shape })
}
