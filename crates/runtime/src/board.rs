//! Takes the process's slot on the board: the shared file of processes' counters that `vellum run` reads.

use crate::knobs::variable;
use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use vellum_malloc::Line;
use vellum_pages::Pages;
use vellum_wire::{Attach, Board, ExportedCounters, Slot};

/// The exported symbol of this process's counters: see [`ExportedCounters`].
#[unsafe(no_mangle)]
#[used]
static vellum_counters: ExportedCounters = ExportedCounters::new();

static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Maps the board that the environment names, if any, and takes a slot.
pub(crate) fn join(attach: Attach) {
    if let Some(path) = variable(c"VELLUM_BOARD") {
        match map(path) {
            Ok((base, len)) => {
                BASE.store(base, Relaxed);
                LEN.store(len, Relaxed);
            }
            Err(errno) if is_elsewhere(errno) => {}
            Err(_) => {
                let mut line = Line::new();
                line.text("vellum: VELLUM_BOARD=").raw(path.to_bytes());
                line.text(" cannot be opened as a board; this process is not counted\n").write();
            }
        }
    }
    attach_slot(attach, Pages::attach_slot);
}

/// True if there is a board, which keeps the process's counters after its end.
pub(crate) fn is_there() -> bool {
    !BASE.load(Relaxed).is_null()
}

/// True if the board is inaccessible without an error of the user, so that no message is printed: another
/// user's (`su`), in another file system view (`bwrap`, `chroot`, a container), or already removed.
pub(crate) fn is_elsewhere(errno: Errno) -> bool {
    [Errno::ACCESS, Errno::PERM, Errno::NOENT, Errno::NOTDIR, Errno::ROFS].contains(&errno)
}

/// Takes a new slot for a forked child, which used its parent's so far, and counts from zero.
pub(crate) fn attach_slot_in_child(attach: Attach) {
    attach_slot(attach, Pages::attach_new_slot);
}

fn attach_slot(attach: Attach, sit: fn(&Pages, &'static Slot)) {
    vellum_counters.point_to(Pages::global().slot());
    let base = BASE.load(Relaxed);
    if base.is_null() {
        return;
    }
    // SAFETY: `map` checked the mapping, which exists until the process ends.
    let Some(slot) = unsafe { Board::open(base, LEN.load(Relaxed)) }.and_then(|board| board.claim()) else {
        return;
    };
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes, with a terminating zero.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    slot.set_comm(name.split(|&byte| byte == 0).next().unwrap_or(&[]));
    slot.since_ns.store(vellum_sys::clock::now_ns(), Relaxed);
    slot.attach.store(attach as u32, Relaxed);
    // SAFETY: getpid has no preconditions.
    slot.pid.store(unsafe { libc::getpid() } as u32, Relaxed);
    sit(Pages::global(), slot);
    vellum_malloc::paged::count_paging_in(slot);
    vellum_counters.point_to(slot);
}

fn map(path: &CStr) -> rustix::io::Result<(*mut u8, usize)> {
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let len = rustix::fs::fstat(&file)?.st_size as usize;
    // SAFETY: without MAP_FIXED the kernel maps only unused addresses.
    let base = unsafe {
        rustix::mm::mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
    }?;
    // SAFETY: the board was just mapped with `len` bytes at a page boundary.
    match unsafe { Board::open(base.cast(), len) } {
        Some(_) => Ok((base.cast(), len)),
        None => Err(rustix::io::Errno::INVAL),
    }
}
