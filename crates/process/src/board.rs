//! Makes the file of a run's *board*: memory shared by a job's processes, with counters of each process.
//!
//! `vellum-wire` has the layout of a board. Every process of the job can open the board's path.
//!
//! ```text
//! /dev/shm, or $XDG_RUNTIME_DIR, or the directory for temporary files
//! └── vellum-PID-TIME/        mode 0700
//!     ├── board               mode 0600, locked while its run lasts
//!     └── libvellum.so        a link, only if LD_PRELOAD cannot contain the library's own path
//! ```
//!
//! Invariants: the directory is always a new one, so that it has no other user's files; it is removed when
//! the [`BoardFile`] is dropped. A run that was killed leaves its directory behind. The lock on its board is
//! then free, so the next run detects and removes the directory.
//!
//! The limit on the size of files (`RLIMIT_FSIZE`) also limits the number of slots (counters of one
//! process).
//!
//! A board is larger than most jobs need and lies in memory, so its file is sparse. Touching a page for which
//! a full file system has no room kills a process, so pages are reserved before slots in them are claimed.

use crate::{library, named};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Resource, getrlimit};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vellum_wire::{Board, SLOT_BYTES, SLOTS_DEFAULT, Slot};

/// The prefix of boards' directories.
pub const STALE_PREFIX: &str = "vellum-";
const RESERVE_AHEAD_SLOTS: u32 = 256;
/// A directory younger than this may still be about to lock its board.
const STALE_AGE: Duration = Duration::from_secs(60);

/// No place for a board was found.
#[derive(Debug, thiserror::Error)]
#[error("no place for the statistics board: {}; make one of them writable, or set XDG_RUNTIME_DIR or TMPDIR",
    .tried.iter().map(|(place, error)| format!("{} ({error})", place.display())).collect::<Vec<_>>().join(", "))]
pub struct BoardError {
    tried: Vec<(PathBuf, io::Error)>,
}

/// A board in a file, mapped here.
#[derive(Debug)]
pub struct BoardFile {
    directory: PathBuf,
    path: PathBuf,
    file: File,
    base: usize,
    bytes: usize,
    board: Board<'static>,
    reserved: AtomicUsize,
}

impl BoardFile {
    /// Makes a board in the first of [`BoardFile::places`] that has room, and removes the boards of dead runs
    /// there.
    pub fn create() -> Result<BoardFile, BoardError> {
        Self::create_in(Self::places())
    }

    /// The places for boards, best first.
    pub fn places() -> Vec<PathBuf> {
        let runtime =
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        [Some(PathBuf::from("/dev/shm")), runtime, Some(std::env::temp_dir())].into_iter().flatten().collect()
    }

    /// Makes a board in the first of `places` that has room.
    pub fn create_in(places: Vec<PathBuf>) -> Result<BoardFile, BoardError> {
        let mut tried = Vec::new();
        for place in places {
            remove_stale(&place);
            match Self::try_in(&place) {
                Ok(board) => return Ok(board),
                Err(error) => tried.push((place, named(error))),
            }
        }
        Err(BoardError { tried })
    }

    fn try_in(place: &Path) -> io::Result<BoardFile> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let directory = place.join(format!("{STALE_PREFIX}{}-{time:x}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&directory)?;
        let path = directory.join("board");
        let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let made = made.and_then(|file| Self::map(directory.clone(), path, file));
        if made.is_err() {
            let _ = std::fs::remove_dir_all(&directory);
        }
        made
    }

    fn map(directory: PathBuf, path: PathBuf, file: File) -> io::Result<BoardFile> {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let slots = slots_within(getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX));
        let bytes = Board::bytes(slots);
        file.set_len(bytes as u64)?;
        let reserved = reserve(&file, 0, Board::bytes(RESERVE_AHEAD_SLOTS), bytes)?;
        // SAFETY: a new mapping at a place the kernel chooses; the file is ours and as long as the mapping.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)?
        };
        // SAFETY: page-aligned, zeroed (a new file), `bytes` long, and unmapped only when `self` is dropped,
        // which the lifetimes of the methods below do not let a slot outlive.
        let board = unsafe { Board::create(base.cast(), slots) };
        let reserved = AtomicUsize::new(reserved);
        Ok(BoardFile { directory, path, file, base: base as usize, bytes, board, reserved })
    }

    /// The path other processes open.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The slots claimed so far.
    pub fn claimed(&self) -> &[Slot] {
        self.board.claimed()
    }

    /// Processes that found the board full.
    pub fn unseated(&self) -> u32 {
        self.board.unseated()
    }

    /// Reserves memory for slots soon to be claimed. To be called now and then while the job runs.
    pub fn reserve_ahead(&self) {
        let claimed = self.board.claimed().len() as u32;
        let wanted = Board::bytes(claimed + RESERVE_AHEAD_SLOTS).min(self.bytes);
        let reserved = self.reserved.load(Relaxed);
        // Reserved in whole steps, so that not every look makes a system call.
        let step = wanted + Board::bytes(RESERVE_AHEAD_SLOTS);
        if wanted > reserved
            && let Ok(reserved) = reserve(&self.file, reserved, step, self.bytes)
        {
            self.reserved.store(reserved, Relaxed);
        }
    }

    /// [`library::preloadable`], with a link beside the board if one is needed.
    pub fn preloadable(&self, library: &Path) -> io::Result<PathBuf> {
        library::preloadable(library, &self.directory)
    }

    /// Removes the files. The counters stay readable here, and writable for the processes that have them
    /// mapped.
    pub fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Drop for BoardFile {
    fn drop(&mut self) {
        self.remove();
        // SAFETY: the mapping made in `map`, of this length; no slot borrowed from `self` is left.
        let _ = unsafe { munmap(self.base as *mut _, self.bytes) };
    }
}

/// The slots of a board in a file of at most `limit` bytes. At least one, so that making the file fails with
/// the system's error.
fn slots_within(limit: u64) -> u32 {
    let slots = limit.saturating_sub(Board::bytes(0) as u64) / SLOT_BYTES as u64;
    slots.clamp(1, SLOTS_DEFAULT.into()) as u32
}

/// Reserves the file's bytes from `from` to `to`, or to its `end`: to where. A file system that cannot
/// reserve is used unreserved.
fn reserve(file: &File, from: usize, to: usize, end: usize) -> io::Result<usize> {
    let to = to.min(end);
    match fallocate(file, FallocateFlags::empty(), from as u64, to.saturating_sub(from) as u64) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(to),
        Err(error) => Err(error.into()),
    }
}

fn remove_stale(place: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(STALE_PREFIX.as_bytes()) {
            continue;
        }
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        let old = meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= STALE_AGE));
        if !(meta.is_dir() && meta.uid() == me && old) {
            continue;
        }
        let dead = File::open(entry.path().join("board"))
            .is_ok_and(|board| flock(&board, FlockOperation::NonBlockingLockExclusive).is_ok());
        if dead {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_wire::Counter;

    #[test]
    fn another_mapping_of_the_file_sees_the_same_counters() {
        let place = tempfile::tempdir().unwrap();
        let board = BoardFile::create_in(vec![place.path().into()]).unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(board.path()).unwrap();
        let bytes = theirs.metadata().unwrap().len() as usize;
        // SAFETY: a fresh mapping of a file that is as long.
        let base = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &theirs, 0)
        }
        .unwrap();
        // SAFETY: mapped as long as the test runs.
        let seen = unsafe { Board::open(base.cast(), bytes) }.expect("a board");
        seen.claim().unwrap().add(Counter::CacheHits, 3);
        assert_eq!(board.claimed().len(), 1);
        assert_eq!(board.claimed()[0].get(Counter::CacheHits), 3);
        board.remove();
        seen.claim().unwrap().add(Counter::CacheHits, 4);
        assert_eq!(board.claimed().iter().map(|slot| slot.get(Counter::CacheHits)).sum::<u64>(), 7);
        // SAFETY: the mapping above, no longer used.
        unsafe { munmap(base, bytes) }.unwrap();
    }

    #[test]
    fn files_are_private_and_go_with_the_board() {
        let place = tempfile::tempdir().unwrap();
        let board = BoardFile::create_in(vec![place.path().join("absent"), place.path().into()]).unwrap();
        assert_eq!(std::fs::metadata(board.path()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(board.path().parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        for _ in 0..3 * RESERVE_AHEAD_SLOTS {
            board.board.claim().expect("a seat");
            board.reserve_ahead();
        }
        assert!(board.reserved.load(Relaxed) >= Board::bytes(4 * RESERVE_AHEAD_SLOTS));
        drop(board);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn every_place_that_failed_is_named() {
        let error = BoardFile::create_in(vec!["/proc/nowhere".into(), "/sys/nowhere".into()]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/proc/nowhere") && text.contains("/sys/nowhere"), "{text}");
    }

    #[test]
    fn a_path_with_a_blank_gets_a_link() {
        let place = tempfile::tempdir().unwrap();
        let board = BoardFile::create_in(vec![place.path().into()]).unwrap();
        let plain = Path::new("/usr/lib/libx.so");
        assert_eq!(board.preloadable(plain).unwrap(), plain);
        for awkward in ["/my lib/x.so", "/a:b/y.so", "/lib/a z.so"] {
            let link = board.preloadable(Path::new(awkward)).unwrap();
            assert!(!link.to_string_lossy().contains([' ', ':']), "{link:?}");
        }
    }

    #[test]
    fn a_dead_run_is_swept_and_a_live_one_is_not() {
        let place = tempfile::tempdir().unwrap();
        let live = BoardFile::create_in(vec![place.path().into()]).unwrap();
        let dead = place.path().join("vellum-1-1");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("board"), b"").unwrap();
        let long_ago = SystemTime::now() - 2 * STALE_AGE;
        for directory in [dead.as_path(), live.path().parent().unwrap()] {
            File::open(directory).unwrap().set_modified(long_ago).unwrap();
        }
        remove_stale(place.path());
        assert!(!dead.exists());
        assert!(live.path().exists());
    }
}
