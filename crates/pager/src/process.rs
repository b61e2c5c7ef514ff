//! The one pager of a process. It starts at the first request, if the user has limited the page frames.
//!
//! The large blocks of `malloc` and the collector's blocks are the pager's memory objects, and share its
//! frames. Many processes have neither, so no thread and no store is made before the first request
//! ([`ready`]). If the pager cannot be started, a message gives the reason, and nothing is paged.
//!
//! All statics of the crate are here. `malloc` and the collector use the pager of their process, and the C
//! library passes no argument to handlers of forks and signals.

use crate::pager::{Config, Pager, StartError};
use crate::store::FileStore;
use crate::units::{FRAMES_MAX, FRAMES_MIN, PAGE};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use rustix::io::Errno;
use vellum_sys::credentials::Change;
use vellum_sys::lock::Guarded;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Addr, Line};
use vellum_wire::Slot;

/// A process's pager, and how to start it.
struct Process {
    pager: Pager,
    /// Frames and store to start it with.
    settings: Guarded<Option<(u32, FileStore)>>,
    /// Finds a place for its span.
    placer: Guarded<Option<Placer>>,
    stage: AtomicU32,
    slot: AtomicPtr<Slot>,
}

static PROCESS: Process = Process {
    pager: Pager::new(),
    settings: Guarded::new(None),
    placer: Guarded::new(None),
    stage: AtomicU32::new(OFF),
    slot: AtomicPtr::new(core::ptr::null_mut()),
};

/// The pager of the process that forks, for the handler of SIGSEGV, which gets no argument.
pub(crate) static FORKS: AtomicPtr<Pager> = AtomicPtr::new(core::ptr::null_mut());

const OFF: u32 = 0;
/// The first request for the pager starts it.
const ASKED: u32 = 1;
const ON: u32 = 2;

/// Reserved address space for the span.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its first address.
    pub start: Addr,
    /// The pages there may be.
    pub pages: u32,
    /// The first pages, which are for units.
    pub near_pages: u32,
}

/// Finds reserved address space; `None` without any.
pub type Placer = fn() -> Option<Place>;

/// Has the span lie where `placer` finds a place.
pub fn place_by(placer: Placer) {
    *PROCESS.placer.lock() = Some(placer);
}

/// Pages memory objects from the first one on, in page frames of `bytes` bytes together, to a store at `path`
/// (see [`FileStore::at`]). False if there are too few frames or too many, or no such path can be.
pub fn page_to(path: &[u8], bytes: u64) -> bool {
    let frames =
        u32::try_from(bytes / PAGE as u64).ok().filter(|frames| (FRAMES_MIN..=FRAMES_MAX).contains(frames));
    let Some((frames, store)) = frames.zip(FileStore::at(path)) else { return false };
    *PROCESS.settings.lock() = Some((frames, store));
    PROCESS.stage.store(ASKED, Ordering::Release);
    true
}

/// The pager, started if it has not been; `None` if nothing is to be paged, or it cannot be started.
#[inline]
pub fn ready() -> Option<&'static Pager> {
    match PROCESS.stage.load(Ordering::Acquire) {
        OFF => None,
        ON => Some(&PROCESS.pager),
        _ => start().then_some(&PROCESS.pager),
    }
}

/// The pager, whether it has been started or not: a pager never started owns nothing.
#[inline]
pub fn pager() -> &'static Pager {
    &PROCESS.pager
}

/// Starts the pager, once, or prints why it cannot be started. Other requests wait meanwhile.
#[cold]
fn start() -> bool {
    let _undisturbed = Undisturbed::new();
    let mut settings = PROCESS.settings.lock();
    let Some((frames, store)) = settings.take() else {
        return PROCESS.stage.load(Ordering::Acquire) == ON;
    };
    let mut config = Config::of_frames(frames);
    if let Some(Place { start, pages, near_pages }) = (*PROCESS.placer.lock()).and_then(|placer| placer()) {
        let span_pages = config.span_pages.saturating_add(near_pages).min(pages);
        config = Config { place: Some(start), near_pages, span_pages, ..config };
    }
    if let Err(error) = PROCESS.pager.start(config, store) {
        PROCESS.stage.store(OFF, Ordering::Release);
        complain(error);
        return false;
    }
    // SAFETY: null, or a slot that lives for ever.
    if let Some(slot) = unsafe { PROCESS.slot.load(Ordering::Acquire).as_ref() } {
        PROCESS.pager.count_in(slot);
    }
    PROCESS.stage.store(ON, Ordering::Release);
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

/// True if there is a pager, or may soon be one.
pub fn is_paging() -> bool {
    PROCESS.stage.load(Ordering::Acquire) != OFF
}

/// Has the pager's threads repeat the calling thread's call. Its arguments' memory must not be paged.
pub fn follow(change: Change) {
    let _undisturbed = Undisturbed::new();
    // A start that has begun ends first: its threads may have been born before the call.
    let _settings = PROCESS.settings.lock();
    PROCESS.pager.follow(change);
}

/// Counts paging in `slot` from now on.
pub fn count_paging_in(slot: &'static Slot) {
    PROCESS.slot.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
    if PROCESS.stage.load(Ordering::Acquire) == ON {
        PROCESS.pager.count_in(slot);
    }
}

/// Before `fork`, last of all: no object comes or goes until it is over.
pub fn fork_prepare() {
    PROCESS.settings.raw().lock();
    PROCESS.pager.fork_prepare();
}

/// After `fork`, in the parent, first of all.
pub fn fork_parent() {
    PROCESS.pager.fork_parent();
    PROCESS.settings.raw().unlock();
}

/// After `fork`, in the child, first of all.
pub fn fork_child() {
    PROCESS.pager.fork_child();
    // The child's blocks are the page layer's from now on: nobody pages here.
    let _ = PROCESS.stage.compare_exchange(ON, OFF, Ordering::AcqRel, Ordering::Relaxed);
    PROCESS.settings.raw().reset_after_fork();
}
