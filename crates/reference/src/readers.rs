//! Runs the parsers of BTF and `smaps` on given bytes; exported for the fuzz targets (`vellum-fuzz`) only,
//! like `vellum_kernel::readers`.

use crate::sources::accessed;
use crate::sources::tables::btf::Btf;

/// The types of a kernel: where a member of a structure is, its size, a constant and a function.
pub fn btf(bytes: &[u8]) -> [Option<u32>; 4] {
    let Some(btf) = Btf::parse(bytes) else { return [None; 4] };
    let offset = btf.offset("s", "c").map(i32::unsigned_abs);
    [offset, btf.size("s"), btf.constant("e", "x"), btf.function("f")]
}

/// The text of `smaps`.
pub fn texts(bytes: &[u8]) {
    let _ = accessed::parse(bytes);
}
