//! The table of functions by which this crate calls a sampler of blocks ([`crate::sampling`]).

use vellum_sys::Span;
use vellum_wire::door::Ask;

/// The functions of a sampler.
#[derive(Debug)]
pub struct Hooks {
    /// Returns a small block of at least the given size, sampled or not; `None` to allocate it unsampled.
    pub allocate_small: fn(usize) -> Option<*mut u8>,
    /// Samples a new large block of the given size in bytes, if a sample is due.
    pub allocated_large: fn(*mut u8, usize),
    /// Frees a sampled small block; false, with nothing done, if the block is not sampled. As unsafe as
    /// `free`.
    pub free_small: unsafe fn(*mut u8) -> bool,
    /// Drops the record of a sampled large block that is freed. False if the sampler frees the block later.
    pub freed_large: fn(*mut u8) -> bool,
    /// Drops the record of a large block that stays in use.
    pub drop_record: fn(*mut u8),
    /// Records a new size of a small block that stays in its place: the address of its heap, the block, and
    /// the bytes that it has and those that were requested.
    pub resized_small: fn(usize, *mut u8, [usize; 2]),
    /// Samples a new mapping of the program, of the given size, if a sample is due.
    pub mapped: fn(Span),
    /// Takes unmapped pages out of the sampled mappings.
    pub unmapped: fn(Span),
    /// Records that a mapping moved from an address to another, and its old and new size.
    pub remapped: fn(usize, usize, [usize; 2]),
    /// Before `fork`.
    pub fork_prepare: fn(),
    /// After `fork`, in the parent.
    pub fork_parent: fn(),
    /// After `fork`, in the child.
    pub fork_child: fn(),
    /// Carries out another process's request. The error's number, or 0.
    pub serve_request: fn(Ask) -> u32,
}
