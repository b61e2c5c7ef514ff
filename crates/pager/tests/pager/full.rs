//! Disks that are full: writes that fail for a while or are cut short, and file systems without room. Nothing
//! is lost, and what cannot be kept is refused when it is asked for.

use crate::common::{READS, SKIPPED, Shaky, config, end, file_store, skip_alone, start};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_pager::{Backing, FRAMES_MIN, FileStore, PAGE, Pager, Refused, SlotNo};

/// Pages of an object: several times the frames.
const PAGES: usize = 4 * FRAMES_MIN as usize;

/// An object whose every page says which it is, and in which round it was written.
struct Marked {
    start: *mut u8,
}

impl Marked {
    fn new<B: Backing + Send + Sync>(pager: &'static Pager<B>) -> Result<Marked, Refused> {
        let object = Marked { start: pager.create(PAGES * PAGE, 1, false)?.as_ptr() };
        object.write(0);
        Ok(object)
    }

    fn word(&self, page: usize) -> *mut u64 {
        // SAFETY: within the object.
        unsafe { self.start.add(page * PAGE + page % 500 * 8).cast() }
    }

    fn write(&self, round: u64) {
        for page in 0..PAGES {
            // SAFETY: within the object, which this thread alone uses.
            unsafe { self.word(page).write_volatile(round << 32 | page as u64) };
        }
    }

    fn check(&self, round: u64) {
        for page in 0..PAGES {
            // SAFETY: as above.
            assert_eq!(unsafe { self.word(page).read_volatile() }, round << 32 | page as u64, "page {page}");
        }
    }
}

/// What file systems that copy on writing do when they are full: room that was set aside is not to be had.
#[test]
fn writes_that_fail_for_a_while_lose_nothing() {
    let store = Shaky::lasting(0, 8192);
    store.spares.store(READS, Relaxed);
    store.errno.store(libc::ENOSPC, Relaxed);
    store.left.store(0, Relaxed);
    let Some(pager) = start(config(FRAMES_MIN), store) else { return };
    let object = Marked::new(pager).expect("room");
    store.fails.store(1, Relaxed);
    for round in 1..4 {
        // This many batches in a row, while frames run out; then the disk has room again.
        store.left.store(10, Relaxed);
        object.write(round);
        assert_eq!(store.left.load(Relaxed), 0, "pages were written");
        object.check(round);
        pager.validate().expect("an invariant");
    }
    end(pager);
}

/// Limits the files of this process to `bytes` bytes, from whatever thread.
fn limit_files(bytes: u64) -> Result<(), Errno> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    let args = [0, libc::RLIMIT_FSIZE as usize, &raw const limit as usize, 0, 0, 0];
    // SAFETY: the kernel reads the limit, which lives here.
    unsafe { vellum_sys::raw::syscall(libc::SYS_prlimit64, args) }.map(drop)
}

/// A store in a file, which lifts the limit on files when `left` writes have failed.
struct Limited {
    store: FileStore,
    left: &'static AtomicU32,
}

impl Backing for Limited {
    fn open(&self) -> Result<(), Errno> {
        self.store.open()
    }

    fn reserve(&self, slots: u32) -> Result<(), Errno> {
        self.store.reserve(slots)
    }

    unsafe fn read(&self, slot: SlotNo, parts: &mut [libc::iovec]) -> Result<(), Errno> {
        // SAFETY: passed on.
        unsafe { self.store.read(slot, parts) }
    }

    unsafe fn write(&self, slot: SlotNo, parts: &mut [libc::iovec]) -> Result<(), Errno> {
        // SAFETY: passed on.
        let result = unsafe { self.store.write(slot, parts) };
        if result.is_err() && self.left.fetch_sub(1, Relaxed) == 1 {
            limit_files(libc::RLIM_INFINITY)?;
        }
        result
    }

    fn descriptor(&self) -> Option<i32> {
        self.store.descriptor()
    }
}

/// A limit on the size of files that comes down in the middle of the store cuts transfers short at a byte
/// that is no page's first, and refuses what lies behind it. The program has what it had, and goes on when
/// the limit is lifted.
#[test]
fn writes_that_are_cut_short_lose_nothing() {
    vellum_skip::alone(|| {
        /// Writes that fail before the limit is lifted: fewer than the pager puts up with.
        const FAILURES: u32 = 10;
        static LEFT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().expect("a directory");
        let store = Limited { store: file_store(directory.path()), left: &LEFT };
        let Some(pager) = start(config(FRAMES_MIN), store) else { return };
        let object = Marked::new(pager).expect("room");
        for round in 1..8u64 {
            LEFT.store(FAILURES, Relaxed);
            // New slots are taken all around the store, so that the limit is met sooner or later,
            // wherever it is.
            limit_files((50 * round) * PAGE as u64 + 100 * (round % 4)).expect("a limit");
            object.write(round);
            object.check(round);
            limit_files(libc::RLIM_INFINITY).expect("no limit");
            pager.validate().expect("an invariant");
        }
        assert!(LEFT.load(Relaxed) < FAILURES, "the limit was never met");
        end(pager);
    });
}

/// Bytes of the small file system.
const SMALL: &str = "size=16M";

/// Has `command` run with a file system of [`SMALL`] at `path` that only it sees, and that is gone when it
/// ends: with privilege, or in a user namespace of its own.
fn in_small_file_system(command: &mut Command, path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).expect("a path");
    let options = CString::new(SMALL).expect("options");
    // SAFETY: plain calls without arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let maps = [
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/uid_map", format!("0 {user} 1")),
        (c"/proc/self/gid_map", format!("0 {group} 1")),
    ];
    let enter = move || {
        let failed = || Err(std::io::Error::last_os_error());
        // SAFETY: system calls on strings that the closure owns; nothing is allocated between fork and exec.
        unsafe {
            if libc::unshare(libc::CLONE_NEWNS) != 0 {
                if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) != 0 {
                    return failed();
                }
                for (file, text) in &maps {
                    let file = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                    if file < 0 || libc::write(file, text.as_ptr().cast(), text.len()) < 0 {
                        return failed();
                    }
                    libc::close(file);
                }
            }
            let nothing = std::ptr::null();
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            if libc::mount(nothing, c"/".as_ptr(), nothing, flags, nothing.cast()) != 0
                || libc::mount(
                    c"small".as_ptr(),
                    path.as_ptr(),
                    c"tmpfs".as_ptr(),
                    0,
                    options.as_ptr().cast(),
                ) != 0
            {
                return failed();
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(enter) };
}

/// On a file system that is full, objects are refused, those that there are keep every page, and what ends
/// gives its room to others.
#[test]
fn a_file_system_without_room_refuses_objects() {
    vellum_skip::alone(|| {
        let Some(path) = vellum_skip::role() else {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().to_str().expect("a path in UTF-8");
            let mut command = vellum_skip::again(a_file_system_without_room_refuses_objects, path);
            in_small_file_system(&mut command, directory.path());
            return match command.output() {
                Err(error) => vellum_skip::skip(format_args!("{error}")),
                Ok(run) => {
                    eprintln!("{}", String::from_utf8_lossy(&run.stderr));
                    assert!(run.status.success() || run.status.code() == Some(SKIPPED), "{:?}", run.status);
                }
            };
        };
        let path = Path::new(&path);
        let Some(pager) = start(config(FRAMES_MIN), file_store(path)) else { skip_alone() };
        let mut objects = Vec::new();
        let refused = loop {
            match Marked::new(pager) {
                Ok(object) => objects.push(object),
                Err(refused) => break refused,
            }
            assert!(objects.len() < 32, "16 MiB hold more than they can");
        };
        assert_eq!(refused, Refused::Store(Errno::NOSPC));
        assert!(objects.len() > 8, "{} objects of 1 MiB in 16 MiB", objects.len());
        // The last byte goes to somebody else: the promised room is there all the same.
        let rest = std::fs::File::create(path.join("rest")).expect("a file");
        while std::io::Write::write(&mut &rest, &[1; PAGE]).is_ok() {}
        for round in 1..3 {
            objects.iter().for_each(|object| object.write(round));
            objects.iter().for_each(|object| object.check(round));
        }
        let last = objects.pop().expect("an object");
        // SAFETY: the object is used no more.
        unsafe { pager.destroy(std::ptr::NonNull::new(last.start).expect("an object")) }.expect("an object");
        objects.push(Marked::new(pager).expect("the room of the one before"));
        assert_eq!(Marked::new(pager).err(), Some(Refused::Store(Errno::NOSPC)));
        objects.last().expect("an object").check(0);
        end(pager);
    });
}
