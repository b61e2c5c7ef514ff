//! The store: the file that holds the pages of memory objects.
//!
//! The file has no name, so it vanishes with the process, however the process ends. Space is reserved before
//! a page may need it: a full disk is an error of the allocation.
//!
//! The file is open in the evicting thread alone, which has a separate descriptor table. This code neither
//! allocates by `malloc` nor uses thread-local storage.

use crate::units::PAGE;
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use rustix::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{Advice, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use vellum_sys::cachestat::{self, Cached};
use vellum_sys::{Line, raw};

/// Bytes of the longest path of a store, the closing zero included.
const PATH_MAX: usize = 4096;
/// Permissions of a store while it may have a name: its owner's alone.
const MODE: u32 = 0o600;
/// Permissions afterwards. A process that has changed its user opens the store again for a forked child, by
/// `/proc`, which admits only processes that may read this one's memory.
const NAMELESS_MODE: u32 = 0o666;
/// Tries to give a store a name for a moment, on file systems that make no files without.
const NAMES: u32 = 64;

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);

struct Path([u8; PATH_MAX]);

impl Path {
    fn of(first: &[u8], second: &[u8]) -> Result<Path, Errno> {
        let mut bytes = [0; PATH_MAX];
        let len = first.len() + second.len();
        if len >= PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..len].copy_from_slice(second);
        Ok(Path(bytes))
    }

    fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }
}

/// The directory in which `path`, the name of a file, would be.
fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(end) => &path[..end],
    }
}

/// A store in a file.
#[derive(Debug)]
pub struct FileStore {
    path: [u8; PATH_MAX],
    file: AtomicI32,
}

impl FileStore {
    /// A store at `path`: a directory, for a file without a name, or the name of a file that does not exist
    /// yet, which is then made without it. `None` if the path is too long.
    pub fn at(path: &[u8]) -> Option<FileStore> {
        let mut bytes = [0; PATH_MAX];
        // Room for the name that `open_briefly` adds, and the zero.
        if path.is_empty() || path.len() > PATH_MAX - 64 || path.contains(&0) {
            return None;
        }
        bytes[..path.len()].copy_from_slice(path);
        Some(FileStore { path: bytes, file: AtomicI32::new(-1) })
    }

    fn path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.path).unwrap_or(c"")
    }

    fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: opened by `open` and never closed while the evicting thread lives.
        unsafe { BorrowedFd::borrow_raw(self.file.load(Relaxed)) }
    }

    fn open_file(&self) -> Result<OwnedFd, Errno> {
        let mode = Mode::from_raw_mode(MODE);
        match rustix::fs::open(self.path(), FLAGS | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(file),
            // A directory, but of a file system that makes no files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => return self.open_briefly(self.path().to_bytes()),
            // No directory: the name of a new file.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno),
        }
        if rustix::fs::lstat(self.path()).is_ok() {
            return Err(Errno::EXIST);
        }
        // The name gives the directory; a file without it cannot be left behind.
        let directory = Path::of(parent(self.path().to_bytes()), b"")?;
        match rustix::fs::open(directory.text(), FLAGS | OFlags::TMPFILE, mode) {
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => self.open_briefly(parent(self.path().to_bytes())),
            other => other,
        }
    }

    /// Makes a file in the directory and takes its name away: where there is no other way. A process that is
    /// killed between the two leaves it there, empty.
    fn open_briefly(&self, directory: &[u8]) -> Result<OwnedFd, Errno> {
        let pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        for attempt in 0..NAMES {
            let mut name = Line::new();
            name.text("/.vellum-store-").decimal(pid.into()).text("-").decimal(attempt.into());
            let path = Path::of(directory, name.bytes())?;
            let flags = FLAGS | OFlags::CREATE | OFlags::EXCL;
            match rustix::fs::open(path.text(), flags, Mode::from_raw_mode(MODE)) {
                Ok(file) => return rustix::fs::unlink(path.text()).map(|()| file),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }
}

/// Flags of `sync_file_range`: wait for writes in progress, and begin to write changed pages.
const WAIT_BEFORE: usize = 1;
const WRITE: usize = 2;

/// Repeats a call that a signal to the process has interrupted.
fn again(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn bytes(pages: u32) -> u64 {
    u64::from(pages) * PAGE as u64
}

/// Ranges are in pages of the file: the first, and how many.
impl FileStore {
    /// Opens the store, for the calling thread, and tries the calls that it needs later.
    ///
    /// # Errors
    /// The errno; `OPNOTSUPP` if the file system keeps its files in memory or cannot set room aside.
    pub fn open(&self) -> Result<(), Errno> {
        const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
        let file = self.open_file()?;
        if IN_MEMORY.contains(&(rustix::fs::fstatfs(&file)?.f_type as u32)) {
            return Err(Errno::OPNOTSUPP);
        }
        // Refused only where such a mode cannot be; then a child of another user gets no view.
        let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(NAMELESS_MODE));
        self.file.store(file.into_raw_fd(), Relaxed);
        Ok(())
    }

    /// The descriptor, on the thread that opened it.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file.load(Relaxed)
    }

    /// Has room for the range, which nobody has written to, whatever becomes of the disk.
    ///
    /// # Errors
    /// `NOSPC`, `DQUOT` or `FBIG` without room; `OPNOTSUPP` if the file system cannot set any aside.
    pub(crate) fn set_aside(&self, first: u32, pages: u32) -> Result<(), Errno> {
        again(|| rustix::fs::fallocate(self.file(), FallocateFlags::empty(), bytes(first), bytes(pages)))
    }

    /// Has the range read as zero, with its room kept, and drops it from memory, mapped or not.
    pub(crate) fn zero(&self, first: u32, pages: u32) -> Result<(), Errno> {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        again(|| rustix::fs::fallocate(self.file(), flags, bytes(first), bytes(pages)))
    }

    /// Makes a hole of the file's first byte, which no object has. It is too short to free a block of the
    /// disk, so nothing waits for the file's extents. While it is made, the kernel has all faults wait that
    /// bring a page of the file into memory or write to a clean one.
    pub(crate) fn punch(&self) -> Result<(), Errno> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        again(|| rustix::fs::fallocate(self.file(), flags, 0, 1))
    }

    /// Begins to write what has changed of the range.
    pub(crate) fn write(&self, first: u32, pages: u32) -> Result<(), Errno> {
        self.sync(first, pages, WRITE)
    }

    /// Waits for the writes of the range in progress.
    ///
    /// # Errors
    /// `IO` and others if a page of the store could not be written.
    pub(crate) fn wait(&self, first: u32, pages: u32) -> Result<(), Errno> {
        self.sync(first, pages, WAIT_BEFORE)
    }

    fn sync(&self, first: u32, pages: u32, flags: usize) -> Result<(), Errno> {
        let (file, from, len) = (self.descriptor() as usize, bytes(first) as usize, bytes(pages) as usize);
        again(|| {
            // SAFETY: a call on a file that touches no memory of the process.
            unsafe { raw::syscall(libc::SYS_sync_file_range, [file, from, len, flags, 0, 0]) }.map(drop)
        })
    }

    /// Drops from memory what of the range is written and not mapped.
    pub(crate) fn drop_unmapped(&self, first: u32, pages: u32) {
        self.advise(first, pages, Advice::DontNeed);
    }

    pub(crate) fn read_ahead(&self, first: u32, pages: u32) {
        self.advise(first, pages, Advice::WillNeed);
    }

    fn advise(&self, first: u32, pages: u32, advice: Advice) {
        // Advice: a refusal changes nothing.
        let _ = rustix::fs::fadvise(self.file(), bytes(first), core::num::NonZero::new(bytes(pages)), advice);
    }

    /// Counts of the range's pages in memory; `None` if `cachestat` is missing or forbidden.
    pub(crate) fn cached(&self, first: u32, pages: u32) -> Option<Cached> {
        cachestat::cached(self.file(), bytes(first), bytes(pages)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_knows_what_is_in_memory() {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let store = FileStore::at(directory.path().as_os_str().as_encoded_bytes()).expect("a short path");
        match store.open() {
            Err(Errno::OPNOTSUPP) => return vellum_skip::skip("/var/tmp keeps its files in memory"),
            opened => opened.expect("a store"),
        }
        store.set_aside(0, 16).expect("room");
        let Some(before) = store.cached(0, 16) else { return vellum_skip::skip("no cachestat here") };
        assert_eq!(before, Cached::default());
        rustix::io::pwrite(store.file(), &[7; 3 * PAGE], PAGE as u64).expect("a write");
        let written = store.cached(0, 16).expect("counts");
        assert_eq!((written.pages, written.changed), (3, 3));
        store.write(0, 16).and_then(|()| store.wait(0, 16)).expect("written");
        store.zero(2, 1).expect("zeros");
        assert_eq!(store.cached(0, 16).map(|found| (found.pages, found.changed)), Some((2, 0)));
        store.drop_unmapped(0, 16);
        assert_eq!(store.cached(0, 16), Some(Cached::default()));
        let mut page = [1; PAGE];
        for (at, expected) in [(1, 7), (2, 0), (3, 7), (4, 0)] {
            rustix::io::pread(store.file(), &mut page, (at * PAGE) as u64).expect("a read");
            assert_eq!(page, [expected; PAGE], "page {at}");
        }
    }

    #[test]
    fn a_store_leaves_no_name_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let named = directory.path().join("store");
        assert_eq!([&b"a"[..], b"/a", b"/a/b", b"./b"].map(parent), [&b"."[..], b"/", b"/a", b"."]);
        for path in [directory.path(), named.as_path()] {
            let store = FileStore::at(path.as_os_str().as_encoded_bytes()).expect("a short path");
            drop(store.open_file().expect("a store"));
            drop(store.open_briefly(directory.path().as_os_str().as_encoded_bytes()).expect("a file"));
            assert_eq!(
                std::fs::read_dir(directory.path()).expect("a directory").count(),
                0,
                "{}",
                path.display()
            );
        }
        std::fs::write(&named, "somebody's").expect("a file");
        let store = FileStore::at(named.as_os_str().as_encoded_bytes()).expect("a short path");
        assert_eq!(store.open_file().err(), Some(Errno::EXIST), "no file is overwritten");
        assert_eq!(std::fs::read(&named).expect("a file"), b"somebody's");
    }
}
