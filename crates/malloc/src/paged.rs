//! Big blocks out of memory objects of Vellum's own pager, when the user has limited the page frames they may have.
//!
//! From [`PAGED_MIN`] on every block that would be an extent of the page layer is an object of its own instead. Objects lie outside the page
//! layer's span, so that the fast paths know nothing of them: a block that is nobody's there is looked for here (`foreign`). What the page layer
//! keeps for itself, small blocks, and the program's own mappings are not paged.

use crate::alloc::out_of_memory;
use crate::misuse;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use vellum_pager::{Config, FRAMES_MAX, FRAMES_MIN, FileStore, PAGE, Pager, StartError};
use vellum_pages::Misuse;
use vellum_sys::Line;
use vellum_sys::fault::Reach;
use vellum_sys::lock::Guarded;
use vellum_wire::Slot;

/// The smallest block that is paged: what is smaller moves in and out of threads' magazines, and would be cut off from its neighbours.
pub const PAGED_MIN: usize = (256 << 10) + 1;

static PAGER: Pager<FileStore> = Pager::new();
/// What to start it with.
static WANTED: Guarded<Option<(u32, FileStore)>> = Guarded::new(None);
static STAGE: AtomicU32 = AtomicU32::new(OFF);
static SLOT: AtomicPtr<Slot> = AtomicPtr::new(core::ptr::null_mut());

/// Nothing is paged.
const OFF: u32 = 0;
/// The first big block starts the pager: most processes of a job never have one.
const ASKED: u32 = 1;
const ON: u32 = 2;

/// Not 0 if system calls must not be handed paged memory as it is: for the assembly that looks before each.
pub static GUARDED: AtomicU32 = AtomicU32::new(0);

/// Has big blocks paged from the first one on, in page frames of `bytes` bytes together, to a store at `path` ([`FileStore::at`] says what that
/// may be). False if there are too few frames or too many, or no such path can be.
pub fn page_to(path: &[u8], bytes: u64) -> bool {
    let frames =
        u32::try_from(bytes / PAGE as u64).ok().filter(|frames| (FRAMES_MIN..=FRAMES_MAX).contains(frames));
    let Some((frames, store)) = frames.zip(FileStore::at(path)) else { return false };
    *WANTED.lock() = Some((frames, store));
    STAGE.store(ASKED, Ordering::Release);
    true
}

/// Starts the pager, once; says so if it cannot be. What is asked for meanwhile waits.
#[cold]
fn start() -> bool {
    let _undisturbed = vellum_sys::thread::Undisturbed::new();
    let mut wanted = WANTED.lock();
    let Some((frames, store)) = wanted.take() else {
        return STAGE.load(Ordering::Acquire) == ON;
    };
    if let Err(error) = PAGER.start(Config::of_frames(frames), store) {
        STAGE.store(OFF, Ordering::Release);
        complain(error);
        return false;
    }
    GUARDED.store(u32::from(PAGER.reach() != Some(Reach::Kernel)), Ordering::Release);
    // SAFETY: null, or a slot that lives for ever.
    if let Some(slot) = unsafe { SLOT.load(Ordering::Acquire).as_ref() } {
        PAGER.count_in(slot);
    }
    STAGE.store(ON, Ordering::Release);
    true
}

fn complain(error: StartError) {
    let (what, errno, cure) = match error {
        StartError::Store(errno) => (
            "the store cannot be opened",
            errno,
            "name a directory, or a file that does not exist yet, with --store",
        ),
        StartError::Faults(errno) => {
            ("userfaultfd is refused", errno, "the kernel, or a filter on system calls, must allow it")
        }
        StartError::Memory(errno) => ("address space is refused", errno, "raise the limit on it (ulimit -v)"),
        StartError::Thread(errno) => {
            ("no thread can be started", errno, "raise the limit on them (ulimit -u)")
        }
        StartError::Frames(_) | StartError::Again => return,
    };
    let mut line = Line::new();
    line.text("vellum: big blocks are not paged, and take as much memory as they want: ").text(what);
    line.text(" (errno ")
        .decimal(errno.raw_os_error().unsigned_abs().into())
        .text("); ")
        .text(cure)
        .text("\n")
        .write();
}

/// Whether `address` lies where paged blocks are.
#[inline]
pub fn owns(address: *const u8) -> bool {
    PAGER.owns(address)
}

/// Counts paging in `slot` from now on.
pub fn count_paging_in(slot: &'static Slot) {
    SLOT.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
    if STAGE.load(Ordering::Acquire) == ON {
        PAGER.count_in(slot);
    }
}

/// Before `fork`, last of all: the pager stands still.
pub fn fork_prepare() {
    WANTED.raw().lock();
    PAGER.fork_prepare();
}

/// After `fork`, in the parent, first of all.
pub fn fork_parent() {
    PAGER.fork_parent();
    WANTED.raw().unlock();
}

/// After `fork`, in the child, first of all.
pub fn fork_child() {
    PAGER.fork_child();
    // The child's blocks from now on are the page layer's: nobody pages here, and where its view could not be made there is not even memory.
    let _ = STAGE.compare_exchange(ON, OFF, Ordering::AcqRel, Ordering::Relaxed);
    GUARDED.store(0, Ordering::Release);
    WANTED.raw().reset_after_fork();
}

/// Whether a block of `bytes` bytes is paged.
#[inline]
pub(crate) fn wants(bytes: usize) -> bool {
    bytes >= PAGED_MIN
        && match STAGE.load(Ordering::Acquire) {
            OFF => false,
            ON => true,
            _ => start(),
        }
}

/// A block of at least `bytes` bytes; null (and `ENOMEM`) if there is no room in the store.
pub(crate) fn alloc(bytes: usize, align: usize, zero: bool) -> *mut u8 {
    PAGER.create(bytes, align.max(PAGE), zero).map_or_else(|_| out_of_memory(), NonNull::as_ptr)
}

/// Why `address`, which lies where paged blocks are, is none.
fn wrong(address: *mut u8) -> Misuse {
    match (address as usize).is_multiple_of(PAGE) {
        true => Misuse::AlreadyFree,
        false => Misuse::NotOurs,
    }
}

/// Frees a paged block, or ends the process if it is none.
///
/// # Safety
/// Nobody uses the block any more.
pub(crate) unsafe fn free(address: *mut u8) {
    // SAFETY: by this function's condition.
    let freed = NonNull::new(address).map(|start| unsafe { PAGER.destroy(start) });
    if !matches!(freed, Some(Ok(_))) {
        misuse::refuse("free", address, wrong(address));
    }
}

/// The bytes that may be used of a paged block, or the end of the process if it is none.
pub(crate) fn usable_size(function: &str, address: *mut u8) -> usize {
    match PAGER.len(address) {
        Some(bytes) => bytes,
        None => misuse::refuse(function, address, wrong(address)),
    }
}

/// Resizes a paged block; null (and `ENOMEM`) leaves it as it was.
///
/// # Safety
/// The block is in use; unless the result is null, only the result may be used afterwards.
pub(crate) unsafe fn realloc(address: *mut u8, bytes: usize) -> *mut u8 {
    let old = usable_size("realloc", address);
    if bytes == 0 {
        // SAFETY: the block is given up, as the C library does it.
        unsafe { free(address) };
        return core::ptr::null_mut();
    }
    if bytes >= PAGED_MIN
        && let Some(start) = NonNull::new(address)
        // SAFETY: what is cut off is given up.
        && unsafe { PAGER.resize(start, bytes) }.is_ok()
    {
        return address;
    }
    let new = crate::malloc(bytes);
    if !new.is_null() {
        // SAFETY: two different blocks, of at least the shorter length; the old one is given up then.
        unsafe {
            new.copy_from_nonoverlapping(address, old.min(bytes));
            free(address);
        }
    }
    new
}
