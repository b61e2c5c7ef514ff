//! The store: where pages go that have no frame.
//!
//! [`Backing`] is what the pager asks of it, page-sized slots read and written in clusters. [`FileStore`]
//! keeps them in a file without a name, so that nothing is left behind however the process ends. Every slot
//! is paid for before a page may need it ([`Backing::reserve`]): a full disk is an error when memory is asked
//! for, never a page that cannot be put anywhere.
//!
//! Direct I/O is used where the file system has it. It saves the copy into the kernel's page cache and, what
//! matters more, does not fill that cache with what the frames were limited for. Where it is refused (some
//! file systems in memory), the cache is used.

use crate::units::{BATCH, PAGE, SlotNo};
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use libc::iovec;
use rustix::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use vellum_sys::{Line, raw};

/// What keeps pages. Called from the pager's own threads: nothing here may allocate by `malloc` or use
/// thread-local storage.
pub trait Backing: Sync {
    /// Makes the store ready, on the thread whose descriptors it will use.
    ///
    /// # Errors
    /// The errno that tells why there is none.
    fn open(&self) -> Result<(), Errno>;

    /// Makes sure that the first `slots` slots can be written to at any later time.
    ///
    /// # Errors
    /// `NOSPC`, `DQUOT` or `FBIG` if there is no room.
    fn reserve(&self, slots: u32) -> Result<(), Errno>;

    /// Reads slots from `slot` on into `parts`, whole pages each.
    ///
    /// # Errors
    /// The kernel's errno; what the parts hold is unknown then.
    ///
    /// # Safety
    /// The parts can be written.
    unsafe fn read(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno>;

    /// Writes `parts`, whole pages each, to slots from `slot` on.
    ///
    /// # Errors
    /// The kernel's errno; what the slots hold is unknown then.
    ///
    /// # Safety
    /// The parts can be read.
    unsafe fn write(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno>;

    /// The descriptor from which slots can be read, page `n` at `n` times 4096, on the thread that opened it.
    fn descriptor(&self) -> Option<i32>;
}

/// Bytes of the longest path of a store, the closing zero included.
const PATH_MAX: usize = 4096;
/// Permissions of a store: its owner's alone.
const MODE: u32 = 0o600;
/// How often a store without a name is given one for a moment, on file systems that make none without.
const NAMES: u32 = 64;

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);

/// A path put together.
struct Path([u8; PATH_MAX]);

impl Path {
    /// The two parts one behind the other.
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
    reserved: AtomicU32,
}

impl FileStore {
    /// A store at `path`: a directory, in which a file without a name is made, or the name of a file that
    /// does not exist yet, which is made without it. `None` if the path is too long.
    pub fn at(path: &[u8]) -> Option<FileStore> {
        let mut bytes = [0; PATH_MAX];
        // Room for the name that `open_briefly` adds, and the zero.
        if path.is_empty() || path.len() > PATH_MAX - 64 || path.contains(&0) {
            return None;
        }
        bytes[..path.len()].copy_from_slice(path);
        Some(FileStore { path: bytes, file: AtomicI32::new(-1), reserved: AtomicU32::new(0) })
    }

    fn path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.path).unwrap_or(c"")
    }

    fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: opened by `open` and never closed while the pager's threads live.
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
        // The name says where; the file need never have it, so that no end of the process can leave it
        // behind.
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

    /// # Safety
    /// As the system call demands of the parts.
    unsafe fn all(&self, call: libc::c_long, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        let file = self.file.load(Relaxed) as usize;
        whole(parts, |parts, done| {
            let offset = slot.0 as usize * PAGE + done;
            let args = [file, parts.as_ptr() as usize, parts.len(), offset, 0, 0];
            // SAFETY: by this function's condition.
            unsafe { raw::syscall(call, args) }
        })
    }
}

/// Calls `transfer` with what is left of `parts`, and the number of bytes done so far, until nothing is left.
/// It says how many bytes it dealt with, which may be few.
///
/// # Errors
/// What `transfer` fails with, other than an interruption; `IO` if it comes to an end of the file.
fn whole(
    parts: &mut [iovec],
    mut transfer: impl FnMut(&[iovec], usize) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let (mut done, mut first) = (0, 0);
    while first < parts.len() {
        let mut count = match transfer(&parts[first..], done) {
            Err(Errno::INTR) => continue,
            Ok(0) => return Err(Errno::IO),
            other => other?,
        };
        done += count;
        while first < parts.len() && count >= parts[first].iov_len {
            count -= parts[first].iov_len;
            first += 1;
        }
        if first < parts.len() {
            parts[first].iov_base = parts[first].iov_base.wrapping_byte_add(count);
            parts[first].iov_len -= count;
        }
    }
    Ok(())
}

impl Backing for FileStore {
    fn open(&self) -> Result<(), Errno> {
        let file = self.open_file()?;
        // Not when it is made: a file system without direct transfers would refuse it with the file made
        // already, and named. They are faster, no more.
        let _ = rustix::fs::fcntl_setfl(&file, OFlags::DIRECT);
        self.file.store(file.into_raw_fd(), Relaxed);
        Ok(())
    }

    fn reserve(&self, slots: u32) -> Result<(), Errno> {
        let before = self.reserved.load(Relaxed);
        if slots <= before {
            return Ok(());
        }
        let (from, len) = (u64::from(before) * PAGE as u64, u64::from(slots - before) * PAGE as u64);
        loop {
            match rustix::fs::fallocate(self.file(), rustix::fs::FallocateFlags::empty(), from, len) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => {
                    fill(self, before, slots)?;
                    break;
                }
                Err(errno) => return Err(errno),
            }
        }
        self.reserved.store(slots, Relaxed);
        Ok(())
    }

    unsafe fn read(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        // SAFETY: by this function's condition.
        unsafe { self.all(libc::SYS_preadv, slot, parts) }
    }

    unsafe fn write(&self, slot: SlotNo, parts: &mut [iovec]) -> Result<(), Errno> {
        // SAFETY: by this function's condition.
        unsafe { self.all(libc::SYS_pwritev, slot, parts) }
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.file.load(Relaxed)).filter(|&file| file >= 0)
    }
}

/// Where a file system cannot set room aside, writing it full does.
fn fill(store: &FileStore, from: u32, to: u32) -> Result<(), Errno> {
    #[repr(C, align(4096))]
    struct Zeros([u8; PAGE]);
    static ZEROS: Zeros = Zeros([0; PAGE]);
    let mut slot = from;
    while slot < to {
        let count = (to - slot).min(BATCH as u32);
        let mut parts = [iovec { iov_base: ZEROS.0.as_ptr().cast_mut().cast(), iov_len: PAGE }; BATCH];
        // SAFETY: the zeros can be read.
        unsafe { store.write(SlotNo(slot), &mut parts[..count as usize])? };
        slot += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However few bytes each call deals with, and however often it is interrupted, all parts are dealt
        /// with once.
        #[test]
        fn short_transfers_are_continued(
            lengths in proptest::collection::vec(1usize..5000, 1..10),
            counts in proptest::collection::vec(1usize..3000, 1..40),
        ) {
            let total: usize = lengths.iter().sum();
            let mut memory = vec![0u8; total];
            let mut parts = Vec::new();
            let mut at = 0;
            for &len in &lengths {
                parts.push(iovec { iov_base: memory[at..].as_mut_ptr().cast(), iov_len: len });
                at += len;
            }
            let (mut call, mut expected) = (0, 0);
            let done = whole(&mut parts, |parts, done| {
                assert_eq!(done, expected);
                call += 1;
                if call % 5 == 0 {
                    return Err(Errno::INTR);
                }
                let mut left = counts[call % counts.len()];
                let before = left;
                for part in parts {
                    let count = left.min(part.iov_len);
                    for byte in 0..count {
                        // SAFETY: within the memory above.
                        unsafe { *part.iov_base.cast::<u8>().add(byte) += 1 };
                    }
                    left -= count;
                }
                expected += before - left;
                Ok(before - left)
            });
            prop_assert_eq!(done, Ok(()));
            prop_assert!(memory.iter().all(|&byte| byte == 1));
        }
    }

    #[test]
    fn the_end_of_the_file_is_an_error() {
        let mut parts = [iovec { iov_base: core::ptr::null_mut(), iov_len: 1 }];
        assert_eq!(whole(&mut parts, |_, _| Ok(0)), Err(Errno::IO));
        assert_eq!(whole(&mut parts, |_, _| Err(Errno::NOSPC)), Err(Errno::NOSPC));
    }

    #[test]
    fn a_store_leaves_no_name_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let named = directory.path().join("store");
        assert_eq!([&b"a"[..], b"/a", b"/a/b", b"./b"].map(parent), [&b"."[..], b"/", b"/a", b"."]);
        for path in [directory.path(), named.as_path()] {
            let store = FileStore::at(path.as_os_str().as_encoded_bytes()).expect("a short path");
            store.open().expect("a store");
            store.reserve(3).expect("room");
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
        assert_eq!(store.open(), Err(Errno::EXIST), "no file is overwritten");
        assert_eq!(std::fs::read(&named).expect("a file"), b"somebody's");
    }
}
