//! Records and promises. The forms that define and use them are in `compiler::derived` and the prelude.

use crate::call::{Call, Found, Table};
use crate::fail::Fail;
use crate::memory::{Kind, Value};

/// The procedures.
pub const TABLE: Table = &[
    ("%make-type", make_type),
    ("%record", record),
    ("%record?", is_record),
    ("%record-ref", record_ref),
    ("%record-set!", record_set),
    ("%make-promise", make_promise),
    ("promise?", is_promise),
    ("%promise-ref", promise_ref),
    ("%promise-set!", promise_set),
];

fn make_type<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::of_slots(call.scope, Kind::Type, &[&call.at(0), &call.at(1)])?)
}

fn record<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let record = Value::slots(call.scope, Kind::Record, call.count, crate::immediate::UNSPECIFIED)?;
    (0..call.count).for_each(|index| record.set(call.scope, index, &call.at(index)));
    Ok(record)
}

fn is_of<'s>(call: &Call<'_, 's>) -> bool {
    let value = call.at(0);
    value.is_a(Kind::Record) && value.get(call.scope, 0).is(&call.at(1))
}

fn is_record<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::boolean(is_of(call)))
}

fn wrong<'s>(call: &Call<'_, 's>) -> Fail<'s> {
    if !call.at(1).is_a(Kind::Type) {
        return call.wrong("a record's field", "a record type", 1);
    }
    let name = call.at(1).get(call.scope, 0);
    call.wrong("a record's field", &format!("a {}", name.as_text()), 0)
}

fn record_ref<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    if !is_of(call) {
        return Err(wrong(call));
    }
    Ok(call.at(0).get(call.scope, call.index("a record's field", 2, call.at(0).len())?))
}

fn record_set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    if !is_of(call) {
        return Err(wrong(call));
    }
    call.at(0).set(call.scope, call.index("a record's field", 2, call.at(0).len())?, &call.at(3));
    Ok(Value::unspecified())
}

fn make_promise<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    Ok(Value::of_slots(call.scope, Kind::Promise, &[&Value::boolean(false), &call.at(0)])?)
}

fn is_promise<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    call.takes("promise?", 1, 1)?;
    Ok(Value::boolean(call.at(0).is_a(Kind::Promise)))
}

fn promise_ref<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let promise = call.object("force", 0, Kind::Promise, "a promise")?;
    Ok(promise.get(call.scope, call.index("force", 1, 2)?))
}

/// The promise's value is there now.
fn promise_set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let promise = call.object("force", 0, Kind::Promise, "a promise")?;
    promise.set(call.scope, 0, &Value::boolean(true));
    promise.set(call.scope, 1, &call.at(1));
    Ok(Value::unspecified())
}
