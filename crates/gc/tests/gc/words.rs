//! Words of objects, by address.

/// The word at `address`.
pub(crate) fn at(address: usize) -> *mut usize {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Reads a word of a live object.
pub(crate) fn read(place: *mut usize) -> usize {
    // SAFETY: a word of a live object.
    unsafe { place.read_volatile() }
}

/// Stores into a word of a live object, and tells the collector.
pub(crate) fn write(place: *mut usize, value: usize) {
    // SAFETY: a word of a live object.
    unsafe { vellum_gc::write(place, value) };
}
