//! Douglas 2011, section 4.2: a list of four million items, allocated one by one or all in one call.
//!
//! Nodes are 16 bytes (a link and a value) and all are written. `method=single` calls malloc and free for
//! each node; `method=batch` makes one call for all nodes, and one to free them.

use std::time::Instant;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::Area;
use vellum_campaign::worker::batch::Batch;
use vellum_campaign::worker::{Params, WorkError, raw};

#[repr(C)]
struct Node {
    next: *mut Node,
    value: u64,
}

/// `alloc_ns`: allocating the nodes; `build_ns`: also writing them all into a list; `free_ns`; `total_ns`.
pub(super) fn list(params: &Params) -> Result<Metrics, WorkError> {
    let mut nodes = Area::<*mut u8>::new(params.number("nodes")?.max(1));
    let batch = match params.word("method") {
        "single" => None,
        "batch" => Some(Batch::find()?),
        _ => return Err(params.refused("method")),
    };
    let bytes = size_of::<Node>();
    let start = Instant::now();
    if let Some(batch) = batch {
        batch.malloc(bytes, &mut nodes);
    } else {
        for node in nodes.iter_mut() {
            *node = raw::malloc(bytes);
        }
    }
    let allocated = start.elapsed();
    let mut next = std::ptr::null_mut::<Node>();
    for (value, node) in nodes.iter().enumerate().rev() {
        let node = node.cast::<Node>();
        // SAFETY: a live block of a node's size, aligned as malloc's blocks are.
        unsafe { node.write(Node { next, value: value as u64 }) };
        next = node;
    }
    let built = start.elapsed();
    check(next, nodes.len())?;
    let freeing = Instant::now();
    match batch {
        // SAFETY: every node is live, listed once, and not used again.
        Some(batch) => unsafe { batch.free(&nodes) },
        // SAFETY: every node is live, freed once, and not used again.
        None => nodes.iter().for_each(|node| unsafe { raw::free(*node) }),
    }
    let freed = freeing.elapsed();
    let mut metrics = Metrics::new();
    metrics.set("alloc_ns", allocated.as_nanos() as f64);
    metrics.set("build_ns", built.as_nanos() as f64);
    metrics.set("free_ns", freed.as_nanos() as f64);
    metrics.set("total_ns", (built + freed).as_nanos() as f64);
    Ok(metrics)
}

/// Walks the list and compares every value with its place.
fn check(mut node: *mut Node, len: usize) -> Result<(), WorkError> {
    for place in 0..len as u64 {
        // SAFETY: the list has `len` live nodes.
        let found = unsafe { &*node };
        if found.value != place {
            return Err(WorkError::Damaged {
                what: format!("item {place}"),
                found: found.value,
                expected: place,
            });
        }
        node = found.next;
    }
    Ok(())
}
