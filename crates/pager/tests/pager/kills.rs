//! Tests that kill or stop processes at any point. A killed program that pages leaves nothing behind. A
//! child killed while it copies paged memory does not affect its parent.

use crate::common::{Limit, Pages, Random, directory, end, fork, start, start_in, value, wait};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use vellum_pager::{FRAMES_MIN, StartError};

const PAGES: usize = 6 * FRAMES_MIN as usize;
/// Rounds over all pages before the latest kill.
const SIGNS_MAX: usize = 12;
const KILLS: usize = 10;
/// The status of a process that can have no store here.
const SKIPPED: i32 = 77;

/// Pages until it is killed, and writes to standard output after each round without a wrong page.
fn page_for_ever(store: &Path) -> ! {
    let mut random = Random::new();
    let pager = match start_in(store, FRAMES_MIN) {
        Err(StartError::Store(rustix::io::Errno::OPNOTSUPP)) => std::process::exit(SKIPPED),
        started => started.expect("a pager"),
    };
    let pages = Pages::new(pager, PAGES);
    let mut rounds = vec![0; PAGES];
    for round in 1.. {
        for touch in 0..2 * PAGES {
            let page = if touch < PAGES { touch } else { random.below(PAGES) };
            let is_right = rounds[page] == 0 || pages.has(page, value(rounds[page], page));
            assert!(is_right, "page {page} is not as in round {}", rounds[page]);
            rounds[page] = round;
            pages.put(page, value(round, page));
        }
        let mut out = std::io::stdout();
        out.write_all(b".").and_then(|()| out.flush()).expect("a listener");
    }
    std::process::exit(0)
}

#[test]
fn a_program_that_is_stopped_and_killed_leaves_nothing() {
    if let Some(store) = vellum_skip::role() {
        page_for_ever(Path::new(&store));
    }
    let _limit = Limit::of_seconds(100);
    let mut random = Random::new();
    let directory = directory();
    let named = directory.path().join("store");
    for kill in 0..KILLS * vellum_skip::scale() {
        let store = if kill % 2 == 0 { directory.path() } else { named.as_path() };
        let store = store.to_str().expect("a path in UTF-8");
        let mut child = vellum_skip::again(a_program_that_is_stopped_and_killed_leaves_nothing, store)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test runs");
        // None at all now and then: while the pager starts.
        let signs = random.below(SIGNS_MAX) * usize::from(kill % 5 != 0);
        let mut out = child.stdout.take().expect("a pipe");
        let (mut heard, mut piece) = (0, [0; 1]);
        while heard < signs && out.read(&mut piece).expect("a pipe") > 0 {
            let is_sign = piece == *b".";
            heard += usize::from(is_sign);
            if is_sign {
                // SAFETY: signals to our own child, which was not waited for.
                unsafe { libc::kill(child.id() as i32, libc::SIGSTOP) };
                std::thread::sleep(Duration::from_millis(random.below(4) as u64));
                // SAFETY: a signal to a child that was not waited for.
                unsafe { libc::kill(child.id() as i32, libc::SIGCONT) };
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
        child.kill().expect("a child");
        let status = child.wait().expect("a child");
        if status.code() == Some(SKIPPED) {
            return vellum_skip::skip("/var/tmp cannot have a store");
        }
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status:?}");
        let left = std::fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 0, "kill {kill}, after {heard} signs of life, leaves files behind");
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// No other thread opens or closes descriptors of the process.
#[test]
fn children_killed_while_they_are_made_leave_the_parent_as_it_was() {
    vellum_skip::alone(|| {
        let _limit = Limit::of_seconds(100);
        let mut random = Random::new();
        let Some(pager) = start(FRAMES_MIN) else { return };
        let pages = Pages::new(pager, PAGES);
        pages.fill(1);
        // The pid of the next child is not known before `fork` returns, when its view is made: so it tells.
        let (mut pids, pid_of_child) = std::io::pipe().expect("a pipe");
        let (kill_after, delays) = mpsc::channel();
        let (over, is_over) = mpsc::channel();
        let killer = std::thread::spawn(move || {
            for delay in delays {
                let mut pid = [0; 4];
                pids.read_exact(&mut pid).expect("a child");
                std::thread::sleep(Duration::from_micros(delay));
                // SAFETY: a signal to our own child, which is not waited for before this.
                unsafe { libc::kill(i32::from_ne_bytes(pid), libc::SIGKILL) };
                over.send(()).expect("a parent");
            }
        });
        let (mut killed, before) = (0, descriptors());
        let kills = 2 * KILLS * vellum_skip::scale();
        for _ in 0..kills {
            kill_after.send(random.below(1500) as u64).expect("a killer");
            pager.fork_prepare();
            // SAFETY: the child uses system calls and memory only, and ends here.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                let _ = (&pid_of_child).write_all(&std::process::id().to_ne_bytes());
                pager.fork_child();
                let status = i32::from(pages.wrong(1).is_some());
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(status) };
            }
            assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
            pager.fork_parent();
            is_over.recv().expect("a killer");
            let status = wait(pid);
            assert!(status.success() || status.signal() == Some(libc::SIGKILL), "{status:?}");
            killed += usize::from(!status.success());
            assert_eq!(pages.wrong(1), None, "the parent has lost a page");
            assert_eq!(descriptors(), before, "descriptors are left open");
        }
        drop(kill_after);
        killer.join().expect("the killer");
        eprintln!("{killed} of {kills} children were killed before their end");
        assert!(wait(crate::common::child(|| fork(pager), || i32::from(pages.wrong(1).is_some()))).success());
        end(pager);
    });
}
