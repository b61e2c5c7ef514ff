//! Built-in procedures for hash tables, whose keys are compared by `equal?`.
//!
//! ```text
//! table: count | buckets ──▶ vector of lists of (key . value)
//! ```
//!
//! A key's hash depends on its contents and never on its address, so the table stays valid when objects
//! move. Values without contents to hash (all procedures, for example) share a bucket.

use crate::call::{ANY, Call, Found, Table};
use crate::immediate;
use crate::memory::{CAR, CDR, Kind, Scope, Value, in_scope};
use crate::value::is_equal;

/// The procedures.
pub const TABLE: Table = &[
    ("make-hash-table", 0, ANY, make),
    ("hash-table?", 1, 1, |call| call.is(Kind::Table)),
    ("hash-table-ref/default", 3, 3, lookup),
    ("hash-table-set!", 3, 3, set),
    ("hash-table-delete!", 2, 2, delete),
    ("hash-table-count", 1, 1, count),
    ("hash-table->alist", 1, 1, to_list),
];

const COUNT: usize = 0;
const BUCKETS: usize = 1;
const BUCKETS_MIN: usize = 8;
/// Depth to which the pairs of a key count for its hash.
const DEPTH_MAX: usize = 4;

fn hash(value: &Value<'_>, depth: usize) -> u64 {
    let mix = |state: u64, more: u64| (state.rotate_left(5) ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = |text: &str| text.bytes().fold(1, |state, byte| mix(state, u64::from(byte)));
    match value.kind() {
        None => mix(2, value.bits().unwrap_or(0)),
        Some(Kind::Text | Kind::Symbol) => text(value.as_text()),
        Some(Kind::Pair) if depth < DEPTH_MAX => in_scope(|scope| {
            let car = hash(&value.get(scope, CAR), depth + 1);
            mix(car, hash(&value.get(scope, CDR), depth + 1))
        }),
        Some(kind) => mix(3, kind as u64),
    }
}

fn table<'s>(call: &Call<'_, 's>) -> Found<'s> {
    call.object(0, Kind::Table, "a hash table")
}

fn make<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let buckets = Value::slots(call.scope, Kind::Vector, BUCKETS_MIN, immediate::NIL)?;
    Ok(Value::of_slots(call.scope, Kind::Table, &[&Value::integer(0), &buckets])?)
}

/// A key's bucket, and its entry if it has one.
fn find<'s>(
    scope: &Scope<'s>,
    table: &Value<'_>,
    key: &Value<'_>,
) -> Found<'static, (Value<'s>, usize, Option<Value<'s>>)> {
    let buckets = table.get(scope, BUCKETS);
    let bucket = ((hash(key, 0) >> 20) as usize) & (buckets.len() - 1);
    let mut place = buckets.get(scope, bucket);
    while place.is_a(Kind::Pair) {
        let entry = place.get(scope, CAR);
        if is_equal(&entry.get(scope, CAR), key, 0)? {
            return Ok((buckets, bucket, Some(entry)));
        }
        place = place.get(scope, CDR);
    }
    Ok((buckets, bucket, None))
}

fn lookup<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let table = table(call)?;
    match find(call.scope, &table, &call.at(1))?.2 {
        Some(entry) => Ok(entry.get(call.scope, CDR)),
        None => Ok(call.at(2)),
    }
}

fn counted(scope: &Scope<'_>, table: &Value<'_>) -> i64 {
    table.get(scope, COUNT).as_integer().unwrap_or(0)
}

fn set<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (scope, table) = (call.scope, table(call)?);
    let (buckets, bucket, entry) = find(scope, &table, &call.at(1))?;
    if let Some(entry) = entry {
        entry.set(scope, CDR, &call.at(2));
        return Ok(Value::unspecified());
    }
    let entry = Value::pair(scope, &call.at(1), &call.at(2))?;
    buckets.set(scope, bucket, &Value::pair(scope, &entry, &buckets.get(scope, bucket))?);
    let count = counted(scope, &table) + 1;
    table.set(scope, COUNT, &Value::integer(count));
    if count as usize > buckets.len() {
        grow(scope, &table, &buckets)?;
    }
    Ok(Value::unspecified())
}

fn grow<'s>(scope: &Scope<'s>, table: &Value<'_>, old: &Value<'_>) -> Found<'s, ()> {
    let new = Value::slots(scope, Kind::Vector, old.len() * 2, immediate::NIL)?;
    for bucket in 0..old.len() {
        in_scope(|scope| {
            let mut place = old.get(scope, bucket);
            while place.is_a(Kind::Pair) {
                let next = place.get(scope, CDR);
                let key = place.get(scope, CAR).get(scope, CAR);
                let bucket = ((hash(&key, 0) >> 20) as usize) & (new.len() - 1);
                // The new lists reuse the pairs of the old ones.
                place.set(scope, CDR, &new.get(scope, bucket));
                new.set(scope, bucket, &place);
                place = next;
            }
        });
    }
    table.set(scope, BUCKETS, &new);
    Ok(())
}

fn delete<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let (scope, table) = (call.scope, table(call)?);
    let (buckets, bucket, entry) = find(scope, &table, &call.at(1))?;
    let Some(entry) = entry else { return Ok(Value::unspecified()) };
    let mut kept = Value::nil();
    let mut place = buckets.get(scope, bucket);
    while place.is_a(Kind::Pair) {
        let other = place.get(scope, CAR);
        if !other.is(&entry) {
            kept = Value::pair(scope, &other, &kept)?;
        }
        place = place.get(scope, CDR);
    }
    buckets.set(scope, bucket, &kept);
    table.set(scope, COUNT, &Value::integer(counted(scope, &table) - 1));
    Ok(Value::unspecified())
}

fn count<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let table = table(call)?;
    Ok(table.get(call.scope, COUNT))
}

fn to_list<'s>(call: &mut Call<'_, 's>) -> Found<'s> {
    let table = table(call)?;
    let (scope, buckets) = (call.scope, table.get(call.scope, BUCKETS));
    let mut list = Value::nil();
    for bucket in 0..buckets.len() {
        let mut place = buckets.get(scope, bucket);
        while place.is_a(Kind::Pair) {
            let entry = place.get(scope, CAR);
            let copy = Value::pair(scope, &entry.get(scope, CAR), &entry.get(scope, CDR))?;
            list = Value::pair(scope, &copy, &list)?;
            place = place.get(scope, CDR);
        }
    }
    Ok(list)
}
