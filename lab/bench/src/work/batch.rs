//! The workload `nodes`: a long list of small nodes, allocated one by one or many in one call (Douglas
//! 2011, section 4.2).
//!
//! Each loop appends all nodes to a list and writes into them, walks the list and frees it. Without
//! batches, the nodes are freed on the walk, which is the only way to find them. With batches, a call fills
//! a table with `chunk` nodes (by default all of them), which are then linked.
//! - A program with a table of all nodes needs no walk to free them: one call does.
//! - With a smaller `chunk` the table is reused. The walk then gathers as many pointers, and one call frees
//!   them.
//! - With `touch=0` the nodes are allocated and freed but never written: the comparison in the paper.
//!
//! The table of pointers is part of the batch interface, which writes it. Its frames are there beforehand,
//! like those of every table of this suite.

use super::large::middle;
use super::{Failure, Params, with_memory};
use crate::area::Area;
use crate::vellum::Batch;
use crate::{Metrics, raw};
use std::sync::Barrier;
use std::time::Instant;

#[repr(C)]
struct Node {
    next: *mut Node,
    value: u64,
}

/// `cold_node_ns` and `warm_node_ns`: the whole life of a node, in the first loop and as the median of the
/// others; `cold_construct_ns` and `warm_construct_ns`: the allocation alone.
pub(super) fn one_by_one(params: &Params) -> Result<Metrics, Failure> {
    looped(params, |nodes, table, touch| {
        let start = Instant::now();
        if touch {
            let mut head = std::ptr::null_mut();
            let mut end = &raw mut head;
            for value in 0..nodes as u64 {
                end = append(end, raw::malloc(size_of::<Node>()), value);
            }
            let construct = start.elapsed().as_nanos() as u64;
            walk(head, nodes, |node| {
                // SAFETY: each node of the list is freed once, after its successor was read.
                unsafe { raw::free(node.cast()) };
            })?;
            return Ok((construct, start.elapsed().as_nanos() as u64));
        }
        table.iter_mut().for_each(|slot| *slot = raw::malloc(size_of::<Node>()));
        let construct = start.elapsed().as_nanos() as u64;
        // SAFETY: each was allocated above and is freed once.
        table.iter().for_each(|node| unsafe { raw::free(*node) });
        Ok((construct, start.elapsed().as_nanos() as u64))
    })
}

/// The same with Vellum's batch calls.
pub(super) fn batched(params: &Params) -> Result<Metrics, Failure> {
    let batch = Batch::find()?;
    let chunk = params.size("chunk", usize::MAX);
    looped(params, |nodes, table, touch| {
        let start = Instant::now();
        let chunk = chunk.min(nodes);
        if !touch {
            batch.malloc(size_of::<Node>(), table);
            let construct = start.elapsed().as_nanos() as u64;
            // SAFETY: allocated by the call above, freed once.
            unsafe { batch.free(table) };
            return Ok((construct, start.elapsed().as_nanos() as u64));
        }
        let (mut head, mut made) = (std::ptr::null_mut(), 0);
        let mut end = &raw mut head;
        while made < nodes {
            let now = &mut table[..chunk.min(nodes - made)];
            batch.malloc(size_of::<Node>(), now);
            for (value, node) in now.iter().enumerate() {
                end = append(end, *node, (made + value) as u64);
            }
            made += now.len();
        }
        let construct = start.elapsed().as_nanos() as u64;
        if chunk == nodes {
            // Not timed: checks that no node is missing.
            walk(head, nodes, |_| ())?;
            let again = Instant::now();
            // SAFETY: every node of the list is in the table once, and none is used again.
            unsafe { batch.free(&table[..nodes]) };
            return Ok((construct, construct + again.elapsed().as_nanos() as u64));
        }
        let mut held = 0;
        walk(head, nodes, |node| {
            table[held] = node.cast();
            held += 1;
            if held == chunk {
                // SAFETY: the first `held` pointers are nodes of the list, each gathered once and not used
                // again.
                unsafe { batch.free(&table[..held]) };
                held = 0;
            }
        })?;
        // SAFETY: the first `held` pointers are nodes of the list, each gathered once and not used again.
        unsafe { batch.free(&table[..held]) };
        Ok((construct, start.elapsed().as_nanos() as u64))
    })
}

/// Writes a node and links it to `end`, the place of the list's last pointer; returns the new last place.
#[inline(always)]
fn append(end: *mut *mut Node, block: *mut u8, value: u64) -> *mut *mut Node {
    let node = block.cast::<Node>();
    // SAFETY: the block is as large as a node and aligned to sixteen; `end` is the list's head or in its last
    // node.
    unsafe {
        node.write(Node { next: std::ptr::null_mut(), value });
        end.write(node);
        &raw mut (*node).next
    }
}

/// Passes every node to `with`, after reading its successor, and checks that none is missing.
#[inline(always)]
fn walk(head: *mut Node, nodes: usize, mut with: impl FnMut(*mut Node)) -> Result<(), Failure> {
    let (mut node, mut sum) = (head, 0u64);
    while !node.is_null() {
        // SAFETY: nodes are live until `with` frees them.
        let Node { next, value } = unsafe { node.read() };
        sum += value;
        with(node);
        node = next;
    }
    let expected = (nodes as u64) * (nodes as u64 - 1) / 2;
    if sum == expected {
        return Ok(());
    }
    Err(Failure::Wrong {
        workload: "nodes",
        what: format!("the nodes' values add up to {sum}, not {expected}"),
    })
}

/// Nanoseconds of one loop: for allocating the nodes, and for the whole loop.
type Times = (u64, u64);

/// Runs `turn(nodes, table, touch)` `loops` times on each of `threads` threads that start each loop together;
/// the slowest thread counts.
fn looped(
    params: &Params,
    turn: impl Fn(usize, &mut [*mut u8], bool) -> Result<Times, Failure> + Sync,
) -> Result<Metrics, Failure> {
    let (threads, loops) = (params.size("threads", 1).max(1), params.size("loops", 5).max(2));
    let nodes = (params.size("nodes", 4_000_000) / threads).max(1);
    let touch = params.get("touch", 1) != 0;
    let together = Barrier::new(threads);
    let one = || -> Result<Vec<Times>, Failure> {
        let mut table = Area::<*mut u8>::new(nodes);
        let mut times = Vec::with_capacity(loops);
        // A thread that fails still waits at every loop's start, since the others wait for it there.
        for _ in 0..loops {
            together.wait();
            times.push(turn(nodes, &mut table, touch));
        }
        times.into_iter().collect()
    };
    let results: Vec<Result<Vec<Times>, Failure>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        let mine = one();
        let theirs = others.into_iter().map(|thread| thread.join().expect("the panic's message is above"));
        std::iter::once(mine).chain(theirs).collect()
    });
    let threads_times: Vec<Vec<Times>> = results.into_iter().collect::<Result<_, _>>()?;

    let mut metrics = Metrics::new();
    let per_node = |ns: f64| ns / (nodes * threads) as f64;
    for (name, pick) in
        [("construct", (|times: Times| times.0) as fn(Times) -> u64), ("node", |times| times.1)]
    {
        let slowest = |at: usize| threads_times.iter().map(|times| pick(times[at])).max().unwrap_or(0);
        let mut all: Vec<u64> = (0..loops).map(slowest).collect();
        metrics.set(&format!("cold_{name}_ns"), per_node(all[0] as f64));
        metrics.set(&format!("warm_{name}_ns"), per_node(middle(&mut all[1..])));
    }
    Ok(with_memory(metrics))
}
