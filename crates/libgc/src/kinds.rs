//! `gc_mark.h`: kinds of objects, and procedures that say what objects refer to.
//!
//! A mark procedure there is given the collector's mark stack and puts on it what the object refers to, as entries of a start and a descriptor,
//! or by `GC_mark_and_push`. Here each call gets a stack of its own; what is on it when the procedure returns is named to the
//! collector by `vel_gc_visit`, which follows it as an ambiguous pointer. What is passed to `GC_mark_and_push` is named at
//! once.
//!
//! Invariant: while a procedure runs the world is stopped, so that the visitor in use is one static.

use crate::{allocate, settings, start, vel};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// `GC_least_plausible_heap_addr` and its counterpart, which macros of the header read: everything is plausible.
#[unsafe(no_mangle)]
pub static GC_least_plausible_heap_addr: AtomicUsize = AtomicUsize::new(0);
/// See there.
#[unsafe(no_mangle)]
pub static GC_greatest_plausible_heap_addr: AtomicUsize = AtomicUsize::new(usize::MAX);

/// `struct GC_ms_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    start: *mut c_void,
    descriptor: usize,
}

/// `GC_mark_proc`.
pub type MarkProc = unsafe extern "C" fn(
    object: *mut usize,
    top: *mut Entry,
    limit: *mut Entry,
    environment: usize,
) -> *mut Entry;

/// Kinds there are at most; the first five are libgc's own.
const KINDS: usize = 16;
const FIRST_KIND: usize = 5;
/// Mark procedures there are at most.
const PROCEDURES: usize = 64;
/// The bits of a descriptor that say what the others mean.
const TAG_BITS: usize = 2;
const TAG: usize = 3;
const LENGTH: usize = 0;
const BITMAP: usize = 1;
const PROCEDURE: usize = 2;
const PER_OBJECT: usize = 3;
const INDEX_BITS: usize = 6;
const WORD: usize = size_of::<usize>();
/// Entries of the stack that a procedure is given.
const ENTRIES: usize = 4096;

/// Kinds that the library has from its start.
const POINTER_FREE: usize = 0;
const UNCOLLECTABLE: usize = 2;
const UNCOLLECTABLE_FREE: usize = 3;

static NEXT_KIND: AtomicU32 = AtomicU32::new(FIRST_KIND as u32);
static NEXT_PROCEDURE: AtomicU32 = AtomicU32::new(0);
static DESCRIPTORS: [AtomicUsize; KINDS] = [const { AtomicUsize::new(LENGTH) }; KINDS];
static LAYOUTS: [AtomicPtr<vel::Layout>; KINDS] = [const { AtomicPtr::new(null_mut()) }; KINDS];
static PROCEDURE_TABLE: [AtomicPtr<c_void>; PROCEDURES] = [const { AtomicPtr::new(null_mut()) }; PROCEDURES];

/// What names pointers to the collector now.
static VISITOR: AtomicPtr<vel::Visitor> = AtomicPtr::new(null_mut());
/// The stack for procedures: one at a time uses it.
static STACK: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// What there is no memory or number left for ends the process: the program would go on with objects half looked through.
fn give_up(what: &[u8]) -> ! {
    crate::say::line(&[b"libgc: ", what]);
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

/// A free list for a kind: nothing but a token, as nobody looks into it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_free_list() -> *mut *mut c_void {
    start::ensure();
    allocate::GC_malloc_uncollectable(WORD).cast()
}

/// A kind of objects. A descriptor that `adjust`s has the object's length added. Objects are always cleared.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_kind(
    _free_list: *mut *mut c_void,
    descriptor: usize,
    _adjust: c_int,
    _clear: c_int,
) -> c_uint {
    start::ensure();
    let kind = NEXT_KIND.fetch_add(1, AcqRel) as usize;
    let Some(place) = DESCRIPTORS.get(kind) else { give_up(b"GC_new_kind: too many kinds") };
    place.store(descriptor, Release);
    if descriptor & TAG != LENGTH {
        if STACK.load(Acquire).is_null() {
            // SAFETY: plain call.
            let stack = unsafe { libc::malloc(ENTRIES * size_of::<Entry>()) };
            if stack.is_null() {
                give_up(b"GC_new_kind: out of memory");
            }
            STACK.store(stack.cast(), Release);
        }
        // SAFETY: the procedure serves every object of the kind.
        let layout = unsafe { vel::vel_gc_type_by(trace, core::ptr::without_provenance_mut(descriptor)) };
        if layout.is_null() {
            give_up(b"GC_new_kind: out of memory");
        }
        LAYOUTS[kind].store(layout.cast_mut(), Release);
    }
    kind as c_uint
}

/// A number for a mark procedure.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_proc(procedure: MarkProc) -> c_uint {
    start::ensure();
    let index = NEXT_PROCEDURE.fetch_add(1, AcqRel);
    let Some(place) = PROCEDURE_TABLE.get(index as usize) else {
        give_up(b"GC_new_proc: too many procedures")
    };
    place.store(procedure as *mut c_void, Release);
    index
}

/// An object of a kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_generic_malloc(bytes: usize, kind: c_int) -> *mut c_void {
    let kind = usize::try_from(kind).unwrap_or(usize::MAX);
    match kind {
        POINTER_FREE => return allocate::GC_malloc_atomic(bytes),
        UNCOLLECTABLE => return allocate::GC_malloc_uncollectable(bytes),
        UNCOLLECTABLE_FREE => return allocate::GC_malloc_atomic_uncollectable(bytes),
        _ => {}
    }
    let Some(layout) =
        LAYOUTS.get(kind).map(|layout| layout.load(Acquire)).filter(|layout| !layout.is_null())
    else {
        return allocate::GC_malloc(bytes);
    };
    // SAFETY: a layout of the library's, of elements of a word.
    let object = unsafe { vel::vel_gc_new_array(layout, allocate::with_end(bytes).div_ceil(WORD).max(1)) };
    if object.is_null() { settings::out_of_memory(bytes) } else { object }
}

/// Names what an object refers to, by its kind's descriptor.
unsafe extern "C" fn trace(
    object: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    visitor: *const vel::Visitor,
) {
    // A procedure calls others only by way of the stack, never itself.
    VISITOR.store(visitor.cast_mut(), Relaxed);
    // SAFETY: an object that is alive, of so many bytes.
    unsafe { by_descriptor(object, bytes, descriptor.addr(), 0) };
    VISITOR.store(null_mut(), Relaxed);
}

/// Descriptors that lead to descriptors, at most.
const DEPTH: usize = 4;

/// Names what lies at `start`, as the descriptor says.
///
/// # Safety
/// What the descriptor speaks of can be read; the visitor is set.
unsafe fn by_descriptor(start: *mut c_void, bytes: usize, descriptor: usize, depth: usize) {
    let visitor = VISITOR.load(Relaxed).cast_const();
    if depth > DEPTH {
        give_up(b"a mark descriptor leads to itself");
    }
    // SAFETY: by this function's condition, and as gc_mark.h lays descriptors out.
    unsafe {
        match descriptor & TAG {
            LENGTH => {
                let length = if depth == 0 && descriptor == 0 { bytes } else { descriptor };
                vel::vel_gc_visit_words(visitor, start, start.wrapping_byte_add(length));
            }
            BITMAP => {
                // The highest bit is the first word's.
                let mut bits = descriptor & !TAG;
                let mut at = start.cast::<*const c_void>();
                while bits != 0 {
                    if bits >> (usize::BITS - 1) != 0 {
                        vel::vel_gc_visit(visitor, at.read());
                    }
                    bits <<= 1;
                    at = at.wrapping_add(1);
                }
            }
            PROCEDURE => {
                let index = descriptor >> TAG_BITS & ((1 << INDEX_BITS) - 1);
                let environment = descriptor >> (TAG_BITS + INDEX_BITS);
                let procedure = PROCEDURE_TABLE[index].load(Acquire);
                if procedure.is_null() {
                    give_up(b"a mark descriptor names a procedure that there is not");
                }
                let procedure = core::mem::transmute::<*mut c_void, MarkProc>(procedure);
                // The entry below the top is not the procedure's to change.
                let base = STACK.load(Acquire);
                let top = procedure(start.cast(), base, base.wrapping_add(ENTRIES), environment);
                // Entries may be procedures again, which use the stack: those come off first.
                let mut entry = top;
                while entry > base {
                    let Entry { start, descriptor } = entry.read();
                    entry = entry.wrapping_sub(1);
                    if descriptor & TAG == PROCEDURE {
                        give_up(b"a mark procedure pushes an object with a procedure: not served");
                    }
                    by_descriptor(start, 0, descriptor, depth + 1);
                }
            }
            PER_OBJECT => {
                // At an offset in the object, or, if negative, in what its first word leads to.
                let offset = (descriptor & !TAG).cast_signed();
                let at = if offset >= 0 {
                    start.wrapping_byte_offset(offset)
                } else {
                    let type_of = start.cast::<*mut c_void>().read();
                    if type_of.is_null() {
                        return;
                    }
                    type_of.wrapping_byte_offset(-offset - PER_OBJECT.cast_signed())
                };
                by_descriptor(start, bytes, at.cast::<usize>().read(), depth + 1);
            }
            _ => {}
        }
    }
}

/// Names the object that `object` points into; the stack's top is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn GC_mark_and_push(
    object: *mut c_void,
    top: *mut Entry,
    _limit: *mut Entry,
    _source: *mut *mut c_void,
) -> *mut Entry {
    let visitor = VISITOR.load(Relaxed);
    if !visitor.is_null() {
        // SAFETY: a procedure is being called with it.
        unsafe { vel::vel_gc_visit(visitor, object) };
    }
    top
}

/// The same; the debugging collector's objects are no others here.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_mark_and_push(
    object: *mut c_void,
    top: *mut Entry,
    limit: *mut Entry,
    source: *mut *mut c_void,
) -> *mut Entry {
    GC_mark_and_push(object, top, limit, source)
}

/// `GC_push_other_roots`: what names further roots. Programs call what was there before.
pub type PushOther = unsafe extern "C" fn();

/// `GC_push_other_roots`: called at each collection. Programs that know it as a variable put theirs in its place, and call what was there.
#[unsafe(no_mangle)]
pub static GC_push_other_roots: AtomicPtr<c_void> = AtomicPtr::new(nothing_more as *mut c_void);

extern "C" fn nothing_more() {}

/// Has the procedure for further roots called at each collection.
pub(crate) fn begin_roots() {
    // SAFETY: it may be called whenever the world is stopped.
    unsafe { vel::vel_gc_on_roots(Some(other_roots)) };
}

/// Calls the program's procedure for further roots.
unsafe extern "C" fn other_roots(visitor: *const vel::Visitor) {
    VISITOR.store(visitor.cast_mut(), Relaxed);
    // SAFETY: the program's own function.
    unsafe { GC_get_push_other_roots()() };
    VISITOR.store(null_mut(), Relaxed);
}

/// Has `procedure` called at each collection; it names roots by `GC_push_all` and its kin.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_push_other_roots(procedure: Option<PushOther>) {
    start::ensure();
    GC_push_other_roots.store(procedure.unwrap_or(nothing_more) as *mut c_void, Release);
}

/// What [`GC_set_push_other_roots`] set; one that does nothing if none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_push_other_roots() -> PushOther {
    // SAFETY: null or a procedure, and an option of a function has null for none.
    let set =
        unsafe { core::mem::transmute::<*mut c_void, Option<PushOther>>(GC_push_other_roots.load(Acquire)) };
    set.unwrap_or(nothing_more)
}

/// In a procedure for further roots: keeps the object, with what it refers to.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_mark_bit(object: *const c_void) {
    let visitor = VISITOR.load(Relaxed);
    if !visitor.is_null() {
        // SAFETY: a procedure is being called with it.
        unsafe { vel::vel_gc_visit(visitor, object) };
    }
}

/// Names every aligned word of a range.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_all(start: *mut c_void, end: *mut c_void) {
    let visitor = VISITOR.load(Relaxed);
    if !visitor.is_null() {
        // SAFETY: called by a procedure for roots, which vouches for the range.
        unsafe { vel::vel_gc_visit_words(visitor, start, end) };
    }
}

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_all_eager(start: *mut c_void, end: *mut c_void) {
    GC_push_all(start, end);
}

/// The same, whether the range has changed or not.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_conditional(start: *mut c_void, end: *mut c_void, _all: c_int) {
    GC_push_all(start, end);
}
