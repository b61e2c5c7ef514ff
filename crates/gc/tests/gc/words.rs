//! Access to objects by address: reading and writing their words, and freeing them.

/// The word at `address`.
pub(crate) fn at(address: usize) -> *mut usize {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Reads a word of a live object.
pub(crate) fn read(place: *mut usize) -> usize {
    // SAFETY: a word of a live object.
    unsafe { place.read_volatile() }
}

/// The object at `pointer`, freed: its user has given it up.
pub(crate) fn free(pointer: *mut u8) {
    // SAFETY: tests free objects that they do not use any more.
    unsafe { vellum_gc::free(pointer) }.expect("a live object");
}

/// Stores into a word of a live object, and reports the write to the collector.
pub(crate) fn write(place: *mut usize, value: usize) {
    // SAFETY: a word of a live object.
    unsafe { vellum_gc::write(place, value) };
}
