//! This process's part of the file in which profiles are kept ([`vellum_wire::held`]).
//!
//! - A process takes a part when it samples its first block.
//! - A forked child with its own memory has no part, whatever call forked it. The state of the parent's part
//!   is on a page that the kernel clears in a child (`MADV_WIPEONFORK`). The child's first sample takes
//!   another part.
//! - A child that shares its parent's memory (`vfork`) uses the parent's part.
//! - A *generation* number separates blocks that a process sampled from blocks inherited from its parent.
//! - The file's memory is allocated a step ahead, as a write to a full file system would end the process.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use vellum_stacks::file::{self, own_pid, populate};
use vellum_sys::Span;
use vellum_wire::held::{
    ENTRY_WORDS, HEAD_BYTES, HELD_BYTES, HeldHead, PART_BYTES, PARTS, PartHead, StackHead,
};
use vellum_wire::log::{Entry, EntryKind};

/// Bytes whose memory is allocated at a time.
const STEP: usize = 64 << 10;
/// Values of `Part::state`; 0 in a child that has not sampled yet.
const ATTACHED: u32 = 1;
const WITHOUT_PART: u32 = 2;

/// The file and this process's part of it.
#[derive(Debug)]
pub(super) struct Part {
    path: Option<&'static CStr>,
    /// On a page that a child gets as zeros.
    state: *const AtomicU32,
    base: *mut u8,
    allocated: usize,
    generation: u32,
    /// The process that began with the file: others are forked from it.
    begun_by: u32,
}

// SAFETY: the pointers are to memory of the whole process, which only the part's holder reaches.
unsafe impl Send for Part {}

impl Part {
    pub(super) const fn new() -> Part {
        Part {
            path: None,
            state: core::ptr::null(),
            base: null_mut(),
            allocated: 0,
            generation: 0,
            begun_by: 0,
        }
    }

    /// Begins with the file at `path`. Bytes between samples, if it is such a file.
    pub(super) fn begin(&mut self, path: &'static CStr) -> rustix::io::Result<u64> {
        let (file, bytes) = file::open(path)?;
        if bytes as u64 != HELD_BYTES {
            return Err(Errno::INVAL);
        }
        let (is_known, interval) = on_head(&file, |head| (head.is_known(), head.interval.load(Relaxed)))?;
        if !is_known || interval == 0 {
            return Err(Errno::INVAL);
        }
        match self.state() {
            // It sampled before, into another file.
            Some(state) => state.store(0, Relaxed),
            // In older kernels a child gets a copy of the page: `detach` is for those.
            None => self.state = file::page_cleared_by_forks()?,
        }
        (self.path, self.begun_by) = (Some(path), own_pid());
        Ok(interval)
    }

    fn state(&self) -> Option<&AtomicU32> {
        // SAFETY: null, or the page's first word, which stays mapped.
        unsafe { self.state.as_ref() }
    }

    /// Detaches a forked child from its parent's part.
    pub(super) fn detach(&self) {
        if let Some(state) = self.state() {
            state.store(0, Relaxed);
        }
    }

    pub(super) fn end(&mut self) {
        self.path = None;
        self.unmap();
        if let Some(state) = self.state() {
            state.store(WITHOUT_PART, Relaxed);
        }
    }

    /// Unmaps the part, or the parent's, if there is one.
    fn unmap(&mut self) {
        if !self.base.is_null() {
            unmap(core::mem::replace(&mut self.base, null_mut()), PART_BYTES);
        }
    }

    pub(super) fn generation(&self) -> Option<u32> {
        (self.state()?.load(Relaxed) == ATTACHED).then_some(self.generation)
    }

    /// Takes a part if the process has none. True if it has one; the second is true if the part is new.
    pub(super) fn attach(&mut self) -> (bool, bool) {
        match self.state().map(|state| state.load(Relaxed)) {
            Some(ATTACHED) => return (true, false),
            Some(WITHOUT_PART) | None => return (false, false),
            _ => {}
        }
        let is_attached = self.take().is_ok();
        if let Some(state) = self.state() {
            state.store(if is_attached { ATTACHED } else { WITHOUT_PART }, Relaxed);
        }
        (is_attached, is_attached)
    }

    fn take(&mut self) -> rustix::io::Result<()> {
        let path = self.path.ok_or(Errno::NOENT)?;
        self.unmap();
        let (file, _) = file::open(path)?;
        let number = on_head(&file, |head| head.parts.fetch_add(1, Relaxed))? as usize;
        if number >= PARTS {
            return Err(Errno::NOSPC);
        }
        let base = file::map(&file, (HEAD_BYTES + number * PART_BYTES) as u64, PART_BYTES)?;
        populate(Span::at(base, STEP)).inspect_err(|_| unmap(base, PART_BYTES))?;
        self.base = base;
        (self.allocated, self.generation) = (STEP, self.generation + 1);
        let pid = own_pid();
        let head = self.head();
        file::write_name(&head.name);
        head.is_forked.store(u32::from(pid != self.begun_by), Relaxed);
        head.pid.store(pid, Release);
        Ok(())
    }

    /// The part's head. The process has a part.
    pub(super) fn head(&self) -> &PartHead {
        // SAFETY: the part is mapped from `base`, and any bit pattern is a valid head.
        unsafe { &*self.base.cast::<PartHead>() }
    }

    /// The address of the mapping; 0 without one.
    pub(super) fn base(&self) -> usize {
        self.base as usize
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < ENTRY_WORDS);
        // SAFETY: within the part, which is mapped.
        unsafe { &*self.base.add(HEAD_BYTES).cast::<AtomicU64>().add(index) }
    }

    /// Enters a module, a line or a stack: the number of its first word. `None` if there is no room.
    pub(super) fn add(&mut self, entry: &Entry<'_>) -> Option<u32> {
        let (at, words) = (self.head().used.load(Relaxed) as usize, entry.words());
        if at + words > ENTRY_WORDS {
            return None;
        }
        let end = HEAD_BYTES + (at + words) * 8;
        if end > self.allocated {
            let to = vellum_sys::round_up(end, STEP).min(PART_BYTES);
            populate(Span::at(self.base.wrapping_add(self.allocated), to - self.allocated)).ok()?;
            self.allocated = to;
        }
        // SAFETY: the words are within the part, which is mapped, and were not used yet; this process alone
        // writes them, under the profile's lock.
        unsafe { entry.write(core::ptr::from_ref(self.word(at)).cast_mut().cast()) };
        self.head().used.store((at + words) as u64, Release);
        Some(at as u32)
    }

    /// The hash in the entry that begins with the word of number `at`, of a stack or a line.
    pub(super) fn hash(&self, at: u32) -> u64 {
        self.word(at as usize + 1).load(Relaxed)
    }

    /// Whether the entry that begins with the word of number `at` is a stack's.
    pub(super) fn is_stack(&self, at: u32) -> bool {
        self.word(at as usize).load(Relaxed) as u32 == EntryKind::Stack as u32
    }

    /// The stack whose entry begins with the word of number `at`.
    pub(super) fn stack(&self, at: u32) -> &StackHead {
        // SAFETY: a stack's entry, which lies within the part.
        unsafe { &*core::ptr::from_ref(self.word(at as usize)).cast::<StackHead>() }
    }
}

/// Applies `with` to the head of a file for a profile.
fn on_head<T>(file: &OwnedFd, with: impl FnOnce(&HeldHead) -> T) -> rustix::io::Result<T> {
    let base = file::map(file, 0, HEAD_BYTES)?;
    // SAFETY: the head lies at the base, any bit pattern is a valid one, and the mapping is released after
    // it.
    let result = with(unsafe { &*base.cast::<HeldHead>() });
    unmap(base, HEAD_BYTES);
    Ok(result)
}

fn unmap(base: *mut u8, bytes: usize) {
    // SAFETY: the callers pass a mapping that they made and no longer use.
    let _ = unsafe { rustix::mm::munmap(base.cast(), bytes) };
}
