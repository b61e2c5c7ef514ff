//! Objects of an interpreter with a tracing collector (after what Lua programs do to their allocator).
//!
//! Tables with a growing array, strings of many lengths and small closures are made at a steady rate, most of
//! them garbage at once. When the heap has doubled since the last time, what the roots reach is marked and
//! everything else freed in one sweep over the list of all objects: frees come in bursts, in order of age,
//! from everywhere.

use super::{Area, Failure, Metrics, Params, Rng, measured, raw};

const OBJECTS: u64 = 9_000_000;
const ROOTS: usize = 4_000;
/// Objects made before the first collection.
const FIRST_COLLECTION: usize = 20_000;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let objects = params.scaled(OBJECTS);
    let mut rng = Rng::new(params.seed());
    let mut heap =
        Heap { all: std::ptr::null_mut(), live: 0, limit: FIRST_COLLECTION, roots: Area::new(ROOTS) };
    measured(|| {
        for _ in 0..objects {
            heap.step(&mut rng)?;
        }
        heap.roots.iter_mut().for_each(|root| *root = std::ptr::null_mut());
        heap.collect()?;
        if heap.live != 0 {
            return Err(wrong(format!("{} objects outlived their roots", heap.live)));
        }
        Ok(())
    })
}

fn wrong(what: String) -> Failure {
    Failure::Wrong { workload: "lua", what }
}

/// What every object begins with. A table's slots are a block of their own; a string's bytes follow its
/// header.
#[repr(C)]
struct Object {
    next: *mut Object,
    kind: Kind,
    marked: bool,
    len: u32,
    room: u32,
    slots: *mut *mut Object,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Table,
    String,
    Closure,
}

const CAPTURED: u32 = 2;

struct Heap {
    all: *mut Object,
    live: usize,
    limit: usize,
    roots: Area<*mut Object>,
}

impl Heap {
    /// Makes one object and stores it somewhere, mostly where it is soon forgotten.
    fn step(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        if self.live >= self.limit {
            self.collect()?;
        }
        let object = match rng.below(8) {
            0..2 => self.make(Kind::Table, 0),
            2..6 => {
                let longest = if rng.below(16) == 0 { 400 } else { 40 };
                self.make(Kind::String, 1 + rng.below(longest) as u32)
            }
            _ => {
                let closure = self.make(Kind::Closure, CAPTURED);
                // SAFETY: a fresh closure has room for its captures.
                unsafe { (*closure).slots.write(self.random(rng)) };
                closure
            }
        };
        let holder = self.random(rng);
        // SAFETY: roots and what hangs from them are live: the collector frees only what they do not reach.
        match unsafe { holder.as_mut() } {
            Some(table) if table.kind == Kind::Table && rng.below(2) == 0 => append(table, object),
            _ => {
                // The first sixteenth of the roots is written half of the time: it holds short-lived objects.
                let span = if rng.below(2) == 0 { ROOTS / 16 } else { ROOTS };
                self.roots[rng.below(span as u64) as usize] = object;
            }
        }
        Ok(())
    }

    fn random(&self, rng: &mut Rng) -> *mut Object {
        self.roots[rng.below(ROOTS as u64) as usize]
    }

    fn make(&mut self, kind: Kind, len: u32) -> *mut Object {
        let tail = match kind {
            Kind::Table => 0,
            Kind::String => len as usize,
            Kind::Closure => len as usize * size_of::<*mut Object>(),
        };
        let object = raw::malloc(size_of::<Object>() + tail).cast::<Object>();
        // SAFETY: the block holds the header and the tail behind it, which is aligned for pointers.
        unsafe {
            let behind = object.add(1);
            let slots = if kind == Kind::Closure { behind.cast() } else { std::ptr::null_mut() };
            object.write(Object { next: self.all, kind, marked: false, len, room: 0, slots });
            behind.cast::<u8>().write_bytes(if kind == Kind::String { len as u8 } else { 0 }, tail);
        }
        self.all = object;
        self.live += 1;
        object
    }

    /// Marks what the roots reach, frees the rest, and lets the heap double before the next time.
    fn collect(&mut self) -> Result<(), Failure> {
        let mut pending: Vec<*mut Object> =
            self.roots.iter().copied().filter(|root| !root.is_null()).collect();
        while let Some(object) = pending.pop() {
            // SAFETY: reachable objects are live; slots hold `len` pointers, null or live.
            unsafe {
                if std::mem::replace(&mut (*object).marked, true) || (*object).slots.is_null() {
                    continue;
                }
                let slots = std::slice::from_raw_parts((*object).slots, (*object).len as usize);
                pending.extend(slots.iter().copied().filter(|slot| !slot.is_null()));
            }
        }
        let mut place = &raw mut self.all;
        // SAFETY: the list links every live object once; one that is freed is unlinked first.
        unsafe {
            while !(*place).is_null() {
                let object = *place;
                if std::mem::replace(&mut (*object).marked, false) {
                    place = &raw mut (*object).next;
                    continue;
                }
                *place = (*object).next;
                if !free(object) {
                    return Err(wrong("a string lost its bytes".to_owned()));
                }
                self.live -= 1;
            }
        }
        self.limit = (self.live * 2).max(FIRST_COLLECTION);
        Ok(())
    }
}

/// Most slots of a table: a long one is emptied, as a program drops a list it is done with.
const SLOTS_MAX: u32 = 256;

fn append(table: &mut Object, object: *mut Object) {
    if table.len == SLOTS_MAX {
        table.len = 0;
    }
    if table.len == table.room {
        table.room = (table.room * 2).max(4);
        let bytes = table.room as usize * size_of::<*mut Object>();
        // SAFETY: the slots are null or this table's block; the new one replaces it.
        table.slots = unsafe { raw::realloc(table.slots.cast(), bytes) }.cast();
    }
    // SAFETY: there is room for one more.
    unsafe { table.slots.add(table.len as usize).write(object) };
    table.len += 1;
}

/// Frees an object; says whether a string still holds its bytes.
///
/// # Safety
/// `object` is live, unlinked, and reached by nothing.
unsafe fn free(object: *mut Object) -> bool {
    // SAFETY: as the caller promises; a string has `len`, at least one, bytes behind its header.
    unsafe {
        let intact = match (*object).kind {
            Kind::String => {
                *object.add(1).cast::<u8>().add((*object).len as usize - 1) == (*object).len as u8
            }
            Kind::Table => {
                raw::free((*object).slots.cast());
                true
            }
            Kind::Closure => true,
        };
        raw::free(object.cast());
        intact
    }
}
