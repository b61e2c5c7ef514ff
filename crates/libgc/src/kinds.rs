//! `gc_mark.h`: kinds of objects, and the mark procedures that report an object's pointers.
//!
//! In libgc a mark procedure receives the collector's mark stack. It pushes the object's pointers as entries
//! (a start address and a descriptor), or calls `GC_mark_and_push`. Here each call starts with an empty
//! stack. Later, the pointers of its entries are reported by `vel_gc_visit` as ambiguous, and the procedures
//! of its entries are called with the rest of the stack. `GC_mark_and_push` reports its pointer at once.
//!
//! Invariant: the world is stopped while a procedure runs, so one static holds the visitor in use
//! (`visitor`).

use crate::abort::give_up;
use crate::forms::same;
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

/// The maximum number of kinds; the first five are libgc's own.
pub(crate) const KINDS: usize = 16;
const FIRST_KIND: usize = 5;
const PROCEDURES: usize = 64;
/// Procedures below this number are numbered by the caller.
const RESERVED: u32 = 8;
/// The bits of a descriptor that define the meaning of the others.
const TAG_BITS: usize = 2;
const TAG: usize = 3;
const LENGTH: usize = 0;
const BITMAP: usize = 1;
const PROCEDURE: usize = 2;
pub(crate) const PER_OBJECT: usize = 3;
/// Subtracted from a negative offset of `PER_OBJECT`, which is the descriptor's offset in the first word's
/// target (`GC_INDIR_PER_OBJ_BIAS`).
pub(crate) const INDIRECT_BIAS: isize = 16;
const INDEX_BITS: usize = 6;
const WORD: usize = size_of::<usize>();
/// Entries of the stack for procedures.
const ENTRIES: usize = 4096;

/// Kinds that exist from the start.
pub(crate) const POINTER_FREE: usize = 0;
pub(crate) const NORMAL: usize = 1;
const UNCOLLECTABLE: usize = 2;
const UNCOLLECTABLE_FREE: usize = 3;

static NEXT_KIND: AtomicU32 = AtomicU32::new(FIRST_KIND as u32);
static NEXT_PROCEDURE: AtomicU32 = AtomicU32::new(RESERVED);
static DESCRIPTORS: [AtomicUsize; KINDS] = [const { AtomicUsize::new(LENGTH) }; KINDS];
static LAYOUTS: [AtomicPtr<vel::Layout>; KINDS] = [const { AtomicPtr::new(null_mut()) }; KINDS];
static PROCEDURE_TABLE: [AtomicPtr<c_void>; PROCEDURES] = [const { AtomicPtr::new(null_mut()) }; PROCEDURES];

/// The stack for procedures, used by one at a time.
static STACK: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// A free list for a kind: only a token, which is never read.
#[unsafe(no_mangle)]
pub extern "C" fn GC_new_free_list() -> *mut *mut c_void {
    start::ensure();
    allocate::GC_malloc_uncollectable(WORD).cast()
}

same! {
    /// Like [`GC_new_free_list`].
    GC_new_free_list_inner() -> *mut *mut c_void = GC_new_free_list;
    /// Like [`GC_new_kind`].
    GC_new_kind_inner(
        free_list: *mut *mut c_void, descriptor: usize, adjust: c_int, clear: c_int
    ) -> c_uint = GC_new_kind;
    /// Like [`GC_new_proc`].
    GC_new_proc_inner(procedure: MarkProc) -> c_uint = GC_new_proc;
    /// Like [`GC_generic_malloc`].
    GC_generic_malloc_ignore_off_page(bytes: usize, kind: c_int) -> *mut c_void = GC_generic_malloc;
    /// Like [`GC_generic_malloc`].
    GC_generic_or_special_malloc(bytes: usize, kind: c_int) -> *mut c_void = GC_generic_malloc;
    /// Like [`GC_generic_malloc`].
    GC_malloc_kind(bytes: usize, kind: c_int) -> *mut c_void = GC_generic_malloc;
    /// Like [`GC_generic_malloc`].
    GC_malloc_kind_global(bytes: usize, kind: c_int) -> *mut c_void = GC_generic_malloc;
    /// [`GC_mark_and_push`]: checked objects need no other treatment here.
    GC_debug_mark_and_push(
        object: *mut c_void, top: *mut Entry, limit: *mut Entry, source: *mut *mut c_void
    ) -> *mut Entry = GC_mark_and_push;
}

/// Defines a kind of objects, which are always cleared. `adjust` adds the object's length to the descriptor.
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
    // The heap scans all words of plain objects. A kind that names fewer words needs a procedure.
    if descriptor & TAG != LENGTH || (adjust == 0 && descriptor != 0) {
        make_stack();
        // SAFETY: `trace` accepts every object, and the descriptor that it receives is a static.
        let layout = unsafe { vel::vel_gc_type_by(trace, core::ptr::from_ref(place).cast_mut().cast()) };
        if layout.is_null() {
            give_up(c"libgc: GC_new_kind: out of memory");
        }
        LAYOUTS[kind].store(layout.cast_mut(), Release);
    }
    kind as c_uint
}

/// Allocates the stack for procedures, once.
fn make_stack() {
    if STACK.load(Acquire).is_null() {
        // SAFETY: malloc has no preconditions.
        let stack = unsafe { libc::malloc(ENTRIES * size_of::<Entry>()) };
        if stack.is_null() {
            give_up(c"libgc: GC_new_kind: out of memory");
        }
        STACK.store(stack.cast(), Release);
    }
}

/// `GC_describe_type_fn`: writes a description of an object, 40 bytes at most.
pub type Describe = unsafe extern "C" fn(object: *mut c_void, text: *mut core::ffi::c_char);

static DESCRIPTIONS: [AtomicPtr<c_void>; KINDS] = [const { AtomicPtr::new(null_mut()) }; KINDS];

/// Sets the procedure that describes objects of `kind` in leak reports.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_describe_type_fn(kind: c_int, describe: Option<Describe>) {
    if let Some(place) = usize::try_from(kind).ok().and_then(|kind| DESCRIPTIONS.get(kind)) {
        place.store(describe.map_or(null_mut(), |describe| describe as *mut c_void), Release);
    }
}

/// The procedure that describes objects of `kind`.
pub(crate) fn description(kind: c_int) -> Option<Describe> {
    let place = usize::try_from(kind).ok().and_then(|kind| DESCRIPTIONS.get(kind))?;
    // SAFETY: `GC_register_describe_type_fn` alone stores here, null or a `Describe`.
    unsafe { variables::function::<Describe>(place) }
}

/// Registers a mark procedure; returns its number.
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

/// Allocates an object of a kind.
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
    // SAFETY: `GC_new_kind` stored a layout of `libvellum.so`, whose elements are words.
    let object = unsafe { vel::vel_gc_new_array(layout, allocate::with_end(bytes).div_ceil(WORD).max(1)) };
    if object.is_null() {
        return settings::out_of_memory(bytes);
    }
    disclaim::made(leaks::made(object), bytes, kind)
}

/// Allocates an object of a kind that stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_generic_malloc_uncollectable(bytes: usize, kind: c_int) -> *mut c_void {
    let object = GC_generic_malloc(bytes, kind);
    let is_kept = matches!(usize::try_from(kind), Ok(UNCOLLECTABLE | UNCOLLECTABLE_FREE));
    if is_kept || object.is_null() { object } else { allocate::kept(object, bytes) }
}

/// The kind of the object that starts at `object`. Its size is stored at `bytes` unless that is null. Kinds
/// that are scanned alike count as kind 1.
///
/// # Safety
/// `bytes` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_kind_and_size(object: *const c_void, bytes: *mut usize) -> c_int {
    let mut data = null_mut();
    // SAFETY: any address is accepted; `data` is a local; `bytes` is null or can be written (`# Safety`).
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

/// Registers a mark procedure under a reserved number.
pub(crate) fn reserve(number: usize, procedure: MarkProc) {
    if let Some(place) = PROCEDURE_TABLE.get(number) {
        place.store(procedure as *mut c_void, Release);
    }
}

/// The descriptor of objects that this procedure marks, called with `environment`.
pub(crate) fn procedure_descriptor(number: usize, environment: usize) -> usize {
    (environment << INDEX_BITS | number) << TAG_BITS | PROCEDURE
}

/// Reports the pointers of an object by its kind's descriptor.
unsafe extern "C" fn trace(
    object: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    visitor: *const vel::Visitor,
) {
    // SAFETY: `GC_new_kind` passed a pointer to a static descriptor.
    let descriptor = unsafe { &*descriptor.cast::<AtomicUsize>() }.load(Relaxed);
    VISITOR.store(visitor.cast_mut(), Relaxed);
    // SAFETY: the collector calls this with a live object of `bytes` bytes, and the visitor is set.
    unsafe { name_all(object, Some(bytes), descriptor) };
    VISITOR.store(null_mut(), Relaxed);
}

/// Reports the pointers at `start` by the descriptor, and the entries that procedures push on the stack.
///
/// # Safety
/// The conditions of [`by_descriptor`] apply.
unsafe fn name_all(start: *mut c_void, bytes: Option<usize>, descriptor: usize) {
    let base = STACK.load(Acquire);
    // SAFETY: `start` can be read (`# Safety`), and so can the memory of pushed entries.
    unsafe {
        let mut top = by_descriptor(start, bytes, descriptor, base);
        // Entries may name procedures again, whose entries begin in the place of the popped one.
        while top > base {
            let Entry { start, descriptor } = top.read();
            top = by_descriptor(start, None, descriptor, top.wrapping_sub(1));
        }
    }
}

/// Reports the pointers at `start` by the descriptor. Returns the stack's new top; `top` is the old one.
/// `bytes` is the object's size, if `start` is an object.
///
/// # Safety
/// The memory that the descriptor describes can be read, and the visitor is set.
unsafe fn by_descriptor(
    start: *mut c_void,
    bytes: Option<usize>,
    mut descriptor: usize,
    top: *mut Entry,
) -> *mut Entry {
    let visitor = VISITOR.load(Relaxed).cast_const();
    // SAFETY: the memory can be read (`# Safety`); the table holds null or a `MarkProc`.
    unsafe {
        if descriptor & TAG == PER_OBJECT {
            // The offset is in the object, or, if negative, in the target of its first word.
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
                // A kind's descriptor of 0 stands for the object's length.
                let length =
                    bytes.filter(|&bytes| descriptor == 0 || descriptor > bytes).unwrap_or(descriptor);
                vel::vel_gc_visit_words(visitor, start, start.wrapping_byte_add(length));
            }
            BITMAP => {
                // The highest bit stands for the first word.
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
                // The procedure does not change entries below the top.
                return procedure(start.cast(), top, STACK.load(Acquire).wrapping_add(ENTRIES), environment);
            }
            _ => give_up(c"libgc: a mark descriptor leads to one that leads on"),
        }
    }
    top
}

/// Reports the object that `object` points into; the stack's top does not change.
#[unsafe(no_mangle)]
pub extern "C" fn GC_mark_and_push(
    object: *mut c_void,
    top: *mut Entry,
    _limit: *mut Entry,
    _source: *mut *mut c_void,
) -> *mut Entry {
    let visitor = VISITOR.load(Relaxed);
    if !visitor.is_null() {
        // SAFETY: the visitor is set only during a call of a procedure, which this is.
        unsafe { vel::vel_gc_visit(visitor, object) };
    }
    top
}

/// Reports the pointers of `object` by the descriptor, in procedures for roots.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_obj_descr(object: *mut c_void, descriptor: usize) {
    if !object.is_null() && !VISITOR.load(Relaxed).is_null() {
        // SAFETY: the program's object is readable and fits the descriptor; the visitor is set.
        unsafe { name_all(object, None, descriptor) };
    }
}

/// Pushes an entry on a mark procedure's stack; returns its new top.
///
/// # Safety
/// `top` and `limit` are the mark procedure's arguments.
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
    // SAFETY: the check above keeps `next` below the limit.
    unsafe { next.write(Entry { start: object, descriptor }) };
    next
}

/// Pushes every aligned word from `start` up to `end`.
///
/// # Safety
/// The conditions of [`GC_ms_push_obj_descr`] apply.
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
        // SAFETY: `top` and `limit` are the mark procedure's arguments, by the `# Safety` section.
        bytes => unsafe { GC_ms_push_obj_descr(start, bytes | LENGTH, top, limit) },
    }
}

/// Sets the procedure that reports further roots at each collection, by `GC_push_all` and the like.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_push_other_roots(procedure: Option<PushOther>) {
    start::ensure();
    GC_push_other_roots.store(procedure.unwrap_or(nothing_more) as *mut c_void, Release);
}
