//! The paged memory of forked children.
//!
//! A mapping of the store is shared, so a child must not inherit it: no step (2 MiB of the mapping) is
//! inherited (`MADV_DONTFORK`). Before `fork` returns in the child, the child makes its *view*: it maps
//! ordinary memory at each step and reads the needed pages into it, while the parent waits. From then on the
//! child's objects are ordinary memory. This costs the child memory, and the parent the time to read. A child
//! of `vfork` or `posix_spawn` borrows the parent's memory and pager instead.
//!
//! The C library writes to memory before the child's fork handlers run: to the locks of open files, and to
//! the values of threads that the child lacks. Therefore the view is made at the first fault in the span, by
//! a handler of SIGSEGV that is set while a process forks. Otherwise [`Pager::fork_child`] makes it.
//!
//! Other threads of the parent go on writing meanwhile, so the child may see a part of their writes. A child
//! made by a direct system call, without the fork handlers, has no memory in the span and is killed at its
//! first touch. A child whose view cannot be made is also killed, with a message.

use super::{Pager, phase};
use crate::process::FORKS;
use crate::trouble;
use crate::units::{PAGE, PageNo, STEP};
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use rustix::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Line, Span, map, raw, segv};

const NONE: i32 = -1;

/// The code of a fault where nothing is mapped.
const SEGV_MAPERR: c_int = 1;

/// The state that is prepared while a process forks.
pub(super) struct Forking {
    /// The store, as the child will read it.
    store: i32,
    /// Both ends of a pipe that the parent reads: it ends when the child has its view, or is dead.
    ends: [i32; 2],
    undisturbed: Option<Undisturbed>,
    handler: Option<libc::sigaction>,
}

impl Forking {
    pub(super) const fn not() -> Forking {
        Forking { store: NONE, ends: [NONE; 2], undisturbed: None, handler: None }
    }

    /// Sets the handler, and lets SIGSEGV through, which [`Undisturbed`] holds off.
    fn watch(&mut self, pager: &Pager) {
        FORKS.store(core::ptr::from_ref(pager).cast_mut(), Release);
        // SAFETY: zeros are a valid action.
        let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        self.handler = Some(segv::exchange(&action));
        let set = 1u64 << (libc::SIGSEGV - 1);
        let args = [libc::SIG_UNBLOCK as usize, &raw const set as usize, 0, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel reads a set of eight bytes that lives here.
        let _ = unsafe { raw::syscall(libc::SYS_rt_sigprocmask, args) };
    }

    fn put_back(&self) {
        if let Some(handler) = &self.handler {
            put_back(handler);
        }
    }

    fn watch_no_more(&self) {
        self.put_back();
        FORKS.store(core::ptr::null_mut(), Release);
    }
}

/// Restores the action before [`on_fault`], unless another thread has set one meanwhile.
fn put_back(action: &libc::sigaction) {
    let was = segv::exchange(action);
    if was.sa_sigaction != on_fault as *const () as usize {
        segv::exchange(&was);
    }
}

/// SIGSEGV during a fork: makes a child's view. Other faults happen again, under the old handler.
///
/// Only a child can miss a page of a step that the parent has mapped.
extern "C" fn on_fault(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: null, or a pager that lives for ever.
    let Some(pager) = (unsafe { FORKS.load(Acquire).as_ref() }) else {
        // SAFETY: zeros are the default action.
        put_back(&unsafe { MaybeUninit::zeroed().assume_init() });
        return;
    };
    // SAFETY: the forking thread holds the lock of `inner`, and only reads these while the handler is set.
    let forking = unsafe { &pager.inner.assume_held().forking };
    // SAFETY: the kernel passed it, for a fault or for a signal that was sent, whose address is none of ours.
    let (address, code) = unsafe { ((*info).si_addr(), (*info).si_code) };
    if code == SEGV_MAPERR && pager.is_mapped(address.cast()) && !pager.is_child() {
        pager.give_view();
    } else {
        forking.put_back();
    }
}

fn close(file: &mut i32) {
    if *file != NONE {
        // SAFETY: opened by `prepare` and known to nobody else.
        let _ = unsafe { raw::syscall(libc::SYS_close, [*file as usize, 0, 0, 0, 0, 0]) };
        *file = NONE;
    }
}

/// True if the calling thread's stack is paged: then the child has none to run on.
fn is_on(pager: &Pager) -> bool {
    let here = 0u8;
    pager.owns(&raw const here)
}

impl Pager {
    /// True if `address` lies in a step that is mapped in the paging process.
    fn is_mapped(&self, address: *const u8) -> bool {
        let place = |page: PageNo| self.tables().steps[page.index() / STEP as usize].load(Acquire);
        self.page_around(address).is_some_and(|page| place(page) != 0)
    }

    /// True if a fork needs preparation.
    fn concerns_forks(&self) -> bool {
        self.phase.load(Acquire) == phase::SERVING && !self.is_child()
    }

    /// Before a fork, by the thread that forks: lets no objects come or go until [`Pager::fork_parent`].
    pub fn fork_prepare(&self) {
        if !self.concerns_forks() {
            return;
        }
        if is_on(self) {
            Line::new()
                .text("vellum: fork: the child will be killed, as the thread that forks has a paged stack. ")
                .text("Fork from another thread, or use posix_spawn\n")
                .write();
        }
        let undisturbed = Undisturbed::new();
        self.post.callers.lock();
        self.inner.raw().lock();
        // SAFETY: the lock is held, by this thread, until the fork is over.
        let inner = unsafe { self.inner.assume_held() };
        match self.ready_child() {
            Ok((store, [read, write])) => {
                inner.forking.store = store.into_raw_fd();
                inner.forking.ends = [read.into_raw_fd(), write.into_raw_fd()];
            }
            Err(errno) => {
                let mut line = Line::new();
                line.text(
                    "vellum: fork: the child gets no paged memory, as the store cannot be opened (errno ",
                );
                line.decimal(errno.raw_os_error().unsigned_abs().into());
                line.text("); it will be killed if it touches any. Use posix_spawn, or more descriptors\n")
                    .write();
            }
        }
        inner.forking.undisturbed = Some(undisturbed);
        inner.forking.watch(self);
    }

    /// Opens the store, as the evicting thread has it open, in this thread's descriptors; and a pipe.
    fn ready_child(&self) -> Result<(OwnedFd, [OwnedFd; 2]), Errno> {
        let mut path = Line::new();
        path.text("/proc/self/task/").decimal(self.threads[0].load(Relaxed).into());
        path.text("/fd/").decimal(self.store().descriptor().unsigned_abs().into()).text("\0");
        let path = CStr::from_bytes_with_nul(path.bytes()).map_err(|_| Errno::INVAL)?;
        let store = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok((store, [read, write]))
    }

    /// After a fork, or after one has failed, in the parent.
    pub fn fork_parent(&self) {
        if !self.concerns_forks() {
            return;
        }
        // SAFETY: the lock has been held since `fork_prepare`, by this thread.
        let inner = unsafe { self.inner.assume_held() };
        inner.forking.watch_no_more();
        let mut forking = core::mem::replace(&mut inner.forking, Forking::not());
        close(&mut forking.store);
        close(&mut forking.ends[1]);
        if forking.ends[0] != NONE {
            // SAFETY: open until the next line.
            let end = unsafe { BorrowedFd::borrow_raw(forking.ends[0]) };
            while rustix::io::read(end, &mut [0u8; 1]) == Err(Errno::INTR) {}
            close(&mut forking.ends[0]);
        }
        self.inner.raw().unlock();
        self.post.callers.unlock();
    }

    /// After a fork, in the child.
    pub fn fork_child(&self) {
        if self.phase.load(Acquire) != phase::SERVING || FORKS.load(Acquire).is_null() {
            return;
        }
        if !self.is_child() {
            self.give_view();
        }
        // SAFETY: held since `fork_prepare`, by the original of this only thread.
        let inner = unsafe { self.inner.assume_held() };
        inner.forking.watch_no_more();
        let mut forking = core::mem::replace(&mut inner.forking, Forking::not());
        close(&mut forking.store);
        forking.ends.iter_mut().for_each(close);
        for tid in &self.threads {
            tid.store(0, Relaxed);
        }
        self.inner.raw().reset_after_fork();
        self.post.callers.reset_after_fork();
        drop(forking);
    }

    fn give_view(&self) {
        self.is_child.store(true, Release);
        self.slot.store(core::ptr::null_mut(), Release);
        // SAFETY: as in `fork_child`.
        let store = unsafe { self.inner.assume_held() }.forking.store;
        if store != NONE {
            self.give_everything(store);
        }
    }

    /// Gives the child ordinary memory at each step, with the contents of needed pages.
    fn give_everything(&self, store: i32) {
        let tables = self.tables();
        for (step, place) in tables.steps.iter().enumerate() {
            let Some(place) = place.load(Relaxed).checked_sub(1) else { continue };
            let first = step as u32 * STEP;
            // SAFETY: nothing is mapped at the step in a child.
            if let Err(errno) = unsafe { map::renew(self.range(first, first + STEP)) } {
                trouble::stop("cannot give a forked child memory", errno);
            }
            for (from, to) in tables.needed().runs(first, first + STEP, true) {
                let at = place * STEP + (from - first);
                self.read_run(store, at, self.range(from, to));
            }
            // What nobody needs reads as zero here: no page of it was written.
            for (from, to) in tables.needed().runs(first, first + STEP, false) {
                tables.used().clear(from, to);
            }
            let offset = u64::from(place * STEP) * PAGE as u64;
            let len = core::num::NonZero::new(u64::from(STEP) * PAGE as u64);
            // SAFETY: open until this function's caller closes it.
            let file = unsafe { BorrowedFd::borrow_raw(store) };
            // Pages that were read for the child alone leave memory. A refusal changes nothing.
            let _ = rustix::fs::fadvise(file, offset, len, rustix::fs::Advice::DontNeed);
        }
    }

    /// Fills `to` from page `at` of the store on, skipping pages without contents.
    fn read_run(&self, store: i32, at: u32, to: Span) {
        // SAFETY: open until `fork_child` closes it.
        let file = unsafe { BorrowedFd::borrow_raw(store) };
        let start = u64::from(at) * PAGE as u64;
        let end = start + to.bytes as u64;
        let mut from = start;
        while from < end {
            let data = || match rustix::fs::seek(file, SeekFrom::Data(from)) {
                Ok(data) => data.min(end),
                // Nothing was ever written from there on.
                Err(Errno::NXIO) => end,
                Err(_) => from,
            };
            // Twice: a file system looks at its records, and then in memory. A page that is first written and
            // dropped between the two is found in neither, but in the records the next time.
            from = data().min(data());
            let hole = rustix::fs::seek(file, SeekFrom::Hole(from)).unwrap_or(end).min(end);
            while from < hole {
                let (into, len) = ((to.start + (from - start) as usize).get(), (hole - from) as usize);
                let args = [store as usize, into, len, from as usize, 0, 0];
                // SAFETY: the memory is this process's own, mapped a moment ago.
                match unsafe { raw::syscall(libc::SYS_pread64, args) } {
                    Ok(0) => {
                        trouble::stop("cannot read a page for a forked child: the store has ended", Errno::IO)
                    }
                    Ok(count) => from += count as u64,
                    Err(Errno::INTR) => {}
                    Err(errno) => trouble::stop("cannot read a page for a forked child", errno),
                }
            }
        }
    }
}
