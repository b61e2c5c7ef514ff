//! Descriptors of `gc_typed.h` (which words of an object may be pointers), and the heap's types for them.
//!
//! A libgc descriptor is one word, made from a bitmap without an object size; this heap's types need a size.
//! The word is therefore the address of a record: the bitmap, and a type for each requested size. Programs
//! request few sizes. Equal bitmaps share a record, because programs make a descriptor at each allocation.
//!
//! ```text
//! GC_descr ─▶ Record: bitmap │ types ─▶ Sized: bytes, type ─▶ Sized ...
//!               ▲  next record of the bucket
//! BUCKETS[hash] ┘
//! ```
//!
//! Elements up to the length of the heap's longest type have a type that the collector scans directly. Longer
//! elements have a type whose pointers [`trace`] reports.
//!
//! # Invariants
//! * Records and types are never freed, and lists grow only at their heads, so no lock is needed to read.

use crate::vel;
use core::ffi::c_void;
use core::ptr::{from_ref, null, null_mut};
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

/// `GC_descr`.
pub(crate) type Descriptor = usize;

pub(crate) const WORD: usize = size_of::<usize>();
/// The descriptor of objects whose words may all be pointers, used when there is no memory for another.
pub(crate) const ANY: Descriptor = 0;
/// The key of the type for single objects longer than the longest type, whatever their size.
const WHOLE: usize = usize::MAX;
const BUCKETS: usize = 1024;

static RECORDS: [AtomicPtr<Record>; BUCKETS] = [const { AtomicPtr::new(null_mut()) }; BUCKETS];

/// The record that a descriptor points to.
struct Record {
    next: *mut Record,
    types: AtomicPtr<Sized>,
    /// Words of the bitmap, which follows the record; the last word is not 0.
    words: usize,
}

/// The type of elements of one size.
struct Sized {
    record: *const Record,
    /// Bytes of an element, or [`WHOLE`].
    bytes: usize,
    layout: *const vel::Layout,
    next: *mut Sized,
}

impl Record {
    fn bitmap(&self) -> &[u64] {
        // SAFETY: `make` allocates records with `words` words behind them, and never frees them.
        unsafe { core::slice::from_raw_parts(from_ref(self).add(1).cast(), self.words) }
    }
}

/// The caller's bitmap: `bits` bits from `words` on.
#[derive(Clone, Copy)]
struct Given {
    words: *const usize,
    bits: usize,
}

impl Given {
    /// Word `index`, without bits beyond the last.
    fn word(self, index: usize) -> u64 {
        let left = self.bits - index * 64;
        // SAFETY: the bitmap has `bits` bits, by the `# Safety` section of `make`.
        let word = unsafe { self.words.add(index).read() } as u64;
        if left < 64 { word & ((1 << left) - 1) } else { word }
    }

    /// The number of words up to the last that is not 0.
    fn count(self) -> usize {
        (0..self.bits.div_ceil(64)).rev().find(|&index| self.word(index) != 0).map_or(0, |last| last + 1)
    }

    fn each(self) -> impl Iterator<Item = u64> {
        (0..self.count()).map(move |index| self.word(index))
    }

    fn bucket(self) -> &'static AtomicPtr<Record> {
        /// 2⁶⁴ divided by the golden ratio (Knuth, volume 3, 6.4).
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let hash = self.each().fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(GOLDEN));
        &RECORDS[(hash >> 32) as usize % BUCKETS]
    }

    fn is(self, record: &Record) -> bool {
        self.each().eq(record.bitmap().iter().copied())
    }

    /// The record with this bitmap in the list from `first` on.
    fn find(self, first: *mut Record) -> Option<&'static Record> {
        let mut this: *const Record = first;
        // SAFETY: records are never freed.
        while let Some(record) = unsafe { this.as_ref() } {
            if self.is(record) {
                return Some(record);
            }
            this = record.next;
        }
        None
    }
}

/// The descriptor of a bitmap of `bits` bits from `words` on.
///
/// # Safety
/// The bits can be read.
pub(crate) unsafe fn make(words: *const usize, bits: usize) -> Descriptor {
    let given = Given { words, bits };
    let bucket = given.bucket();
    let mut first = bucket.load(Acquire);
    if let Some(record) = given.find(first) {
        return from_ref(record).expose_provenance();
    }
    let count = given.count();
    // SAFETY: malloc has no preconditions.
    let record = unsafe { libc::malloc(size_of::<Record>() + count * size_of::<u64>()) }.cast::<Record>();
    if record.is_null() {
        return ANY;
    }
    // SAFETY: malloc returned that many bytes, suitably aligned, and no other thread has a pointer to them.
    unsafe {
        record.write(Record { next: first, types: AtomicPtr::new(null_mut()), words: count });
        for (index, word) in given.each().enumerate() {
            record.add(1).cast::<u64>().add(index).write(word);
        }
    }
    while let Err(now) = bucket.compare_exchange(first, record, AcqRel, Acquire) {
        if let Some(equal) = given.find(now) {
            // Another thread was faster.
            // SAFETY: the record came from malloc and was never published.
            unsafe { libc::free(record.cast()) };
            return from_ref(equal).expose_provenance();
        }
        first = now;
        // SAFETY: the record is not yet published.
        unsafe { (*record).next = first };
    }
    record.expose_provenance()
}

/// The type of elements of `bytes` bytes; `None` if any word may be a pointer.
pub(crate) fn layout_of_elements(descriptor: Descriptor, bytes: usize) -> Option<&'static vel::Layout> {
    if descriptor == ANY || bytes == 0 {
        return None;
    }
    // SAFETY: a descriptor other than `ANY` is the address of a record, which is never freed.
    let record = unsafe { &*core::ptr::with_exposed_provenance::<Record>(descriptor) };
    let mut first = record.types.load(Acquire);
    let mut this: *const Sized = first;
    // SAFETY: entries are never freed.
    while let Some(sized) = unsafe { this.as_ref() } {
        if sized.bytes == bytes {
            // SAFETY: the layout is null or of `libvellum.so`, which never frees layouts.
            return unsafe { sized.layout.as_ref() };
        }
        this = sized.next;
    }
    // SAFETY: malloc has no preconditions.
    let sized = unsafe { libc::malloc(size_of::<Sized>()) }.cast::<Sized>();
    if sized.is_null() {
        return None;
    }
    // SAFETY: malloc returned that many bytes, and no other thread has a pointer to them.
    unsafe { sized.write(Sized { record, bytes, layout: null(), next: first }) };
    let layout = new_layout(record, bytes, sized);
    if layout.is_null() {
        // SAFETY: the entry came from malloc; no type refers to it, because none was made.
        unsafe { libc::free(sized.cast()) };
        return None;
    }
    // SAFETY: the entry is not yet published.
    unsafe { (*sized).layout = layout };
    // A race may add two entries for a size; either can be used.
    while let Err(now) = record.types.compare_exchange(first, sized, AcqRel, Acquire) {
        first = now;
        // SAFETY: no other thread follows the entry yet, and collections do not read `next`.
        unsafe { (*sized).next = first };
    }
    // SAFETY: `libvellum.so` never frees layouts.
    unsafe { layout.as_ref() }
}

/// The type of a single object of `bytes` bytes; see [`layout_of_elements`].
pub(crate) fn layout_of_objects(descriptor: Descriptor, bytes: usize) -> Option<&'static vel::Layout> {
    layout_of_elements(descriptor, if bytes > vel::TYPE_MAX { WHOLE } else { bytes })
}

/// Makes a type; null without memory.
fn new_layout(record: &Record, bytes: usize, sized: *mut Sized) -> *const vel::Layout {
    let bitmap = record.bitmap();
    if bitmap.is_empty() {
        // The heap does not scan arrays of this type, so its size does not matter.
        // SAFETY: the bitmap has a bit for each word of the longest type.
        return unsafe { vel::vel_gc_type_of(bytes.min(vel::TYPE_MAX), [0; BITMAP].as_ptr()) };
    }
    if bytes <= vel::TYPE_MAX {
        let mut words = [0; BITMAP];
        let count = bitmap.len().min(BITMAP);
        words[..count].copy_from_slice(&bitmap[..count]);
        // SAFETY: the bitmap has a bit for each word of the longest type.
        return unsafe { vel::vel_gc_type_of(bytes, words.as_ptr()) };
    }
    // SAFETY: `trace` accepts every object of the type; its argument `sized` is never freed.
    unsafe { vel::vel_gc_type_by(trace, sized.cast()) }
}

/// Words in the longest type's bitmap.
const BITMAP: usize = vel::TYPE_MAX / WORD / 64;

/// Reports the pointers of an object with long elements.
unsafe extern "C" fn trace(
    object: *mut c_void,
    bytes: usize,
    sized: *mut c_void,
    visitor: *const vel::Visitor,
) {
    // SAFETY: `new_layout` passed a `Sized` with a record; neither is ever freed.
    let (sized, record) = unsafe {
        let sized = &*sized.cast::<Sized>();
        (sized, &*sized.record)
    };
    let element = sized.bytes.min(bytes);
    let mut start = 0;
    while start + element <= bytes {
        for (index, &word) in record.bitmap().iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                let at = start + (index * 64 + bits.trailing_zeros() as usize) * WORD;
                bits &= bits - 1;
                if at + WORD > start + element {
                    break;
                }
                // SAFETY: the word lies in a live object of `bytes` bytes; the visitor is valid here.
                unsafe { vel::vel_gc_visit(visitor, object.byte_add(at).cast::<*const c_void>().read()) };
            }
        }
        start += element;
    }
}
