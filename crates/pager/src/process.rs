//! The pager of a process: one, started when it is first needed, if the user has limited the page frames.
//!
//! `malloc`'s big blocks and the collector's blocks are its memory objects, and share its frames. Most
//! processes of a job have neither, so nothing is started, and no store made, before somebody asks for one
//! ([`ready`]). If it cannot be started, one line says why and what to do, and nothing is paged.

use crate::pager::{Config, Pager, StartError};
use crate::store::FileStore;
use crate::units::{FRAMES_MAX, FRAMES_MIN, PAGE};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use rustix::io::Errno;
use vellum_sys::Line;
use vellum_sys::credentials::Change;
use vellum_sys::lock::Guarded;
use vellum_sys::thread::Undisturbed;
use vellum_wire::Slot;

static PAGER: Pager = Pager::new();
/// What to start it with.
static WANTED: Guarded<Option<(u32, FileStore)>> = Guarded::new(None);
/// Who knows a place for its span.
static PLACER: Guarded<Option<Placer>> = Guarded::new(None);
static STAGE: AtomicU32 = AtomicU32::new(OFF);
static SLOT: AtomicPtr<Slot> = AtomicPtr::new(core::ptr::null_mut());

/// Nothing is paged.
const OFF: u32 = 0;
/// The first who needs the pager starts it.
const ASKED: u32 = 1;
const ON: u32 = 2;

/// Finds reserved address space for the span: the first address, how many pages there may be, and how many of
/// them are for units. `None` if there is no such place.
pub type Placer = fn() -> Option<(usize, u32, u32)>;

/// Has the span lie where `placer` says.
pub fn place_by(placer: Placer) {
    *PLACER.lock() = Some(placer);
}

/// Has memory objects paged from the first one on, in page frames of `bytes` bytes together, to a store at
/// `path` ([`FileStore::at`] says what that may be). False if there are too few frames or too many, or no
/// such path can be.
pub fn page_to(path: &[u8], bytes: u64) -> bool {
    let frames =
        u32::try_from(bytes / PAGE as u64).ok().filter(|frames| (FRAMES_MIN..=FRAMES_MAX).contains(frames));
    let Some((frames, store)) = frames.zip(FileStore::at(path)) else { return false };
    *WANTED.lock() = Some((frames, store));
    STAGE.store(ASKED, Ordering::Release);
    true
}

/// The pager, started if it has not been; `None` if nothing is to be paged, or it cannot be started.
#[inline]
pub fn ready() -> Option<&'static Pager> {
    match STAGE.load(Ordering::Acquire) {
        OFF => None,
        ON => Some(&PAGER),
        _ => start().then_some(&PAGER),
    }
}

/// The pager, whether it has been started or not: a pager never started owns nothing.
#[inline]
pub fn pager() -> &'static Pager {
    &PAGER
}

/// Starts the pager, once; says so if it cannot be. Requests made meanwhile wait.
#[cold]
fn start() -> bool {
    let _undisturbed = Undisturbed::new();
    let mut wanted = WANTED.lock();
    let Some((frames, store)) = wanted.take() else {
        return STAGE.load(Ordering::Acquire) == ON;
    };
    let mut config = Config::of_frames(frames);
    if let Some((place, most, near)) = (*PLACER.lock()).and_then(|placer| placer()) {
        let span_pages = config.span_pages.saturating_add(near).min(most);
        config = Config { place: Some(place), near_pages: near, span_pages, ..config };
    }
    if let Err(error) = PAGER.start(config, store) {
        STAGE.store(OFF, Ordering::Release);
        complain(error);
        return false;
    }
    // SAFETY: null, or a slot that lives for ever.
    if let Some(slot) = unsafe { SLOT.load(Ordering::Acquire).as_ref() } {
        PAGER.count_in(slot);
    }
    STAGE.store(ON, Ordering::Release);
    true
}

fn complain(error: StartError) {
    let (what, errno, cure) = match error {
        StartError::Store(errno @ Errno::OPNOTSUPP) => (
            "the store's file system keeps files in memory or cannot set room aside",
            errno,
            "name a directory on a disk with --store",
        ),
        StartError::Store(errno) => (
            "the store cannot be opened",
            errno,
            "name a directory, or a file that does not exist yet, with --store",
        ),
        StartError::Memory(errno) => ("address space is refused", errno, "raise the limit on it (ulimit -v)"),
        StartError::Thread(errno) => {
            ("no thread can be started", errno, "raise the limit on them (ulimit -u)")
        }
        StartError::Frames(_) | StartError::Again => return,
    };
    let mut line = Line::new();
    line.text("vellum: nothing is paged, and memory is not limited: ").text(what);
    line.text(" (errno ")
        .decimal(errno.raw_os_error().unsigned_abs().into())
        .text("); ")
        .text(cure)
        .text("\n")
        .write();
}

/// Whether there is a pager, or there may soon be.
pub fn is_paging() -> bool {
    STAGE.load(Ordering::Acquire) != OFF
}

/// Has the pager's threads make the call that the calling thread has just made. What its arguments point to
/// must not be paged.
pub fn follow(change: Change) {
    let _undisturbed = Undisturbed::new();
    // One that is being started is waited for: its threads may have been born before the call.
    let _wanted = WANTED.lock();
    PAGER.follow(change);
}

/// Counts paging in `slot` from now on.
pub fn count_paging_in(slot: &'static Slot) {
    SLOT.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
    if STAGE.load(Ordering::Acquire) == ON {
        PAGER.count_in(slot);
    }
}

/// Before `fork`, last of all: no object comes or goes until it is over.
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
    // The child's blocks from now on are the page layer's: nobody pages here, and where its view could not be
    // made there is not even memory.
    let _ = STAGE.compare_exchange(ON, OFF, Ordering::AcqRel, Ordering::Relaxed);
    WANTED.raw().reset_after_fork();
}
