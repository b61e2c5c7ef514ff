//! `gc_mark.h`: kinds of objects, and the mark procedures that report an object's pointers.
//!
//! In libgc a mark procedure receives the collector's mark stack. It pushes the object's pointers as entries
//! of a start and a descriptor, or calls `GC_mark_and_push`. Here each call starts with an empty stack.
//! Entries left when the procedure returns are reported by `vel_gc_visit` as ambiguous pointers; entries with
//! procedures are called with the rest of the stack. `GC_mark_and_push` reports its pointer at once.
//!
//! Invariant: the world is stopped while a procedure runs, so one static holds the visitor in use
//! (`visitor`).

use crate::abort::give_up;
use crate::visitor::{GC_push_other_roots, PushOther, VISITOR, nothing_more};
use crate::{allocate, disclaim, leaks, settings, start, variables, vel};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

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
pub(crate) const KINDS: usize = 16;
const FIRST_KIND: usize = 5;
const PROCEDURES: usize = 64;
/// The first of these are numbered by the caller.
const RESERVED: u32 = 8;
/// The bits of a descriptor that say what the others mean.
const TAG_BITS: usize = 2;
const TAG: usize = 3;
const LENGTH: usize = 0;
const BITMAP: usize = 1;
const PROCEDURE: usize = 2;
pub(crate) const PER_OBJECT: usize = 3;
/// A negative offset of `PER_OBJECT` is less by this than where in the first word's target the descriptor
/// lies (`GC_INDIR_PER_OBJ_BIAS`).
pub(crate) const INDIRECT_BIAS: isize = 16;
const INDEX_BITS: usize = 6;
const WORD: usize = size_of::<usize>();
/// Entries of the stack that a procedure is given.
const ENTRIES: usize = 4096;

/// Kinds that the library has from its start.
pub(crate) const POINTER_FREE: usize = 0;
pub(crate) const NORMAL: usize = 1;
const UNCOLLECTABLE: usize = 2;
const UNCOLLECTABLE_FREE: usize = 3;

static NEXT_KIND: AtomicU32 = AtomicU32::new(FIRST_KIND as u32);
static NEXT_PROCEDURE: AtomicU32 = AtomicU32::new(RESERVED);
static DESCRIPTORS: [AtomicUsize; KINDS] = [const { AtomicUsize::new(LENGTH) }; KINDS];
static LAYOUTS: [AtomicPtr<vel::Layout>; KINDS] = [const { AtomicPtr::new(null_mut()) }; KINDS];
static PROCEDURE_TABLE: [AtomicPtr<c_void>; PROCEDURES] = [const { AtomicPtr::new(null_mut()) }; PROCEDURES];

/// The stack for procedures: one at a time uses it.
static STACK: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// A free list for a kind: nothing but a token, as nobody looks into it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_free_list() -> *mut *mut c_void {
    start::ensure();
    allocate::GC_malloc_uncollectable(WORD).cast()
}

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_free_list_inner() -> *mut *mut c_void {
    GC_new_free_list()
}

/// As [`GC_new_kind`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_kind_inner(
    free_list: *mut *mut c_void,
    descriptor: usize,
    adjust: c_int,
    clear: c_int,
) -> c_uint {
    GC_new_kind(free_list, descriptor, adjust, clear)
}

/// As [`GC_new_proc`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_proc_inner(procedure: MarkProc) -> c_uint {
    GC_new_proc(procedure)
}

/// A kind of objects. A descriptor that `adjust`s has the object's length added. Objects are always cleared.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_kind(
    _free_list: *mut *mut c_void,
    descriptor: usize,
    adjust: c_int,
    _clear: c_int,
) -> c_uint {
    start::ensure();
    let kind = NEXT_KIND.fetch_add(1, AcqRel) as usize;
    let Some(place) = DESCRIPTORS.get(kind) else { give_up(c"libgc: GC_new_kind: too many kinds") };
    place.store(descriptor, Release);
    // Of objects of words, the heap looks at each; a kind that names fewer is asked.
    if descriptor & TAG != LENGTH || (adjust == 0 && descriptor != 0) {
        make_stack();
        // SAFETY: the procedure serves every object of the kind.
        let layout = unsafe { vel::vel_gc_type_by(trace, core::ptr::from_ref(place).cast_mut().cast()) };
        if layout.is_null() {
            give_up(c"libgc: GC_new_kind: out of memory");
        }
        LAYOUTS[kind].store(layout.cast_mut(), Release);
    }
    kind as c_uint
}

/// Makes the stack for procedures, once.
fn make_stack() {
    if STACK.load(Acquire).is_null() {
        // SAFETY: plain call.
        let stack = unsafe { libc::malloc(ENTRIES * size_of::<Entry>()) };
        if stack.is_null() {
            give_up(c"libgc: GC_new_kind: out of memory");
        }
        STACK.store(stack.cast(), Release);
    }
}

/// `GC_describe_type_fn`: writes what an object of a kind is, 40 bytes at most.
pub type Describe = unsafe extern "C" fn(object: *mut c_void, text: *mut core::ffi::c_char);

static DESCRIPTIONS: [AtomicPtr<c_void>; KINDS] = [const { AtomicPtr::new(null_mut()) }; KINDS];

/// Has objects of `kind` that are reported as leaked be described by `describe`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_describe_type_fn(kind: c_int, describe: Option<Describe>) {
    if let Some(place) = usize::try_from(kind).ok().and_then(|kind| DESCRIPTIONS.get(kind)) {
        place.store(describe.map_or(null_mut(), |describe| describe as *mut c_void), Release);
    }
}

/// What describes objects of `kind`.
pub(crate) fn description(kind: c_int) -> Option<Describe> {
    let place = usize::try_from(kind).ok().and_then(|kind| DESCRIPTIONS.get(kind))?;
    // SAFETY: null or what was set.
    unsafe { variables::function::<Describe>(place) }
}

/// A number for a mark procedure.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_proc(procedure: MarkProc) -> c_uint {
    start::ensure();
    let index = NEXT_PROCEDURE.fetch_add(1, AcqRel);
    let Some(place) = PROCEDURE_TABLE.get(index as usize) else {
        give_up(c"libgc: GC_new_proc: too many procedures")
    };
    make_stack();
    place.store(procedure as *mut c_void, Release);
    index
}

/// An object of a kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_generic_malloc(bytes: usize, kind: c_int) -> *mut c_void {
    let kind = usize::try_from(kind).unwrap_or(usize::MAX);
    match kind {
        POINTER_FREE => return allocate::GC_malloc_atomic(bytes),
        NORMAL => return allocate::GC_malloc(bytes),
        UNCOLLECTABLE => return allocate::GC_malloc_uncollectable(bytes),
        UNCOLLECTABLE_FREE => return allocate::GC_malloc_atomic_uncollectable(bytes),
        _ => {}
    }
    let Some(layout) = LAYOUTS.get(kind).map(|layout| layout.load(Acquire)) else {
        give_up(c"libgc: GC_generic_malloc: there is no such kind")
    };
    if layout.is_null() {
        return disclaim::made(allocate::GC_malloc(bytes), bytes, kind);
    }
    start::ensure();
    // SAFETY: a layout of the library's, of elements of a word.
    let object = unsafe { vel::vel_gc_new_array(layout, allocate::with_end(bytes).div_ceil(WORD).max(1)) };
    if object.is_null() {
        return settings::out_of_memory(bytes);
    }
    disclaim::made(leaks::made(object), bytes, kind)
}

/// As [`GC_generic_malloc`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_generic_malloc_ignore_off_page(bytes: usize, kind: c_int) -> *mut c_void {
    GC_generic_malloc(bytes, kind)
}

/// As [`GC_generic_malloc`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_generic_or_special_malloc(bytes: usize, kind: c_int) -> *mut c_void {
    GC_generic_malloc(bytes, kind)
}

/// As [`GC_generic_malloc`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_kind(bytes: usize, kind: c_int) -> *mut c_void {
    GC_generic_malloc(bytes, kind)
}

/// As [`GC_generic_malloc`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_malloc_kind_global(bytes: usize, kind: c_int) -> *mut c_void {
    GC_generic_malloc(bytes, kind)
}

/// An object of a kind that stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_generic_malloc_uncollectable(bytes: usize, kind: c_int) -> *mut c_void {
    let object = GC_generic_malloc(bytes, kind);
    let is_kept = matches!(usize::try_from(kind), Ok(UNCOLLECTABLE | UNCOLLECTABLE_FREE));
    if is_kept || object.is_null() { object } else { allocate::kept(object, bytes) }
}

/// The kind of the object that starts at `object`, and its bytes, which are stored unless `bytes` is null. Of
/// kinds that are not told apart by how they are scanned it is 1.
///
/// # Safety
/// `bytes` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_kind_and_size(object: *const c_void, bytes: *mut usize) -> c_int {
    let mut data = null_mut();
    // SAFETY: any address may be asked about; the place is this function's. The caller vouches for the other.
    let sort = unsafe {
        if !bytes.is_null() {
            bytes.write(vel::vel_gc_size(object));
        }
        vel::vel_gc_sort(object, &raw mut data)
    };
    let is_kept = sort >= vel::KEPT;
    let kind = match sort & !vel::KEPT {
        vel::ATOMIC if is_kept => UNCOLLECTABLE_FREE,
        vel::ATOMIC => POINTER_FREE,
        vel::BY_PROCEDURE => DESCRIPTORS
            .iter()
            .position(|place| core::ptr::addr_eq(core::ptr::from_ref(place), data))
            .unwrap_or(NORMAL),
        _ if is_kept => UNCOLLECTABLE,
        _ => NORMAL,
    };
    kind as c_int
}

/// Takes a reserved number for a mark procedure.
pub(crate) fn reserve(number: usize, procedure: MarkProc) {
    if let Some(place) = PROCEDURE_TABLE.get(number) {
        place.store(procedure as *mut c_void, Release);
    }
}

/// The descriptor of what this procedure marks, given `environment`.
pub(crate) fn procedure_descriptor(number: usize, environment: usize) -> usize {
    (environment << INDEX_BITS | number) << TAG_BITS | PROCEDURE
}

/// Names what an object refers to, by its kind's descriptor.
unsafe extern "C" fn trace(
    object: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    visitor: *const vel::Visitor,
) {
    // SAFETY: the kind's descriptor, which `GC_new_kind` gave with the type, is static.
    let descriptor = unsafe { &*descriptor.cast::<AtomicUsize>() }.load(Relaxed);
    VISITOR.store(visitor.cast_mut(), Relaxed);
    // SAFETY: an object that is alive, of that many bytes.
    unsafe { name_all(object, Some(bytes), descriptor) };
    VISITOR.store(null_mut(), Relaxed);
}

/// Names what lies at `start`, as the descriptor says, and what procedures put on the stack.
///
/// # Safety
/// As [`by_descriptor`].
unsafe fn name_all(start: *mut c_void, bytes: Option<usize>, descriptor: usize) {
    let base = STACK.load(Acquire);
    // SAFETY: by this function's condition; the stack has room.
    unsafe {
        let mut top = by_descriptor(start, bytes, descriptor, base);
        // Entries may be procedures again, which put theirs where the entry was.
        while top > base {
            let Entry { start, descriptor } = top.read();
            top = by_descriptor(start, None, descriptor, top.wrapping_sub(1));
        }
    }
}

/// Names what lies at `start`, as the descriptor says; the stack's top then, which was `top`. `bytes` are
/// those of the object, if it is one.
///
/// # Safety
/// What the descriptor speaks of can be read; the visitor is set.
unsafe fn by_descriptor(
    start: *mut c_void,
    bytes: Option<usize>,
    mut descriptor: usize,
    top: *mut Entry,
) -> *mut Entry {
    let visitor = VISITOR.load(Relaxed).cast_const();
    // SAFETY: by this function's condition, and as gc_mark.h lays descriptors out.
    unsafe {
        if descriptor & TAG == PER_OBJECT {
            // At an offset in the object, or, if negative, in what its first word leads to.
            let offset = (descriptor & !TAG).cast_signed();
            let at = if offset >= 0 {
                start.wrapping_byte_offset(offset)
            } else {
                let type_of = start.cast::<*mut c_void>().read();
                if type_of.is_null() {
                    return top;
                }
                type_of.wrapping_byte_offset(-offset - INDIRECT_BIAS)
            };
            descriptor = at.cast::<usize>().read();
        }
        match descriptor & TAG {
            LENGTH => {
                // A kind's own descriptor of 0 is the object's length.
                let length =
                    bytes.filter(|&bytes| descriptor == 0 || descriptor > bytes).unwrap_or(descriptor);
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
                    give_up(c"libgc: a mark descriptor names a procedure that there is not");
                }
                let procedure = core::mem::transmute::<*mut c_void, MarkProc>(procedure);
                // What lies below the top is not the procedure's to change.
                return procedure(start.cast(), top, STACK.load(Acquire).wrapping_add(ENTRIES), environment);
            }
            _ => give_up(c"libgc: a mark descriptor leads to one that leads on"),
        }
    }
    top
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

/// Names what `object` refers to, as the descriptor says: for procedures for roots.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_obj_descr(object: *mut c_void, descriptor: usize) {
    if !object.is_null() && !VISITOR.load(Relaxed).is_null() {
        // SAFETY: the program vouches for the object, and the visitor is set.
        unsafe { name_all(object, None, descriptor) };
    }
}

/// Puts that on a mark procedure's stack; its top then.
///
/// # Safety
/// `top` and `limit` are those that a mark procedure was given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_ms_push_obj_descr(
    object: *mut c_void,
    descriptor: usize,
    top: *mut Entry,
    limit: *mut Entry,
) -> *mut Entry {
    let next = top.wrapping_add(1);
    if next >= limit {
        give_up(c"libgc: a mark procedure puts more on the mark stack than it has room for");
    }
    // SAFETY: below the limit.
    unsafe { next.write(Entry { start: object, descriptor }) };
    next
}

/// Puts every aligned word from `start` up to `end` there.
///
/// # Safety
/// As [`GC_ms_push_obj_descr`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_ms_push_all(
    start: *mut c_void,
    end: *mut c_void,
    top: *mut Entry,
    limit: *mut Entry,
) -> *mut Entry {
    let start = start.map_addr(|start| start.next_multiple_of(WORD));
    match end.addr().saturating_sub(start.addr()) & !TAG {
        0 => top,
        // SAFETY: passed on.
        bytes => unsafe { GC_ms_push_obj_descr(start, bytes | LENGTH, top, limit) },
    }
}

/// Has `procedure` called at each collection; it names roots by `GC_push_all` and its kin.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_push_other_roots(procedure: Option<PushOther>) {
    start::ensure();
    GC_push_other_roots.store(procedure.unwrap_or(nothing_more) as *mut c_void, Release);
}
