//! Built-in procedures for pairs and lists.

use crate::call::{ANY, Call, Found, Table};
use crate::fail::Fail;
use crate::memory::{CAR, CDR, Kind, Value};
use crate::value::{is_equal, is_eqv, walk};

/// The procedures.
pub const TABLE: Table = &[
    ("cons", 2, 2, cons),
    ("%cons", 2, 2, cons),
    ("car", 1, 1, |call| slot(call, CAR)),
    ("cdr", 1, 1, |call| slot(call, CDR)),
    ("set-car!", 2, 2, |call| set(call, CAR)),
    ("set-cdr!", 2, 2, |call| set(call, CDR)),
    ("pair?", 1, 1, |call| call.is(Kind::Pair)),
    ("null?", 1, 1, |call| Ok(Value::boolean(call.at(0).is_nil()))),
    ("list?", 1, 1, is_list),
    ("list", 0, ANY, list),
    ("%list", 0, ANY, list),
    ("length", 1, 1, length),
    ("reverse", 1, 1, reverse),
    ("append", 0, ANY, append),
    ("%append", 0, ANY, append),
    ("memq", 2, 2, memv),
    ("memv", 2, 2, memv),
    ("%memv", 2, 2, memv),
    ("%member", 2, 2, |call| search(call, false, |one, other| is_equal(one, other, 0))),
    ("assq", 2, 2, assv),
    ("assv", 2, 2, assv),
    ("%assoc", 2, 2, |call| search(call, true, |one, other| is_equal(one, other, 0))),
];

/// A list with more elements than this counts as circular.
const LENGTH_MAX: usize = 1 << 28;

fn cons<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::pair(call.scope, &call.at(0), &call.at(1))?)
}

fn slot<'s>(call: &Call<'_, 's>, slot: usize) -> Found<'s> {
    Ok(call.object(0, Kind::Pair, "a pair")?.get(call.scope, slot))
}

fn set<'s>(call: &Call<'_, 's>, slot: usize) -> Found<'s> {
    call.object(0, Kind::Pair, "a pair")?.set(call.scope, slot, &call.at(1));
    Ok(Value::unspecified())
}

/// The length of a proper list; otherwise `None`.
fn length_of<'s>(value: &Value<'_>) -> Found<'s, Option<usize>> {
    let mut len = 0;
    let is_proper = walk::<Fail<'s>>(value, |_, _| {
        len += 1;
        Ok(len <= LENGTH_MAX)
    })?;
    Ok((is_proper && len <= LENGTH_MAX).then_some(len))
}

fn is_list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::boolean(length_of(&call.at(0))?.is_some()))
}

fn list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let all = (0..call.count).rev();
    Ok(all.clone().try_fold(Value::nil(), |rest, index| Value::pair(call.scope, &call.at(index), &rest))?)
}

fn length<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let len = length_of(&call.at(0))?.ok_or_else(|| call.wrong("a list", 0))?;
    Ok(Value::integer(len as i64))
}

/// Pushes a list's elements on the machine's stack, which keeps them alive; returns their number.
fn push_all<'s>(call: &mut Call<'_, 's>, index: usize) -> Found<'s, usize> {
    let (list, before) = (call.at(index), call.machine.stack.len());
    let stack = &mut call.machine.stack;
    let is_list = walk::<Fail<'s>>(&list, |_, element| {
        stack.push(&element)?;
        Ok(stack.len() - before < crate::machine::STACK_MAX)
    })?;
    let count = call.machine.stack.len() - before;
    if is_list && count < crate::machine::STACK_MAX {
        return Ok(count);
    }
    call.machine.stack.truncate(before);
    Err(call.wrong("a list", index))
}

fn reverse<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    // The growing result is kept on the stack, since the walk closes its scopes.
    let (list, at) = (call.at(0), call.machine.stack.len());
    call.machine.stack.push(&Value::nil())?;
    let stack = &mut call.machine.stack;
    let is_list = walk::<Fail<'s>>(&list, |scope, element| {
        let next = Value::pair(scope, &element, &stack.get(at, scope))?;
        stack.set(at, &next);
        Ok(true)
    })?;
    let reversed = call.machine.stack.pop(call.scope);
    if is_list { Ok(reversed) } else { Err(call.wrong("a list", 0)) }
}

fn append<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let Some(last) = call.count.checked_sub(1) else { return Ok(Value::nil()) };
    let at = call.machine.stack.len();
    call.machine.stack.push(&call.at(last))?;
    for index in (0..last).rev() {
        for _ in 0..push_all(call, index)? {
            crate::memory::in_scope(|scope| {
                let element = call.machine.stack.pop(scope);
                let longer = Value::pair(scope, &element, &call.machine.stack.get(at, scope))?;
                call.machine.stack.set(at, &longer);
                Ok::<_, Fail<'s>>(())
            })?;
        }
    }
    Ok(call.machine.stack.pop(call.scope))
}

/// The first pair of a list that holds the key; or, with `is_association`, the first element whose first part
/// is the key.
fn search<'s>(
    call: &mut Call<'_, 's>,
    is_association: bool,
    is_same: fn(&Value<'_>, &Value<'_>) -> Found<'static, bool>,
) -> Found<'s> {
    let (key, at) = (call.at(0), call.base + 1);
    let found = call.machine.stack.len();
    call.machine.stack.push(&Value::boolean(false))?;
    loop {
        let is_over = crate::memory::in_scope(|scope| {
            let mut place = call.machine.stack.get(at, scope);
            for _ in 0..32 {
                if !place.is_a(Kind::Pair) {
                    return Ok(true);
                }
                let element = place.get(scope, CAR);
                let hit = if is_association { &element } else { &place };
                let is_pair = !is_association || element.is_a(Kind::Pair);
                if is_pair && is_same(&key, &hit.get(scope, CAR))? {
                    call.machine.stack.set(found, hit);
                    return Ok(true);
                }
                place = place.get(scope, CDR);
            }
            call.machine.stack.set(at, &place);
            Ok::<_, Fail<'static>>(false)
        })?;
        if is_over {
            return Ok(call.machine.stack.pop(call.scope));
        }
    }
}

fn memv<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    search(call, false, |one, other| Ok(is_eqv(one, other)))
}

fn assv<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    search(call, true, |one, other| Ok(is_eqv(one, other)))
}
