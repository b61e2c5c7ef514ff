//! What ends the program, and that it does: each in a process of its own, which must die by `SIGABRT` with
//! the right words.

use crate::common::{READS, SKIPPED, Shaky, WRITES, config, skip_alone, start};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering::Relaxed;
use vellum_pager::{Backing, FRAMES_MIN, PAGE, Pager};

/// Runs `test` in a process of its own, which must abort and say `words`. False if this is that process.
fn dies(test: impl Fn(), words: &[&str]) -> bool {
    if vellum_skip::role().is_some() {
        return false;
    }
    let run = vellum_skip::again(test, "dies").output().expect("this test runs");
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    if run.status.code() == Some(SKIPPED) {
        eprintln!("{said}");
        return true;
    }
    assert_eq!(run.status.signal(), Some(libc::SIGABRT), "{:?}: {said}", run.status);
    assert!(words.iter().all(|words| said.contains(words)), "{words:?} is not what was said: {said}");
    true
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

fn pager_over<B: Backing + Send + Sync>(store: B) -> &'static Pager<B> {
    start(config(FRAMES_MIN), store).unwrap_or_else(|| skip_alone())
}

#[test]
fn a_corrupt_page_stops_the_program() {
    if dies(
        a_corrupt_page_stops_the_program,
        &["comes back from the store", "the store is corrupt: the program is stopped"],
    ) {
        return;
    }
    let store = Shaky::lasting(0, 8192);
    let sum = walk(pager_over(store), || store.spoil.store(u32::MAX, Relaxed));
    unreachable!("the program goes on with {sum}");
}

#[test]
fn a_store_that_cannot_be_written_stops_the_program() {
    if dies(
        a_store_that_cannot_be_written_stops_the_program,
        &["cannot write pages to its store (errno 28)", "the program is stopped"],
    ) {
        return;
    }
    let store = Shaky::lasting(1, 8192);
    store.spares.store(READS, Relaxed);
    store.errno.store(libc::ENOSPC, Relaxed);
    let sum = walk(pager_over(store), || {});
    unreachable!("the program goes on with {sum}");
}

#[test]
fn a_store_that_cannot_be_read_stops_the_program() {
    if dies(
        a_store_that_cannot_be_read_stops_the_program,
        &["cannot read a page back from its store (errno 5)", "the program is stopped"],
    ) {
        return;
    }
    let store = Shaky::lasting(0, 8192);
    store.spares.store(WRITES, Relaxed);
    let sum = walk(pager_over(store), || store.fails.store(1, Relaxed));
    unreachable!("the program goes on with {sum}");
}
