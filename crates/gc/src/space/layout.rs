//! Layouts, the types of typed objects: which words of an object may hold pointers.
//!
//! A layout has the length of an element in words, and a bitmap over these words. An object is scanned
//! element by element up to its end. An array and a single object of a rounded size are therefore scanned
//! alike; the words behind the last element are zero.

use crate::process::visitor::TraceFn;
use crate::space::block::Scan;
use crate::space::size_class::{BLOCK, CLASS_LAST, WORD, bytes_of, class_of};
use core::cell::Cell;
use core::ptr::null_mut;
use vellum_pages::{PAGE, Pages, Request};

/// The largest element: see `VEL_GC_TYPE_MAX` in `vellum_gc.h`.
pub const TYPE_MAX: usize = 4096;
const WORDS_MAX: usize = TYPE_MAX / WORD;
const BITMAP: usize = WORDS_MAX / 64;

/// A type, as programs hold it. The first two fields are `struct vel_gc_layout` of the header.
#[repr(C)]
pub struct Layout {
    /// The slot of single objects.
    pub(crate) slot: Cell<u32>,
    /// Bytes of a single object, rounded to its class.
    pub(crate) bytes: Cell<u32>,
    /// Words of an element.
    pub(crate) words: Cell<u32>,
    /// True if any word may hold a pointer.
    pub(crate) has_pointers: Cell<bool>,
    pub(crate) pointers: Cell<[u64; BITMAP]>,
    /// The callback that names what objects refer to, in place of the bitmap, and its argument.
    pub(crate) procedure: Cell<Option<(TraceFn, usize)>>,
    /// The slots of arrays by class; 0 until a slot is made.
    pub(crate) array_slots: [Cell<u16>; CLASS_LAST + 1],
    pub(crate) next: Cell<*const Layout>,
}

/// The fields by which layouts differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub words: u32,
    pub pointers: [u64; BITMAP],
    /// The callback's address, and its argument.
    pub procedure: Option<(usize, usize)>,
}

impl Shape {
    /// The shape of elements of `bytes` bytes whose pointers are named by `bitmap(i)`, word `i` of the
    /// bitmap; `None` if the size is not served.
    pub(crate) fn new(bytes: usize, bitmap: impl Fn(usize) -> u64) -> Option<Shape> {
        if bytes == 0 || bytes > TYPE_MAX {
            return None;
        }
        let words = bytes.div_ceil(WORD);
        let mut pointers = [0; BITMAP];
        for (index, word) in pointers.iter_mut().enumerate().take(words.div_ceil(64)) {
            let in_use = (words - index * 64).min(64);
            *word = bitmap(index) & (!0 >> (64 - in_use));
        }
        Some(Shape { words: words as u32, pointers, procedure: None })
    }

    pub(crate) fn has_pointers(&self) -> bool {
        self.pointers.iter().any(|&word| word != 0)
    }

    /// Bytes of a single object.
    pub(crate) fn bytes(&self) -> usize {
        bytes_of(class_of(self.words as usize * WORD))
    }
}

impl Layout {
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            words: self.words.get(),
            pointers: self.pointers.get(),
            procedure: self.procedure.get().map(|(procedure, data)| (procedure as usize, data)),
        }
    }

    /// The scan of such objects.
    pub(crate) fn scan(&self) -> Scan {
        match (self.procedure.get(), self.has_pointers.get()) {
            (Some(_), _) => Scan::Procedure,
            (None, true) => Scan::Layout,
            (None, false) => Scan::Nothing,
        }
    }

    /// Which words of an object of `words` words may hold pointers.
    pub(crate) fn map(&self, words: usize) -> u64 {
        debug_assert!(words <= 64);
        let mut map = 0;
        self.each(words, |word| map |= 1 << word);
        map
    }

    /// Calls `visit` with the number of each word that may hold a pointer, of an object of `words` words.
    pub(crate) fn each(&self, words: usize, mut visit: impl FnMut(usize)) {
        let period = self.words.get() as usize;
        for word in 0..words {
            let place = word % period;
            if self.pointers(place / 64) >> (place % 64) & 1 != 0 {
                visit(word);
            }
        }
    }

    /// Word `index` of the bitmap of an element's pointers.
    #[inline(always)]
    pub(crate) fn pointers(&self, index: usize) -> u64 {
        // SAFETY: a `Cell` has its value's layout, and nobody writes the bitmap once the layout is in use.
        unsafe { (*self.pointers.as_ptr())[index % BITMAP] }
    }
}

/// Memory for layouts: pages that are never given back.
pub(crate) struct LayoutRoom {
    next: *mut Layout,
    left: usize,
    /// Bytes taken from the page layer.
    pub taken: usize,
}

impl LayoutRoom {
    pub(crate) const fn new() -> LayoutRoom {
        LayoutRoom { next: null_mut(), left: 0, taken: 0 }
    }

    /// Returns whether there is room for a layout.
    pub(crate) fn any(&self) -> bool {
        self.left > 0
    }

    /// Makes room, in place of the rest; false if memory is out.
    pub(crate) fn fill(&mut self) -> bool {
        let request = Request { bytes: PAGE, align: PAGE, zero: true };
        let Ok(extent) = Pages::global().alloc(request) else { return false };
        *self = LayoutRoom {
            next: extent.addr.as_ptr().cast(),
            left: PAGE / size_of::<Layout>(),
            taken: self.taken + PAGE,
        };
        true
    }

    /// An empty layout; `None` if there is no room.
    pub(crate) fn take(&mut self) -> Option<&'static Layout> {
        self.left = self.left.checked_sub(1)?;
        let place = self.next;
        // SAFETY: within the page, which has room for one more; its end is still in it or one beyond.
        self.next = unsafe { place.add(1) };
        // SAFETY: zeroed memory that is never given back; a zeroed layout is a valid one.
        Some(unsafe { &*place })
    }
}

const _: () = assert!(size_of::<Layout>() <= PAGE);
const _: () = assert!(TYPE_MAX < BLOCK && core::mem::offset_of!(Layout, bytes) == 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_repeat_their_elements_pointers() {
        for (bytes, bitmap, words) in
            [(8, 1u64, 5), (24, 0b101, 9), (40, 0b10110, 7), (4096, 1 << 63 | 1, 512)]
        {
            let shape = Shape::new(bytes, |_| bitmap).expect("a size that is served");
            let mut room = Box::new(std::mem::MaybeUninit::<Layout>::zeroed());
            // SAFETY: a zeroed layout is a valid one.
            let layout = unsafe { room.assume_init_mut() };
            layout.words.set(shape.words);
            layout.pointers.set(shape.pointers);
            assert_eq!(layout.shape(), shape);
            let period = bytes / WORD;
            let is_pointer = |word: usize| bitmap >> (word % period % 64) & 1 != 0;
            let mut found = Vec::new();
            layout.each(words, |word| found.push(word));
            assert_eq!(found, (0..words).filter(|&word| is_pointer(word)).collect::<Vec<_>>());
            for index in 0..period.div_ceil(64) {
                let expected = (0..64.min(period - index * 64))
                    .filter(|bit| is_pointer(index * 64 + bit))
                    .fold(0, |map, bit| map | 1 << bit);
                assert_eq!(layout.pointers(index), expected, "word {index} of {bytes} bytes");
            }
        }
        assert!(Shape::new(0, |_| 0).is_none() && Shape::new(TYPE_MAX + 1, |_| 0).is_none());
        // Bits beyond the object do not count.
        assert_eq!(Shape::new(16, |_| !0), Shape::new(16, |_| 3));
    }
}
