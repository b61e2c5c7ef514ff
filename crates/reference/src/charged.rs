//! Estimates the memory charged to a job's cgroup beside its mapped pages: page cache of files read by
//! system calls, and kernel memory. A *look* is one sample of the job.
//!
//! ```text
//! /proc/PID/fd        files open for reading ─▶ cachestat: pages of each in the cache   maximum of all looks
//! /proc/PID/status    page tables, threads (each has a kernel stack)                    maximum of all looks
//! cgroup              the kernel memory charged to it, if a cgroup is watched
//! ```
//!
//! Files are identified by device and inode: each file counts once, however often it is open. Files that are
//! themselves memory (`/dev/shm`, memfd) are already counted as pages of the processes.
//!
//! On kernels without `cachestat` (before Linux 6.5), a file counts with all its blocks, cached or not.

use crate::target::Target;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use vellum_kernel::{Bytes, Cgroup, Pid};

/// The most files that are remembered, and the most descriptors looked at in one look.
const FILES_MAX: usize = 1024;
const DESCRIPTORS_MAX: usize = 2048;
/// A thread's stack in the kernel, and what else it has there.
const THREAD: Bytes = Bytes(24 << 10);
/// The kernel's index of the page cache takes one part in this many.
const INDEX_PART: u64 = 64;
const READABLE: u32 = 0o400;

#[derive(Debug, Default)]
pub(crate) struct Charged {
    files: HashMap<(u64, u64), Bytes>,
    kernel: Bytes,
}

impl Charged {
    pub(crate) fn look(&mut self, target: &Target, job: impl Iterator<Item = Pid>) {
        let (mut left, mut kernel) = (DESCRIPTORS_MAX, Bytes(0));
        for pid in job {
            self.look_at_files(pid, &mut left);
            let status = pid.status().unwrap_or_default();
            kernel += status.page_tables + Bytes(status.threads.saturating_mul(THREAD.0));
        }
        if let Target::Cgroup(path) = target
            && let Some(counted) = Cgroup::at(path).of_kernel()
        {
            kernel = counted;
        }
        self.kernel = self.kernel.max(kernel);
    }

    pub(crate) fn files(&self) -> Bytes {
        self.files.values().copied().sum()
    }

    /// The kernel's own memory, the index of that cache included.
    pub(crate) fn kernel(&self) -> Bytes {
        Bytes(self.kernel.0 + self.files().0 / INDEX_PART)
    }

    fn look_at_files(&mut self, pid: Pid, left: &mut usize) {
        let Ok(entries) = fs::read_dir(pid.file("fd")) else { return };
        for entry in entries.flatten() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return;
            }
            let path = entry.path();
            let readable = entry.metadata().is_ok_and(|link| link.mode() & READABLE != 0);
            let on_a_disk = fs::read_link(&path).is_ok_and(|file| {
                file.is_absolute() && !["/dev", "/proc", "/sys", "/memfd:"].iter().any(|no| begins(&file, no))
            });
            if !(readable && on_a_disk) {
                continue;
            }
            let Ok(meta) = fs::metadata(&path) else { continue };
            let key = (meta.dev(), meta.ino());
            if !meta.is_file() || (self.files.len() >= FILES_MAX && !self.files.contains_key(&key)) {
                continue;
            }
            let most = Bytes(meta.blocks() * 512);
            let cached = cached(&path).map_or(most, |cached| cached.min(Bytes(meta.len().max(most.0))));
            let known = self.files.entry(key).or_default();
            *known = cached.max(*known);
        }
    }
}

/// `/memfd:name` is one word, the others are directories.
fn begins(file: &Path, with: &str) -> bool {
    if with.ends_with(':') { file.to_string_lossy().starts_with(with) } else { file.starts_with(with) }
}

fn cached(path: &Path) -> Option<Bytes> {
    let mut options = fs::OpenOptions::new();
    // Opened anew by its link, which works for a file that has been removed, and waits for nobody.
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    // A length of 0 means to the end.
    vellum_sys::cachestat::cached(&file, 0, 0).ok().map(|found| Bytes::from_pages(found.pages.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn an_open_file_that_was_removed_counts_once_with_what_is_cached() {
        const BYTES: usize = 3 << 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("temporary");
        let mut file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all(&vec![7; BYTES]).unwrap();
        let again = file.try_clone().unwrap();
        fs::remove_file(&path).unwrap();
        let key = file.metadata().map(|meta| (meta.dev(), meta.ino())).unwrap();
        let target = Target::process(Pid::me()).unwrap();
        let mut charged = Charged::default();
        charged.look(&target, std::iter::once(Pid::me()));
        let found = charged.files.get(&key).copied().unwrap_or_default();
        assert!((BYTES as u64..=BYTES as u64 + (1 << 20)).contains(&found.0), "{found:?}");
        assert!(charged.kernel() > THREAD);
        // Its cached pages count when the file is gone, too.
        drop((file, again));
        charged.look(&target, std::iter::once(Pid::me()));
        assert_eq!(charged.files.get(&key), Some(&found));
    }

    #[test]
    fn files_that_are_only_written_and_processes_that_are_gone_count_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = File::create(folder.path().join("log")).unwrap();
        log.write_all(&vec![7; 1 << 20]).unwrap();
        let key = log.metadata().map(|meta| (meta.dev(), meta.ino())).unwrap();
        let target = Target::process(Pid::me()).unwrap();
        let mut charged = Charged::default();
        charged.look(&target, [Pid::me(), Pid(i32::MAX)].into_iter());
        assert_eq!(charged.files.get(&key), None);
    }
}
