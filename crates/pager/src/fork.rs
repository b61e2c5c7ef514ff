//! Children.
//!
//! A forked child gets copies of the mapped pages and of the pool, but nobody answers its faults: pages that
//! are in the store would read as zero there. So before `fork` returns in the child every page is put where
//! it belongs, from the pool or from the parent's store, while the parent waits; from then on the child's
//! objects are ordinary memory. That costs it memory, and the parent the time to read; who only wants to run
//! another program uses `posix_spawn` or `vfork`, whose child borrows the parent's memory, pager and all.
//!
//! The span is kept from children (`MADV_DONTFORK`) except while a fork is prepared for. One made by a system
//! call behind our back finds no memory there and is killed at its first touch, rather than see zeros. So
//! does one whose view cannot be made, which is said.

use crate::inner::Inner;
use crate::marks::Marks;
use crate::pager::{A_WHILE_NS, Pager, phase};
use crate::record::{State, flag};
use crate::store::Backing;
use crate::trouble;
use crate::units::{PAGE, PageNo};
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use rustix::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Line, map, raw, thread};

/// No descriptor.
pub(crate) const NONE: i32 = -1;

/// What lies ready while a process forks.
#[derive(Debug)]
pub(crate) struct Forking {
    /// The store, as the child will read it.
    store: i32,
    /// Both ends of a pipe that the parent reads: it ends when the child has its view, or is dead.
    ends: [i32; 2],
    undisturbed: Option<Undisturbed>,
    /// The pages that are kept for the thread that forks.
    kept: [Option<usize>; 2],
}

impl Forking {
    pub(crate) const fn not() -> Forking {
        Forking { store: NONE, ends: [NONE; 2], undisturbed: None, kept: [None; 2] }
    }
}

fn close(file: &mut i32) {
    if *file != NONE {
        // SAFETY: opened by `prepare` and known to nobody else.
        let _ = unsafe { raw::syscall(libc::SYS_close, [*file as usize, 0, 0, 0, 0, 0]) };
        *file = NONE;
    }
}

impl<B: Backing + Send> Pager<B> {
    /// Whether there is anything to do about a fork.
    fn concerns_forks(&self) -> bool {
        self.phase.load(Acquire) == phase::SERVING && !self.is_child()
    }

    pub(crate) fn is_child(&self) -> bool {
        self.is_child.load(Relaxed) != 0
    }

    /// Before a fork, in the parent, by the thread that forks: lets nothing change until
    /// [`Pager::fork_parent`].
    pub fn fork_prepare(&self) {
        self.fork_prepare_with(|_| {});
    }

    /// The same, with pages in memory that the C library needs before [`Pager::fork_child`] is called, where
    /// nobody brings them: `look` tells the function it is called with of every address that it is going to
    /// read, or that will be needed, and goes no further if that answers `false`: the address is not
    /// there. It is called again then.
    pub fn fork_prepare_with(&self, look: impl Fn(&mut dyn FnMut(*const u8) -> bool)) {
        /// How often pages may be gone again before the child takes its chance.
        const TRIES: u32 = 1000;
        if !self.concerns_forks() {
            return;
        }
        let undisturbed = Undisturbed::new();
        self.callers.lock();
        let mut tries = 0;
        loop {
            let mut inner = self.enter_for_fork();
            let mut missing = None;
            look(&mut |address| {
                let is_there = self.is_there(&inner, address);
                if !is_there {
                    missing = Some(address);
                }
                is_there
            });
            if let Some(address) = missing
                && tries < TRIES
            {
                tries += 1;
                drop(inner);
                // SAFETY: an address that `look` is going to read; the read returns when its page is there.
                unsafe { address.read_volatile() };
                continue;
            }
            self.submit(&mut inner);
            if inner.queue.pending() == 0 && inner.clusters.is_empty() {
                match self.ready_child(&inner) {
                    Ok((store, [read, write])) => {
                        inner.forking.store = store.into_raw_fd();
                        inner.forking.ends = [read.into_raw_fd(), write.into_raw_fd()];
                        self.keep_from_children(false);
                    }
                    Err(errno) => {
                        let mut line = Line::new();
                        line.text("vellum: fork: the child gets no paged memory, as its copy of the store cannot be opened (errno ");
                        line.decimal(errno.raw_os_error().unsigned_abs().into());
                        line.text(
                            "); it will be killed if it touches any. Use posix_spawn, or more descriptors\n",
                        )
                        .write();
                    }
                }
                inner.forking.undisturbed = Some(undisturbed);
                let which = inner.persist();
                // SAFETY: the lock is held, by this thread, until the fork is over.
                unsafe { self.inner.assume_held() }.forking.kept = which;
                return;
            }
            let seen = self.written.load(Acquire);
            drop(inner);
            thread::wait(&self.written, seen, A_WHILE_NS);
        }
    }

    /// Whether a touch of `address` needs nobody's help.
    fn is_there(&self, inner: &Inner, address: *const u8) -> bool {
        if !self.owns(address) {
            return true;
        }
        let index = (address as usize - inner.base) / PAGE;
        inner.records[index].state() == State::Mapped
    }

    /// Opens the store, as the fault-handling thread has it open, in this thread's descriptors; and a pipe.
    fn ready_child(&self, _inner: &Inner) -> Result<(OwnedFd, [OwnedFd; 2]), Errno> {
        let number = self.store().descriptor().ok_or(Errno::BADF)?;
        let mut path = Line::new();
        path.text("/proc/self/task/").decimal(self.threads[0].load(Relaxed).into());
        path.text("/fd/").decimal(number.unsigned_abs().into()).text("\0");
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
        crate::exchange::has_forked();
        // SAFETY: the lock has been held since `fork_prepare`, by this thread.
        let inner = unsafe { self.inner.assume_held() };
        let mut forking = core::mem::replace(&mut inner.forking, Forking::not());
        close(&mut forking.store);
        close(&mut forking.ends[1]);
        if forking.ends[0] != NONE {
            // SAFETY: open until the next line.
            let end = unsafe { BorrowedFd::borrow_raw(forking.ends[0]) };
            while rustix::io::read(end, &mut [0u8; 1]) == Err(Errno::INTR) {}
            close(&mut forking.ends[0]);
            self.keep_from_children(true);
        }
        self.leave_after_fork(forking.kept);
        self.callers.unlock();
    }

    /// After a fork, in the child.
    pub fn fork_child(&self) {
        if !self.concerns_forks() {
            return;
        }
        self.is_child.store(1, Release);
        self.show_nobody();
        // SAFETY: the lock has been held since `fork_prepare`, by the thread that this is a copy of, and
        // there is no other.
        let inner = unsafe { self.inner.assume_held() };
        let mut forking = core::mem::replace(&mut inner.forking, Forking::not());
        if forking.store != NONE {
            give_everything(inner, self.marks(), forking.store);
        }
        close(&mut forking.store);
        forking.ends.iter_mut().for_each(close);
        for tid in &self.threads {
            tid.store(0, Relaxed);
        }
        self.leave_after_fork(forking.kept);
        self.callers.reset_after_fork();
        drop(forking);
    }
}

/// Puts every page that is needed where it belongs.
fn give_everything(inner: &mut Inner, marks: Marks<'_>, store: i32) {
    for page in (0..inner.high).map(PageNo) {
        let to = inner.address(page);
        if marks.has(page.0) {
            // What nobody needs, above all what is no object's, reads as zero here: new objects count on it.
            if inner.record(page).state() == State::Mapped {
                // SAFETY: its contents are not needed.
                let _ = unsafe { map::flush(to, PAGE) };
            }
            continue;
        }
        // What is to be dropped when it has been read reads as zero here already.
        if inner.record(page).flags & flag::DROPPED != 0 {
            continue;
        }
        match inner.record(page).state() {
            State::Held | State::Writing | State::Arriving => {
                let place = inner.record(page).place();
                let from = inner.pool.address(place);
                // SAFETY: the frame holds the page, and the page is ordinary memory of this process now, and
                // empty.
                unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, PAGE) };
            }
            State::Stored | State::Reading if inner.tier.has(page) => {
                // SAFETY: the page is ordinary memory of this process now, and nobody writes there.
                if !unsafe { inner.unpack(page, to) } {
                    trouble::spoilt(to);
                }
            }
            State::Stored | State::Reading => {
                let slot = inner.record(page).slot().map_or(0, |slot| slot.0);
                read_page(store, slot, to);
                // SAFETY: read a moment ago, and nobody writes there.
                if unsafe { inner.key.sum(to as *const u8) } != inner.sums[page.index()] {
                    trouble::corrupt(to, slot);
                }
            }
            State::Fresh | State::Mapped | State::Vague => {}
        }
    }
    inner.tier.flush();
    // SAFETY: what the pool held has been copied.
    let _ = unsafe { map::flush(inner.pool.start(), inner.pool.bytes()) };
}

fn read_page(store: i32, slot: u32, to: usize) {
    let mut done = 0;
    while done < PAGE {
        let args = [store as usize, to + done, PAGE - done, slot as usize * PAGE + done, 0, 0];
        // SAFETY: the page is this process's own.
        match unsafe { raw::syscall(libc::SYS_pread64, args) } {
            Ok(0) => trouble::stop("cannot read a page for a forked child: the store has ended", Errno::IO),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => trouble::stop("cannot read a page for a forked child", errno),
        }
    }
}
