//! Readers of bytes that others have written, for the fuzz targets (`vellum-fuzz`) only; see
//! `vellum_process::readers`.

use crate::sources::damon::strata;
use crate::sources::tables::btf::Btf;
use crate::sources::{accessed, generations as groups, status};
use crate::{delay, generations};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// Strata that memory is cut into.
const STRATA: usize = 64;

/// The types of a kernel: where a member of a structure is, its size, a constant and a function.
#[must_use]
pub fn btf(bytes: &[u8]) -> [Option<u32>; 4] {
    let Some(btf) = Btf::parse(bytes) else { return [None; 4] };
    let offset = btf.offset("s", "c").map(i32::unsigned_abs);
    [offset, btf.size("s"), btf.constant("e", "x"), btf.function("f")]
}

/// The kernel's texts about mappings, swap and generations, read from the same bytes.
pub fn texts(bytes: &[u8]) {
    let _ = accessed::parse(bytes);
    let text = String::from_utf8_lossy(bytes);
    let text = &*text;
    let _ = status::Status::parse(text);
    let _ = delay::first_used(text);
    let _ = groups::huge(text);
    let resident: HashMap<u64, u64> = strata::resident(text).collect();
    let areas = strata::areas(text, |start| resident.get(&start).copied());
    let _ = strata::strata(&areas, STRATA);
    let _ = generations::in_hierarchy(text, Path::new("/sys/fs/cgroup/jobs"));
    for list in generations::parse(text, "/") {
        let _ = (list.youngest(), list.pages_since(1), list.idle_for(Duration::from_millis(1)));
    }
}
