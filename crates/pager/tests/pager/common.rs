//! Helpers for tests: pagers, objects with a value on each page, children, time limits, random numbers.

use rustix::io::Errno;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;
use vellum_pager::{Config, FileStore, PAGE, Pager, StartError};
use vellum_random::Rng;
use vellum_sys::{Caps, Span, caps};

pub(crate) struct Random(Rng);

impl Random {
    /// Seeded by VELLUM_TEST_SEED, or the clock; prints the seed.
    pub(crate) fn new() -> Random {
        Random::seeded(vellum_random::test_seed(None))
    }

    pub(crate) fn seeded(seed: u64) -> Random {
        Random(Rng::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.index(limit)
    }

    /// A range of `0..limit`, not empty if `limit` is not 0.
    pub(crate) fn range(&mut self, limit: usize) -> Range<usize> {
        let from = self.below(limit);
        from..limit.min(from + 1 + self.below(limit - from))
    }
}

/// Aborts the process unless it is dropped within the limit.
pub(crate) struct Limit {
    _over: mpsc::Sender<()>,
}

impl Limit {
    pub(crate) fn of_seconds(seconds: u64) -> Limit {
        let (over, is_over) = mpsc::channel();
        std::thread::spawn(move || {
            if is_over.recv_timeout(Duration::from_secs(seconds)) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("the test takes longer than {seconds} s");
                std::process::abort();
            }
        });
        Limit { _over: over }
    }
}

/// A directory for a store: on a disk, on most machines.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a directory")
}

/// Starts a pager over a store in `directory` that lives until the test ends it.
pub(crate) fn start_in(directory: &Path, frames: u32) -> Result<&'static Pager, StartError> {
    if let Some(names) = std::env::var_os("VELLUM_MASK") {
        let names = Caps::by_names(names.as_encoded_bytes());
        caps::drop(names.expect("VELLUM_MASK has capability names separated by commas"));
    }
    let pager: &'static Pager = Box::leak(Box::new(Pager::new()));
    let store = FileStore::at(directory.as_os_str().as_encoded_bytes()).expect("a short path");
    pager.start(Config { span_pages: 1 << 16, ..Config::of_frames(frames) }, store).map(|()| pager)
}

/// As [`start_in`]; `None`, with the reason, where no store can be.
pub(crate) fn start(frames: u32) -> Option<&'static Pager> {
    match start_in(directory().path(), frames) {
        Ok(pager) => Some(pager),
        Err(StartError::Store(Errno::OPNOTSUPP)) => {
            vellum_skip::skip(
                "/var/tmp cannot have a store: it keeps files in memory, or sets no room aside",
            );
            None
        }
        Err(error) => panic!("the pager does not start: {error:?}"),
    }
}

pub(crate) fn end(pager: &'static Pager) {
    // SAFETY: no object is used any more.
    unsafe { pager.stop() };
}

/// A memory object with a value in the first and last word of each page. Tests end it after its last use.
#[derive(Clone, Copy)]
pub(crate) struct Pages {
    start: usize,
    pub(crate) count: usize,
}

impl Pages {
    pub(crate) fn new(pager: &Pager, count: usize) -> Pages {
        let start = pager.create(count * PAGE, 1, true).expect("room").as_ptr().addr();
        Pages { start, count }
    }

    pub(crate) fn at(self, page: usize) -> *mut u8 {
        assert!(page < self.count);
        (self.start + page * PAGE) as *mut u8
    }

    pub(crate) fn from(self, page: usize) -> Span {
        Span::at(self.at(page), (self.count - page) * PAGE)
    }

    fn words(self, page: usize) -> [*mut u64; 2] {
        [0, PAGE - 8].map(|offset| self.at(page).wrapping_add(offset).cast())
    }

    pub(crate) fn put(self, page: usize, value: u64) {
        // SAFETY: words of the object.
        self.words(page).into_iter().for_each(|word| unsafe { word.write_volatile(value) });
    }

    pub(crate) fn has(self, page: usize, value: u64) -> bool {
        // SAFETY: words of the object.
        self.words(page).into_iter().all(|word| unsafe { word.read_volatile() } == value)
    }

    /// Writes a different value to each page; another one for each `round`.
    pub(crate) fn fill(self, round: u64) {
        (0..self.count).for_each(|page| self.put(page, value(round, page)));
    }

    /// The first page that does not have its value.
    pub(crate) fn wrong(self, round: u64) -> Option<usize> {
        (0..self.count).find(|&page| !self.has(page, value(round, page)))
    }

    pub(crate) fn resident(self) -> usize {
        let mut states = vec![0u8; self.count];
        // SAFETY: the kernel writes a byte a page.
        let result = unsafe { libc::mincore(self.at(0).cast(), self.count * PAGE, states.as_mut_ptr()) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        states.into_iter().filter(|state| state & 1 != 0).count()
    }

    /// Waits until no more of the pages than `most` are in memory.
    pub(crate) fn settle(self, most: usize) {
        while self.resident() > most {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn end(self, pager: &Pager) {
        let start = std::ptr::NonNull::new(self.at(0)).expect("an object");
        // SAFETY: as the type says.
        assert_eq!(unsafe { pager.destroy(start) }, Ok(self.count * PAGE));
    }
}

pub(crate) fn value(round: u64, page: usize) -> u64 {
    round << 32 | page as u64
}

/// Forks as the runtime does.
pub(crate) fn fork(pager: &Pager) -> libc::pid_t {
    pager.fork_prepare();
    // SAFETY: the child uses system calls and memory only.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => pager.fork_child(),
        _ => pager.fork_parent(),
    }
    pid
}

/// Forks by `fork`; the child does `work` and ends with the status that it returns.
pub(crate) fn child(fork: impl FnOnce() -> libc::pid_t, work: impl FnOnce() -> i32) -> libc::pid_t {
    let pid = fork();
    if pid == 0 {
        let status = work();
        // SAFETY: ends the child at once, without what the test program would do at its end.
        unsafe { libc::_exit(status) };
    }
    assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
    pid
}

pub(crate) fn wait(pid: libc::pid_t) -> ExitStatus {
    let mut status = 0;
    // SAFETY: a call with a place for its answer.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    ExitStatus::from_raw(status)
}
