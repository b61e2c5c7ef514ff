//! Descriptors of `gc_typed.h`, and the heap's types for them.
//!
//! A libgc descriptor is one word, made from a bitmap without an object size; a type of this heap has both.
//! The word is therefore the address of a record with the bitmap and one type per requested size. A program
//! requests few sizes. Equal bitmaps share a record, because programs make a descriptor wherever they
//! allocate.
//!
//! ```text
//! GC_descr ─▶ Record: bitmap │ types ─▶ Sized: bytes, type ─▶ Sized ...
//!               ▲  next record of the bucket
//! BUCKETS[hash] ┘
//! ```
//!
//! Elements up to the heap's longest type have a type that the collector scans directly. Longer elements have
//! a type whose pointers [`trace`] reports.
//!
//! # Invariants
//! * Records and types are never freed, and lists grow only at their heads. They are therefore read without a
//!   lock.

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
/// Every word may be a pointer: the descriptor where there is no memory for another.
pub(crate) const ANY: Descriptor = 0;
/// The key of the type for single objects beyond the longest type, whatever their size.
const WHOLE: usize = usize::MAX;
const BUCKETS: usize = 1024;

static RECORDS: [AtomicPtr<Record>; BUCKETS] = [const { AtomicPtr::new(null_mut()) }; BUCKETS];

/// What a descriptor stands for.
struct Record {
    next: *mut Record,
    types: AtomicPtr<Sized>,
    /// Words of the bitmap, which lies behind; the last of them is not 0.
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
        // SAFETY: records are made with their bitmap behind them, and reached by pointers to the whole.
        unsafe { core::slice::from_raw_parts(from_ref(self).add(1).cast(), self.words) }
    }
}

/// A bitmap as the caller gave it: `bits` bits from `words` on.
#[derive(Clone, Copy)]
struct Given {
    words: *const usize,
    bits: usize,
}

impl Given {
    /// Word `index`, without what lies beyond the last bit.
    fn word(self, index: usize) -> u64 {
        let left = self.bits - index * 64;
        // SAFETY: the caller of `make` vouches for that many bits.
        let word = unsafe { self.words.add(index).read() } as u64;
        if left < 64 { word & ((1 << left) - 1) } else { word }
    }

    /// Words up to the last that is not 0.
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

    /// The record of this bitmap in the list from `first` on.
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
/// They can be read.
pub(crate) unsafe fn make(words: *const usize, bits: usize) -> Descriptor {
    let given = Given { words, bits };
    let bucket = given.bucket();
    let mut first = bucket.load(Acquire);
    if let Some(record) = given.find(first) {
        return from_ref(record).expose_provenance();
    }
    let count = given.count();
    // SAFETY: plain call.
    let record = unsafe { libc::malloc(size_of::<Record>() + count * size_of::<u64>()) }.cast::<Record>();
    if record.is_null() {
        return ANY;
    }
    // SAFETY: that many bytes are there, aligned as malloc aligns, and nobody else's yet.
    unsafe {
        record.write(Record { next: first, types: AtomicPtr::new(null_mut()), words: count });
        for (index, word) in given.each().enumerate() {
            record.add(1).cast::<u64>().add(index).write(word);
        }
    }
    while let Err(now) = bucket.compare_exchange(first, record, AcqRel, Acquire) {
        if let Some(equal) = given.find(now) {
            // Another thread was faster.
            // SAFETY: from malloc, and nobody else's.
            unsafe { libc::free(record.cast()) };
            return from_ref(equal).expose_provenance();
        }
        first = now;
        // SAFETY: nobody else's yet.
        unsafe { (*record).next = first };
    }
    record.expose_provenance()
}

/// The type of elements of `bytes` bytes; `None` if any of their words may be a pointer.
pub(crate) fn layout_of_elements(descriptor: Descriptor, bytes: usize) -> Option<&'static vel::Layout> {
    if descriptor == ANY || bytes == 0 {
        return None;
    }
    // SAFETY: a record's address, which is never freed.
    let record = unsafe { &*core::ptr::with_exposed_provenance::<Record>(descriptor) };
    let mut first = record.types.load(Acquire);
    let mut this: *const Sized = first;
    // SAFETY: entries are never freed.
    while let Some(sized) = unsafe { this.as_ref() } {
        if sized.bytes == bytes {
            // SAFETY: a type lives for ever.
            return unsafe { sized.layout.as_ref() };
        }
        this = sized.next;
    }
    // SAFETY: plain call.
    let sized = unsafe { libc::malloc(size_of::<Sized>()) }.cast::<Sized>();
    if sized.is_null() {
        return None;
    }
    // SAFETY: that many bytes are there, and nobody else's yet.
    unsafe { sized.write(Sized { record, bytes, layout: null(), next: first }) };
    let layout = new_layout(record, bytes, sized);
    if layout.is_null() {
        // SAFETY: from malloc; a type that could not be made does not lead to it.
        unsafe { libc::free(sized.cast()) };
        return None;
    }
    // SAFETY: nobody else's yet.
    unsafe { (*sized).layout = layout };
    // A race makes an entry twice: either serves.
    while let Err(now) = record.types.compare_exchange(first, sized, AcqRel, Acquire) {
        first = now;
        // SAFETY: nobody else follows it yet; a collection does not read this field.
        unsafe { (*sized).next = first };
    }
    // SAFETY: a type lives for ever.
    unsafe { layout.as_ref() }
}

/// The same of single objects.
pub(crate) fn layout_of_objects(descriptor: Descriptor, bytes: usize) -> Option<&'static vel::Layout> {
    layout_of_elements(descriptor, if bytes > vel::TYPE_MAX { WHOLE } else { bytes })
}

/// Makes a type; null if there is no memory for it.
fn new_layout(record: &Record, bytes: usize, sized: *mut Sized) -> *const vel::Layout {
    let bitmap = record.bitmap();
    if bitmap.is_empty() {
        // Whatever the size: the heap's arrays of it are not scanned.
        // SAFETY: a bitmap of one word.
        return unsafe { vel::vel_gc_type_of(bytes.min(vel::TYPE_MAX), [0; BITMAP].as_ptr()) };
    }
    if bytes <= vel::TYPE_MAX {
        let mut words = [0; BITMAP];
        let count = bitmap.len().min(BITMAP);
        words[..count].copy_from_slice(&bitmap[..count]);
        // SAFETY: the bitmap has a bit for each word of the longest type.
        return unsafe { vel::vel_gc_type_of(bytes, words.as_ptr()) };
    }
    // SAFETY: the procedure serves every object of the type, and its argument is never freed.
    unsafe { vel::vel_gc_type_by(trace, sized.cast()) }
}

/// Words of the longest type's bitmap.
const BITMAP: usize = vel::TYPE_MAX / WORD / 64;

/// Names the pointers of an object of long elements.
unsafe extern "C" fn trace(
    object: *mut c_void,
    bytes: usize,
    sized: *mut c_void,
    visitor: *const vel::Visitor,
) {
    // SAFETY: `new_layout` passed it, with a record; neither is ever freed.
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
                // SAFETY: a word of an object that is alive; the visitor is being used for it.
                unsafe { vel::vel_gc_visit(visitor, object.byte_add(at).cast::<*const c_void>().read()) };
            }
        }
        start += element;
    }
}
