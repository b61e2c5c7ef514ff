//! Kills at any point: of a program that pages, of which nothing is left, and of children while they are
//! given their view, after which the parent is as if there had been none.

use crate::common::{Random, SKIPPED, config, end, file_store, packing, skip_alone, start};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{
    AtomicBool, AtomicI32,
    Ordering::{Acquire, Release},
};
use vellum_pager::{FRAMES_MIN, FileStore, PAGE, Pager};

const PAGES: usize = 6 * FRAMES_MIN as usize;
/// Touches between two signs of life.
const TOUCHES: usize = 500;
/// Signs of life before the latest kill.
const SIGNS_MAX: usize = 20;
/// Kills of a test, times [`vellum_skip::scale`].
const KILLS: usize = 12;

/// Pages until it is killed: a sign of life on standard output when it has begun, and now and then.
fn page_for_ever(store: &Path) -> ! {
    let mut random = Random::new();
    let Some(pager) = start(config(FRAMES_MIN), file_store(store)) else { skip_alone() };
    let mut out = std::io::stdout();
    loop {
        let object = pager.create(PAGES * PAGE, 1, true).expect("room");
        for touch in 0..10 * TOUCHES {
            let page = if touch % TOUCHES < TOUCHES / 4 { touch % PAGES } else { random.below(PAGES) };
            // SAFETY: within the object.
            unsafe { object.as_ptr().add(page * PAGE).cast::<u64>().write_volatile(random.next()) };
            if touch % TOUCHES == 0 {
                out.write_all(b".").and_then(|()| out.flush()).expect("somebody who listens");
            }
        }
        // SAFETY: the object is used no more.
        unsafe { pager.destroy(object) }.expect("an object");
    }
}

#[test]
fn a_program_that_is_killed_leaves_nothing() {
    if let Some(store) = vellum_skip::role() {
        page_for_ever(Path::new(&store));
    }
    let mut random = Random::new();
    let directory = tempfile::tempdir().expect("a directory");
    let named = directory.path().join("store");
    for kill in 0..KILLS * vellum_skip::scale() {
        let store = if kill % 2 == 0 { directory.path() } else { named.as_path() };
        let store = store.to_str().expect("a path in UTF-8");
        let mut child = vellum_skip::again(a_program_that_is_killed_leaves_nothing, store)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test runs");
        // None at all now and then: while the pager starts.
        let signs = random.below(SIGNS_MAX) * usize::from(kill % 5 != 0);
        let mut out = child.stdout.take().expect("a pipe");
        let mut heard = 0;
        let mut piece = [0; 64];
        while heard < signs {
            let count = out.read(&mut piece).expect("a pipe");
            if count == 0 {
                break;
            }
            heard += piece[..count].iter().filter(|&&byte| byte == b'.').count();
        }
        child.kill().expect("a child");
        let status = child.wait().expect("a child");
        if status.code() == Some(SKIPPED) {
            // The child itself has said why.
            return;
        }
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status:?}");
        let left = std::fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 0, "kill {kill}, after {heard} signs of life, leaves files behind");
    }
}

/// Turns of a loop before a child is killed, at most: about as long as its view takes.
const SPINS_MAX: usize = 60_000;

static CHILD: AtomicI32 = AtomicI32::new(0);
static OVER: AtomicBool = AtomicBool::new(false);

/// Open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// Forks a child that looks at every page; the waiter for [`CHILD`] learns of it before the parent waits for
/// its view.
fn fork_a_looker(pager: &'static Pager<FileStore>, look: impl Fn() -> bool) -> libc::pid_t {
    pager.fork_prepare();
    // SAFETY: the child uses system calls and memory only, and ends here.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        pager.fork_child();
        let status = i32::from(!look());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(status) };
    }
    assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
    CHILD.store(pid, Release);
    pager.fork_parent();
    pid
}

/// Nobody else opens or closes descriptors of the process.
#[test]
fn children_killed_while_they_are_made_leave_the_parent_as_it_was() {
    vellum_skip::alone(|| {
        let mut random = Random::new();
        let directory = tempfile::tempdir().expect("a directory");
        let Some(pager) = start(packing(FRAMES_MIN), file_store(directory.path())) else { return };
        let start = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr().addr();
        let word = |page: usize| (start + page * PAGE) as *mut u64;
        // SAFETY: within the object.
        (0..PAGES).for_each(|page| unsafe { word(page).write_volatile(page as u64 + 1) });
        // SAFETY: within the object.
        let look = || (0..PAGES).all(|page| unsafe { word(page).read_volatile() } == page as u64 + 1);
        let kills = 2 * KILLS * vellum_skip::scale();
        let waits: Vec<usize> = (0..kills).map(|_| random.below(SPINS_MAX)).collect();
        let (mut killed, mut ended) = (0, 0);
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                for &wait in &waits {
                    let child = loop {
                        let child = CHILD.swap(0, Acquire);
                        if child != 0 {
                            break child;
                        }
                        std::thread::yield_now();
                    };
                    (0..wait).for_each(|_| std::hint::spin_loop());
                    // SAFETY: a signal to our own child, which is not waited for before `OVER` says so.
                    unsafe { libc::kill(child, libc::SIGKILL) };
                    OVER.store(true, Release);
                }
            });
            // What lasts as long as the threads do is open by now.
            let before = descriptors();
            for _ in 0..kills {
                let pid = fork_a_looker(pager, look);
                assert!(look(), "the parent has lost a page");
                while !OVER.swap(false, Acquire) {
                    std::thread::yield_now();
                }
                let mut status = 0;
                // SAFETY: plain call with a place for its answer.
                assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
                match status {
                    0 => ended += 1,
                    libc::SIGKILL => killed += 1,
                    other => panic!("a child ended by itself, with wait status {other:#x}"),
                }
                pager.validate().expect("an invariant");
                assert_eq!(descriptors(), before, "descriptors are left open");
            }
            killer.join().expect("the killer");
        });
        eprintln!("{killed} children killed, {ended} done before");
        assert!(look());
        end(pager);
    });
}
