//! Parsers of the kernel's text files, each for given bytes, for the fuzz targets (`vellum-fuzz`) only.
//!
//! Results are dropped or reduced to a number: a fuzz target checks that a parser ends, does not panic, and
//! does not read or allocate too much.

use crate::{Stat, Statistics, Version, generations, machine, mapping, stat, status, symbols};
use std::path::Path;
use std::time::Duration;

/// The kernel's texts about processes, control groups and the machine, read from the same bytes.
pub fn texts(bytes: &[u8]) {
    let _ = (Stat::parse(bytes), stat::statm_resident(bytes), stat::child_pids(bytes).count());
    let _ = (mapping::mappings(bytes).count(), mapping::smaps(bytes).count(), machine::waited_in(bytes));
    let text = &*String::from_utf8_lossy(bytes);
    let _ = (status::Status::parse(text), machine::numbers(text), machine::first_swap_in(text));
    let _ = (machine::processor_in(text, "model name"), Statistics::of(text, Version::V1).huge());
    let _ = text.lines().filter_map(symbols::symbol).count();
    let _ = generations::in_hierarchy(text, Path::new("/sys/fs/cgroup/jobs"));
    for list in generations::parse(text, "/") {
        let _ = (list.youngest(), list.pages_since(1), list.idle_for(Duration::from_millis(1)));
    }
}
