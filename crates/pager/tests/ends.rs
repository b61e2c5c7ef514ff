//! What ends the program, and that it does: each in a process of its own, which must die by `SIGABRT` with the right words.

mod common;

use common::{Shaky, config, start};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use vellum_pager::{Backing, FRAMES_MIN, PAGE, Pager, SlotNo};

const ALONE: &str = "VELLUM_TEST_ALONE";
const SKIPPED: i32 = 77;

/// Runs test `name` again in a process of its own; `None` if it is this one. What it wrote to standard error, if it aborted.
fn apart(name: &str) -> Option<String> {
    if std::env::var_os(ALONE).is_some() {
        return None;
    }
    let own = std::env::current_exe().expect("this test");
    let run = Command::new(own).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output();
    let run = run.expect("this test runs");
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    if run.status.code() == Some(SKIPPED) {
        eprintln!("{said}");
        return Some(String::new());
    }
    assert_eq!(run.status.signal(), Some(libc::SIGABRT), "{:?}: {said}", run.status);
    Some(said)
}

/// Writes to more pages than there are frames, then reads them all.
fn walk<B: Backing + Send + Sync>(pager: &'static Pager<B>, before_reading: impl FnOnce()) -> u64 {
    const PAGES: usize = 4 * FRAMES_MIN as usize;
    let start = pager.create(PAGES * PAGE, 1, false).expect("room").as_ptr();
    for page in 0..PAGES {
        // SAFETY: within the object.
        unsafe { start.add(page * PAGE).cast::<u64>().write_volatile(page as u64) };
    }
    before_reading();
    // SAFETY: within the object.
    (0..PAGES).map(|page| unsafe { start.add(page * PAGE).cast::<u64>().read_volatile() }).sum()
}

fn alone<B: Backing + Send + Sync>(store: B) -> &'static Pager<B> {
    start(config(FRAMES_MIN), store).unwrap_or_else(|| std::process::exit(SKIPPED))
}

#[test]
fn a_corrupt_page_stops_the_program() {
    if let Some(said) = apart("a_corrupt_page_stops_the_program") {
        assert!(
            said.is_empty() || said.contains("comes back from the store") && said.contains("corrupt"),
            "{said}"
        );
        return;
    }
    static STORE: std::sync::OnceLock<Shaky> = std::sync::OnceLock::new();
    struct Shared;
    impl Backing for Shared {
        fn open(&self) -> Result<(), rustix::io::Errno> {
            Ok(())
        }
        fn reserve(&self, slots: u32) -> Result<(), rustix::io::Errno> {
            STORE.get().map_or(Err(rustix::io::Errno::IO), |store| store.reserve(slots))
        }
        unsafe fn read(&self, slot: SlotNo, parts: &mut [libc::iovec]) -> Result<(), rustix::io::Errno> {
            // SAFETY: passed on.
            STORE.get().map_or(Err(rustix::io::Errno::IO), |store| unsafe { store.read(slot, parts) })
        }
        unsafe fn write(&self, slot: SlotNo, parts: &mut [libc::iovec]) -> Result<(), rustix::io::Errno> {
            // SAFETY: passed on.
            STORE.get().map_or(Err(rustix::io::Errno::IO), |store| unsafe { store.write(slot, parts) })
        }
        fn descriptor(&self) -> Option<i32> {
            None
        }
    }
    let store = STORE.get_or_init(|| Shaky::new(0, 8192));
    let pager = alone(Shared);
    let sum = walk(pager, || store.spoil.store(1, Relaxed));
    unreachable!("the program goes on with {sum}");
}

#[test]
fn a_store_that_fails_for_good_stops_the_program() {
    if let Some(said) = apart("a_store_that_fails_for_good_stops_the_program") {
        assert!(said.is_empty() || said.contains("cannot write pages to its store"), "{said}");
        return;
    }
    let sum = walk(alone(Shaky::new(1, 8192)), || {});
    unreachable!("the program goes on with {sum}");
}
