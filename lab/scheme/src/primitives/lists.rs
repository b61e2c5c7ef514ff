//! Pairs and lists.

use crate::call::{Call, Found, Table};
use crate::fail::Fail;
use crate::memory::{CAR, CDR, Kind, Value};
use crate::value::{is_equal, is_eqv, walk};

/// The procedures.
pub const TABLE: Table = &[
    ("cons", cons),
    ("%cons", cons),
    ("car", car),
    ("cdr", cdr),
    ("set-car!", set_car),
    ("set-cdr!", set_cdr),
    ("pair?", is_pair),
    ("null?", is_null),
    ("list?", is_list),
    ("list", list),
    ("%list", list),
    ("length", length),
    ("reverse", reverse),
    ("append", append),
    ("%append", append),
    ("memq", memv),
    ("memv", memv),
    ("%memv", memv),
    ("%member", member),
    ("assq", assv),
    ("assv", assv),
    ("%assoc", assoc),
];

/// Elements of a list, beyond which it counts as one without end.
const LENGTH_MAX: usize = 1 << 28;

fn cons<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("cons", 2, 2)?;
    Ok(Value::pair(call.scope, &call.at(0), &call.at(1))?)
}

fn slot<'s>(call: &Call<'_, 's>, name: &str, slot: usize) -> Found<'s> {
    call.takes(name, 1, 1)?;
    Ok(call.object(name, 0, Kind::Pair, "a pair")?.get(call.scope, slot))
}

fn car<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    slot(call, "car", CAR)
}

fn cdr<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    slot(call, "cdr", CDR)
}

fn set<'s>(call: &Call<'_, 's>, name: &str, slot: usize) -> Found<'s> {
    call.takes(name, 2, 2)?;
    call.object(name, 0, Kind::Pair, "a pair")?.set(call.scope, slot, &call.at(1));
    Ok(Value::unspecified())
}

fn set_car<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    set(call, "set-car!", CAR)
}

fn set_cdr<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    set(call, "set-cdr!", CDR)
}

fn is_pair<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("pair?", 1, 1)?;
    Ok(Value::boolean(call.at(0).is_a(Kind::Pair)))
}

fn is_null<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("null?", 1, 1)?;
    Ok(Value::boolean(call.at(0).is_nil()))
}

/// The length of a proper list; `None` of anything else.
fn length_of<'s>(value: &Value<'_>) -> Found<'s, Option<usize>> {
    let mut len = 0;
    let is_proper = walk::<Fail<'s>>(value, |_, _| {
        len += 1;
        Ok(len <= LENGTH_MAX)
    })?;
    Ok((is_proper && len <= LENGTH_MAX).then_some(len))
}

fn is_list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("list?", 1, 1)?;
    Ok(Value::boolean(length_of(&call.at(0))?.is_some()))
}

fn list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let all = (0..call.count).rev();
    Ok(all.clone().try_fold(Value::nil(), |rest, index| Value::pair(call.scope, &call.at(index), &rest))?)
}

fn length<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("length", 1, 1)?;
    let len = length_of(&call.at(0))?.ok_or_else(|| call.wrong("length", "a list", 0))?;
    Ok(Value::integer(len as i64))
}

/// Pushes a list's elements on the machine's stack, where they are kept; returns how many.
fn push_all<'s>(call: &mut Call<'_, 's>, name: &str, index: usize) -> Found<'s, usize> {
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
    Err(call.wrong(name, "a list", index))
}

fn reverse<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("reverse", 1, 1)?;
    // The result grows on the stack: it outlives the scopes of the walk there.
    let (list, at) = (call.at(0), call.machine.stack.len());
    call.machine.stack.push(&Value::nil())?;
    let stack = &mut call.machine.stack;
    let is_list = walk::<Fail<'s>>(&list, |scope, element| {
        let next = Value::pair(scope, &element, &stack.get(at, scope))?;
        stack.set(at, &next);
        Ok(true)
    })?;
    let reversed = call.machine.stack.pop(call.scope);
    if is_list { Ok(reversed) } else { Err(call.wrong("reverse", "a list", 0)) }
}

fn append<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let Some(last) = call.count.checked_sub(1) else { return Ok(Value::nil()) };
    let at = call.machine.stack.len();
    call.machine.stack.push(&call.at(last))?;
    for index in (0..last).rev() {
        for _ in 0..push_all(call, "append", index)? {
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

/// The first place of a list, or of its elements, where the key is found.
fn search<'s>(
    call: &mut Call<'_, 's>,
    name: &str,
    is_association: bool,
    is_same: fn(&Value<'_>, &Value<'_>) -> Found<'static, bool>,
) -> Found<'s> {
    call.takes(name, 2, 2)?;
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
    search(call, "memv", false, |one, other| Ok(is_eqv(one, other)))
}

fn member<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    search(call, "member", false, |one, other| is_equal(one, other, 0))
}

fn assv<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    search(call, "assv", true, |one, other| Ok(is_eqv(one, other)))
}

fn assoc<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    search(call, "assoc", true, |one, other| is_equal(one, other, 0))
}
