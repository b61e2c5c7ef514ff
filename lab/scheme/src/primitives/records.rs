//! Built-in procedures for records and promises. The forms that use them are in `compiler::derived`.

use crate::call::{ANY, Call, Found, Table};
use crate::memory::{Kind, Value};

/// The procedures.
pub const TABLE: Table = &[
    ("%make-type", 0, ANY, |call| Ok(Value::of_slots(call.scope, Kind::Type, &[&call.at(0), &call.at(1)])?)),
    ("%record", 0, ANY, record),
    ("%record?", 0, ANY, |call| Ok(Value::boolean(is_of(call)))),
    ("%record-ref", 0, ANY, |call| field(call).map(|field| call.at(0).get(call.scope, field))),
    ("%record-set!", 0, ANY, record_set),
    ("%make-promise", 0, ANY, |call| {
        Ok(Value::of_slots(call.scope, Kind::Promise, &[&Value::boolean(false), &call.at(0)])?)
    }),
    ("promise?", 1, 1, |call| call.is(Kind::Promise)),
    ("%promise-ref", 0, ANY, promise_ref),
    ("%promise-set!", 0, ANY, promise_set),
];

fn record<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let record = Value::slots(call.scope, Kind::Record, call.count, crate::immediate::UNSPECIFIED)?;
    (0..call.count).for_each(|index| record.set(call.scope, index, &call.at(index)));
    Ok(record)
}

fn is_of<'s>(call: &Call<'_, 's>) -> bool {
    let value = call.at(0);
    value.is_a(Kind::Record) && value.get(call.scope, 0).is(&call.at(1))
}

/// The number of the field named by the third argument, if the first argument is of the second's type.
fn field<'s>(call: &mut Call<'_, 's>) -> Found<'s, usize> {
    call.name = "a record's field";
    if is_of(call) {
        return call.index(2, call.at(0).len());
    }
    if !call.at(1).is_a(Kind::Type) {
        return Err(call.wrong("a record type", 1));
    }
    let name = call.at(1).get(call.scope, 0);
    Err(call.wrong(&format!("a {}", name.as_text()), 0))
}

fn record_set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let field = field(call)?;
    call.at(0).set(call.scope, field, &call.at(3));
    Ok(Value::unspecified())
}

fn promise_ref<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.name = "force";
    let promise = call.object(0, Kind::Promise, "a promise")?;
    Ok(promise.get(call.scope, call.index(1, 2)?))
}

/// Sets the promise's value.
fn promise_set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.name = "force";
    let promise = call.object(0, Kind::Promise, "a promise")?;
    promise.set(call.scope, 0, &Value::boolean(true));
    promise.set(call.scope, 1, &call.at(1));
    Ok(Value::unspecified())
}
