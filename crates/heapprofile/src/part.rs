//! This process's part of the file in which profiles are kept ([`vellum_wire::held`]).
//!
//! - A process takes a part when it samples its first block.
//! - A forked child has no part, whatever call forked it: the state of the parent's part is on a page that
//!   the kernel clears in a child (`MADV_WIPEONFORK`). The child's first sample takes another part.
//! - A child that shares its parent's memory (`vfork`) counts as the parent.
//! - A *generation* distinguishes the blocks sampled before a fork from the process's own.
//! - The file's memory is allocated a step ahead, as a touch on a full file system would end the process.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use vellum_sys::{Addr, PAGE, Span, map};
use vellum_wire::held::{
    ENTRY_WORDS, EntryKind, HEAD_BYTES, HELD_BYTES, HeldHead, LINE_WORDS, MODULE_WORDS, PART_BYTES, PARTS,
    PartHead, STACK_WORDS, StackHead, entry_head,
};

const WIPE_ON_FORK: usize = 18;
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

fn own_pid() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get() as u32
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
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        if rustix::fs::fstat(&file)?.st_size as u64 != HELD_BYTES {
            return Err(Errno::INVAL);
        }
        let head = Mapped::of(&file, 0, HEAD_BYTES)?;
        // SAFETY: the head lies at the base, any bit pattern is a valid one, and it stays mapped meanwhile.
        let head = unsafe { &*head.base.cast::<HeldHead>() };
        let interval = head.interval.load(Relaxed);
        if !head.is_known() || interval == 0 {
            return Err(Errno::INVAL);
        }
        if let Some(state) = self.state() {
            // It sampled before, into another file.
            state.store(0, Relaxed);
            (self.path, self.begun_by) = (Some(path), own_pid());
            return Ok(interval);
        }
        let page = map::reserve_writable(PAGE)?.start;
        // Kernels older than 4.14 copy the page to a child: `detach` is for those.
        // SAFETY: the page just mapped.
        let _ =
            unsafe { vellum_sys::raw::syscall(libc::SYS_madvise, [page.get(), PAGE, WIPE_ON_FORK, 0, 0, 0]) };
        self.state = page.ptr();
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
            // SAFETY: mapped by `take`, and not reached after this.
            let _ = unsafe { rustix::mm::munmap(self.base.cast(), PART_BYTES) };
            self.base = null_mut();
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
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let head = Mapped::of(&file, 0, HEAD_BYTES)?;
        // SAFETY: as in `begin`.
        let number = unsafe { &*head.base.cast::<HeldHead>() }.parts.fetch_add(1, Relaxed) as usize;
        if number >= PARTS {
            return Err(Errno::NOSPC);
        }
        let mapped = Mapped::of(&file, (HEAD_BYTES + number * PART_BYTES) as u64, PART_BYTES)?;
        populate(mapped.base as usize, STEP)?;
        self.base = mapped.into_base();
        (self.allocated, self.generation) = (STEP, self.generation + 1);
        let pid = own_pid();
        let head = self.head();
        let mut name = [0u8; 16];
        // SAFETY: the kernel writes at most 16 bytes, with a terminating zero.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        for (word, bytes) in head.name.iter().zip(name.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
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

    /// Room for an entry of `words` words, whose memory is there: the number of its first.
    fn room(&mut self, words: usize) -> Option<usize> {
        let at = self.head().used.load(Relaxed) as usize;
        if at + words > ENTRY_WORDS {
            return None;
        }
        let end = HEAD_BYTES + (at + words) * 8;
        if end > self.allocated {
            let to = vellum_sys::round_up(end, STEP).min(PART_BYTES);
            populate(self.base as usize + self.allocated, to - self.allocated).ok()?;
            self.allocated = to;
        }
        Some(at)
    }

    fn publish(&self, at: usize, kind: EntryKind, words: usize) {
        self.word(at).store(entry_head(kind, words), Relaxed);
        self.head().used.store((at + words) as u64, Release);
    }

    /// Enters a module. False if there is no room.
    pub(super) fn add_module(&mut self, words: [u64; 3], path: &[u8]) -> bool {
        let length = MODULE_WORDS + path.len().div_ceil(8);
        let Some(at) = self.room(length) else { return false };
        for (index, value) in words.into_iter().chain([path.len() as u64]).enumerate() {
            self.word(at + 1 + index).store(value, Relaxed);
        }
        self.letters(at + MODULE_WORDS, path.iter());
        self.publish(at, EntryKind::Module, length);
        true
    }

    /// Enters a line of an interpreted program: the number of its first word.
    pub(super) fn add_line(&mut self, line: u32, name: &[u8], file: &[u8]) -> Option<u32> {
        let length = LINE_WORDS + (name.len() + file.len()).div_ceil(8);
        let at = self.room(length)?;
        for (index, value) in [u64::from(line), name.len() as u64, file.len() as u64].into_iter().enumerate()
        {
            self.word(at + 1 + index).store(value, Relaxed);
        }
        self.letters(at + LINE_WORDS, name.iter().chain(file));
        self.publish(at, EntryKind::Line, length);
        Some(at as u32)
    }

    /// Writes letters from a word on.
    fn letters<'a>(&self, mut at: usize, letters: impl Iterator<Item = &'a u8>) {
        let mut letters = letters.copied().peekable();
        while letters.peek().is_some() {
            let word = core::array::from_fn(|_| letters.next().unwrap_or(0));
            self.word(at).store(u64::from_ne_bytes(word), Relaxed);
            at += 1;
        }
    }

    /// Enters a stack: the number of its first word.
    pub(super) fn add_stack(&mut self, hash: u64, frames: &[u64]) -> Option<u32> {
        let words = STACK_WORDS + frames.len();
        let at = self.room(words)?;
        let head = self.stack(at as u32);
        head.hash.store(hash, Relaxed);
        head.frames.store(frames.len() as u64, Relaxed);
        for (index, &frame) in frames.iter().enumerate() {
            self.word(at + STACK_WORDS + index).store(frame, Relaxed);
        }
        self.publish(at, EntryKind::Stack, words);
        Some(at as u32)
    }

    /// The stack whose entry begins with the word of number `at`.
    pub(super) fn stack(&self, at: u32) -> &StackHead {
        // SAFETY: a stack's entry, which lies within the part.
        unsafe { &*core::ptr::from_ref(self.word(at as usize)).cast::<StackHead>() }
    }
}

/// Has the memory of a range allocated. Kernels that cannot do that ahead (before 5.14) do it at each touch.
fn populate(start: usize, len: usize) -> rustix::io::Result<()> {
    match map::populate(Span::new(Addr::new(start), len)) {
        Err(Errno::INVAL) => Ok(()),
        outcome => outcome,
    }
}

struct Mapped {
    base: *mut u8,
    bytes: usize,
}

impl Mapped {
    fn of(file: &rustix::fd::OwnedFd, offset: u64, bytes: usize) -> rustix::io::Result<Mapped> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever the kernel likes.
        let base = unsafe { rustix::mm::mmap(null_mut(), bytes, access, MapFlags::SHARED, file, offset) }?;
        Ok(Mapped { base: base.cast(), bytes })
    }

    fn into_base(self) -> *mut u8 {
        let base = self.base;
        core::mem::forget(self);
        base
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value, which nobody reaches any more.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.bytes) };
    }
}
