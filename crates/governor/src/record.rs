//! The record of the changes to undo: memory shared by the governor and its guardians, mapped from a file
//! that outlives these processes.
//!
//! ```text
//! DIR/undo   layout, boot, guardians │ heartbeat │ processes stopped │ files changed, cgroups made
//!               written before each change by the governor; read by its guardians, `vellum govern --recover`
//!               and the next governor in DIR
//! ```
//!
//! A mapped file keeps its contents, without a write to a disk, when all processes that mapped it are killed.
//! After a restart of the machine there are no changes to undo, so a record of another boot is discarded.
//!
//! Invariants: an entry is complete before it can be seen (its pid, or its state, is written last). Undoing
//! twice does no harm, nor does undoing a change not yet made. A process is continued only if its start time
//! is that of the entry. [`Table::undo`] and [`Table::sweep`] allocate nothing and call async-signal-safe
//! functions only. All blocks of the file are allocated before it is mapped, so that a full disk cannot kill
//! a writer.

use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vellum_kernel::{Pid, started_ticks};

/// The most processes that can be stopped at once.
pub(crate) const STOPPED_MAX: usize = 16_384;
/// The most files that can be changed, and groups made, at once.
pub(crate) const FILES_MAX: usize = 768;
pub(crate) const GUARDIANS: usize = 2;
/// The longest path of a file to put back, and the longest content.
pub(crate) const PATH_BYTES: usize = 512;
const CONTENT_BYTES: usize = 32;
const BOOT_BYTES: usize = 40;
/// The number of this layout at the head of a record. A new layout gets a new number.
const LAYOUT: u64 = u64::from_be_bytes(*b"vlmundo1");
/// The longest wait for guardians of the last run that were ended.
const GONE_MAX: Duration = Duration::from_secs(2);

/// A process, identified by its time of birth. Free while `pid` is 0.
#[repr(C)]
struct Process {
    pid: AtomicI32,
    started: AtomicU64,
}

/// The kind of an entry: empty, a file to restore, or a group to remove when it is empty.
const FREE: u32 = 0;
const CHANGED: u32 = 1;
const MADE: u32 = 2;

/// A changed file, or a group that was made.
#[repr(C)]
struct Entry {
    kind: AtomicU32,
    path: [AtomicU8; PATH_BYTES],
    content: [AtomicU8; CONTENT_BYTES],
}

/// The shared table; zeroed memory is an empty one.
#[repr(C)]
pub(crate) struct Table {
    layout: AtomicU64,
    boot: [AtomicU8; BOOT_BYTES],
    guardians: [Process; GUARDIANS],
    pub(crate) beat: AtomicU64,
    /// The number of times that everything was undone.
    pub(crate) undone: AtomicU64,
    stopped: [Process; STOPPED_MAX],
    entries: [Entry; FILES_MAX],
}

/// The changes that an earlier run had left, and that are undone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Processes that were stopped, and go on.
    pub processes: usize,
    /// Files that were put back: frozen groups among them.
    pub files: usize,
    /// Groups that were removed.
    pub groups: usize,
    /// Groups that were made and have processes: they stay until those have ended.
    pub groups_left: usize,
}

impl Recovered {
    /// True if there was anything to do.
    pub fn is_something(&self) -> bool {
        *self != Recovered::default()
    }
}

pub(crate) type Failed = (&'static str, io::Error);

#[derive(Debug)]
pub(crate) struct Record {
    /// Also for a forked process, in which no value is dropped.
    pub(crate) table: NonNull<Table>,
    path: PathBuf,
}

// SAFETY: the table is atomics in memory that belongs to this value until it is dropped.
unsafe impl Send for Record {}

impl Record {
    pub(crate) fn file(directory: &Path) -> PathBuf {
        directory.join("undo")
    }

    /// Opens the record of `directory`, or makes it if this boot has none, and undoes its entries. No
    /// governor may use the directory.
    pub(crate) fn open(directory: &Path) -> Result<(Record, Recovered), Failed> {
        let path = Record::file(directory);
        if let Some(record) = Record::existing(&path)? {
            record.end_guardians();
            let recovered = record.table().recover();
            return Ok((record, recovered));
        }
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(("unlink", error));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(|error| ("open", error))?;
        let length = libc::off_t::try_from(size_of::<Table>()).unwrap_or(libc::off_t::MAX);
        // SAFETY: a descriptor of our own.
        let refused = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
        if refused != 0 {
            let _ = std::fs::remove_file(&path);
            return Err(("posix_fallocate", io::Error::from_raw_os_error(refused)));
        }
        let record = Record { table: map(&file)?, path };
        store(&record.table().boot, boot().as_bytes());
        record.table().layout.store(LAYOUT, Ordering::Release);
        Ok((record, Recovered::default()))
    }

    /// Undoes the entries of the record of `directory` and removes it; `None` if this boot has no record.
    pub(crate) fn undo(directory: &Path) -> Result<Option<Recovered>, Failed> {
        let Some(record) = Record::existing(&Record::file(directory))? else { return Ok(None) };
        let recovered = record.table().recover();
        if recovered.groups_left == 0 {
            record.end_guardians();
            record.remove();
        }
        Ok(Some(recovered))
    }

    fn existing(path: &Path) -> Result<Option<Record>, Failed> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| ("open", error))?,
        };
        let meta = file.metadata().map_err(|error| ("fstat", error))?;
        let ours = meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
        if !ours || meta.len() != size_of::<Table>() as u64 {
            return Ok(None);
        }
        let record = Record { table: map(&file)?, path: path.to_path_buf() };
        let table = record.table();
        let known = table.layout.load(Ordering::Acquire) == LAYOUT && is(&table.boot, boot().as_bytes());
        Ok(known.then_some(record))
    }

    pub(crate) fn table(&self) -> &Table {
        // SAFETY: the mapping lives as long as this value; any bytes are valid atomics.
        unsafe { self.table.as_ref() }
    }

    /// Removes the file: there is nothing to undo any more.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Ends guardians that a killed governor has left: they would remove groups that the next one makes.
    fn end_guardians(&self) {
        for guardian in &self.table().guardians {
            let pid = guardian.pid.swap(0, Ordering::AcqRel);
            let theirs =
                |pid| pid > 0 && started_ticks(pid) == Some(guardian.started.load(Ordering::Relaxed));
            if !theirs(pid) {
                continue;
            }
            // SAFETY: a signal to a guardian of this directory, whose birth was just compared.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let began = Instant::now();
            while theirs(pid) && !is_over(pid) && began.elapsed() < GONE_MAX {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe { libc::munmap(self.table.as_ptr().cast(), size_of::<Table>()) };
    }
}

impl Table {
    pub(crate) fn guarded_by(&self, guardians: [libc::pid_t; GUARDIANS]) {
        for (entry, pid) in self.guardians.iter().zip(guardians) {
            entry.started.store(started_ticks(pid).unwrap_or(0), Ordering::Relaxed);
            entry.pid.store(pid, Ordering::Release);
        }
    }

    /// Records that a process born at `started` is about to be stopped. False if there is no room: then it
    /// must not be.
    pub(crate) fn will_stop(&self, pid: Pid, started: u64) -> bool {
        let free = self.stopped.iter().find(|entry| entry.pid.load(Ordering::Relaxed) == 0);
        free.is_some_and(|entry| {
            entry.started.store(started, Ordering::Relaxed);
            entry.pid.store(pid.0, Ordering::Release);
            true
        })
    }

    pub(crate) fn continued(&self, pid: Pid) {
        for entry in self.stopped.iter().filter(|entry| entry.pid.load(Ordering::Relaxed) == pid.0) {
            entry.pid.store(0, Ordering::Release);
        }
    }

    /// Records that `path` is about to be changed and was `content`. False if there is no room: then it must
    /// not be.
    pub(crate) fn will_change(&self, path: &Path, content: &str) -> bool {
        self.enter(CHANGED, path, content)
    }

    /// Records that the control group `path` is about to be made. False if there is no room: then it must
    /// not be. The group is removed when it is empty and the governor is gone.
    pub(crate) fn will_make(&self, path: &Path) -> bool {
        self.enter(MADE, path, "")
    }

    pub(crate) fn was(&self, path: &Path) -> Option<String> {
        let entry = self.entries(CHANGED, path.as_os_str().as_encoded_bytes()).next()?;
        let bytes = entry.content.iter().map(|byte| byte.load(Ordering::Relaxed));
        Some(bytes.take_while(|byte| *byte != 0).map(char::from).collect())
    }

    pub(crate) fn changed_back(&self, path: &Path) {
        if let Some(entry) = self.entries(CHANGED, path.as_os_str().as_encoded_bytes()).next() {
            entry.kind.store(FREE, Ordering::Release);
        }
    }

    fn enter(&self, kind: u32, path: &Path, content: &str) -> bool {
        let path = path.as_os_str().as_encoded_bytes();
        if path.len() >= PATH_BYTES || content.len() >= CONTENT_BYTES {
            return false;
        }
        if self.entries(kind, path).next().is_some() {
            return true;
        }
        let free = self.entries.iter().find(|entry| entry.kind.load(Ordering::Relaxed) == FREE);
        free.is_some_and(|entry| {
            store(&entry.path, path);
            store(&entry.content, content.as_bytes());
            entry.kind.store(kind, Ordering::Release);
            true
        })
    }

    fn entries<'a>(&'a self, kind: u32, path: &'a [u8]) -> impl Iterator<Item = &'a Entry> {
        let mine = move |entry: &&Entry| entry.kind.load(Ordering::Relaxed) == kind && is(&entry.path, path);
        self.entries.iter().filter(mine)
    }

    /// Continues every process and puts back every file. `for_good`: nobody else will, so the entries go.
    pub(crate) fn undo(&self, for_good: bool) -> Recovered {
        let mut done = Recovered::default();
        for entry in &self.stopped {
            let pid = entry.pid.load(Ordering::Acquire);
            if pid > 0 && started_ticks(pid) == Some(entry.started.load(Ordering::Relaxed)) {
                done.processes += 1;
                // SAFETY: a signal to a process that was stopped by the governor, whose birth was just
                // compared.
                unsafe { libc::kill(pid, libc::SIGCONT) };
            }
            if for_good && pid > 0 {
                entry.pid.store(0, Ordering::Release);
            }
        }
        for entry in self.entries.iter().filter(|entry| entry.kind.load(Ordering::Acquire) == CHANGED) {
            done.files += usize::from(put_back(entry));
            if for_good {
                entry.kind.store(FREE, Ordering::Release);
            }
        }
        if done.is_something() {
            self.undone.fetch_add(1, Ordering::Release);
        }
        done
    }

    /// Removes the groups that are empty. Returns how many went, and how many have processes.
    pub(crate) fn sweep(&self) -> [usize; 2] {
        let mut counts = [0; 2];
        for entry in self.entries.iter().filter(|entry| entry.kind.load(Ordering::Acquire) == MADE) {
            let path = path(entry);
            // SAFETY: the path ends in a zero, since shorter ones only are stored; `errno` is this thread's.
            let (removed, why) =
                unsafe { (libc::rmdir(path.as_ptr().cast()) == 0, *libc::__errno_location()) };
            if removed || why == libc::ENOENT {
                entry.kind.store(FREE, Ordering::Release);
            }
            counts[0] += usize::from(removed);
            counts[1] += usize::from(!removed && why != libc::ENOENT);
        }
        counts
    }

    fn recover(&self) -> Recovered {
        let done = self.undo(true);
        let [groups, groups_left] = self.sweep();
        Recovered { groups, groups_left, ..done }
    }
}

fn map(file: &File) -> Result<NonNull<Table>, Failed> {
    let (bytes, access) = (size_of::<Table>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new shared mapping wherever the kernel likes; nothing else is touched.
    let memory = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
    let memory = memory.map_err(|error| ("mmap", error.into()))?;
    NonNull::new(memory.cast()).ok_or_else(|| ("mmap", io::Error::last_os_error()))
}

fn boot() -> String {
    // Without a name every record counts as of this boot: births of processes are compared all the same.
    vellum_kernel::machine::boot().unwrap_or_else(|| "unknown".to_owned())
}

fn store(to: &[AtomicU8], bytes: &[u8]) {
    for (at, byte) in to.iter().enumerate() {
        byte.store(bytes.get(at).copied().unwrap_or(0), Ordering::Relaxed);
    }
}

fn is(stored: &[AtomicU8], bytes: &[u8]) -> bool {
    let same =
        |(at, byte): (usize, &AtomicU8)| byte.load(Ordering::Relaxed) == bytes.get(at).copied().unwrap_or(0);
    stored.iter().enumerate().all(same)
}

fn path(entry: &Entry) -> [u8; PATH_BYTES] {
    let mut path = [0u8; PATH_BYTES];
    path.iter_mut().zip(&entry.path).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    path
}

/// True if it could be written; a group that is gone has nothing to put back.
fn put_back(entry: &Entry) -> bool {
    let path = path(entry);
    let mut content = [0u8; CONTENT_BYTES];
    content.iter_mut().zip(&entry.content).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    let long = content.iter().position(|byte| *byte == 0).unwrap_or(CONTENT_BYTES);
    // SAFETY: the path ends in a zero, since shorter ones only are stored; `long` bytes of the content are
    // read.
    unsafe {
        let fd = libc::open(path.as_ptr().cast(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return false;
        }
        let written = libc::write(fd, content.as_ptr().cast(), long);
        libc::close(fd);
        written >= 0
    }
}

fn is_over(pid: libc::pid_t) -> bool {
    !Pid(pid).is_alive()
}

const _: () = assert!(align_of::<Table>() <= 4096);
