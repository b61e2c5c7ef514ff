//! Tests of system calls on paged memory, also by other processes: the kernel reads the pages.

use crate::common::{Limit, Pages, Random, child, start, value, wait};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileExt;
use vellum_pager::{FRAMES_MIN, PAGE, Pager};

const PAGES: usize = 24;

/// Drives an object out of memory.
fn evict(pager: &Pager, pages: Pages) {
    let ballast = Pages::new(pager, 4 * FRAMES_MIN as usize);
    for round in 1.. {
        if pages.resident() == 0 {
            break;
        }
        ballast.fill(round);
    }
    ballast.end(pager);
}

/// A buffer of all pages but for the first and last few bytes.
fn buffer(pages: Pages) -> &'static mut [u8] {
    // SAFETY: within the object, which outlives the test and is not used otherwise meanwhile.
    unsafe { std::slice::from_raw_parts_mut(pages.at(0).add(8), PAGES * PAGE - 16) }
}

#[test]
fn buffers_that_are_evicted_are_read_and_written() {
    let _limit = Limit::of_seconds(60);
    let mut random = Random::new();
    let Some(pager) = start(FRAMES_MIN) else { return };
    let (from, to) = (Pages::new(pager, PAGES), Pages::new(pager, PAGES));
    let evict = |pages| evict(pager, pages);
    let mut expected = vec![0; PAGES * PAGE - 16];
    expected.fill_with(|| random.next() as u8);
    buffer(from).copy_from_slice(&expected);
    let mut file = tempfile::tempfile().expect("a file");
    evict(from);
    file.write_all(buffer(from)).expect("write(2)");
    file.rewind().expect("a file");
    evict(to);
    file.read_exact(buffer(to)).expect("read(2)");
    evict(to);
    assert!(buffer(to) == expected);
    evict(to);
    file.read_exact_at(&mut buffer(to)[1..], 0).expect("pread(2)");
    evict(to);
    assert!(buffer(to)[1..] == expected[..expected.len() - 1]);

    // Through a pipe, with both buffers going.
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    evict(from);
    evict(to);
    let written = std::thread::spawn(move || writer.write_all(buffer(from)));
    reader.read_exact(buffer(to)).expect("read(2)");
    written.join().expect("a thread").expect("write(2)");
    assert!(buffer(to) == expected);

    let random_bytes = |into: &mut [u8]| rustix::rand::getrandom(into, rustix::rand::GetRandomFlags::empty());
    evict(to);
    assert_eq!(random_bytes(buffer(to)), Ok(PAGES * PAGE - 16));
    let drawn = buffer(to).to_vec();
    assert!(drawn != expected);
    evict(to);
    assert!(buffer(to) == drawn);
    crate::common::end(pager);
}

#[test]
fn others_read_and_write_evicted_pages() {
    let _limit = Limit::of_seconds(60);
    let Some(pager) = start(FRAMES_MIN) else { return };
    let pages = Pages::new(pager, PAGES);
    pages.fill(1);
    evict(pager, pages);
    let memory = File::options().read(true).write(true).open("/proc/self/mem").expect("proc");
    let mut word = [0; 8];
    for page in 0..PAGES {
        memory.read_exact_at(&mut word, pages.at(page).addr() as u64).expect("a page");
        assert_eq!(u64::from_ne_bytes(word), value(1, page));
    }
    evict(pager, pages);
    for page in 0..PAGES {
        for offset in [0, PAGE - 8] {
            let at = (pages.at(page).addr() + offset) as u64;
            memory.write_all_at(&value(2, page).to_ne_bytes(), at).expect("a page");
        }
    }
    evict(pager, pages);
    assert_eq!(pages.wrong(2), None);

    // By a child, which has no such memory itself.
    evict(pager, pages);
    // SAFETY: lets any process read this one's memory, where a security module asks.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    // SAFETY: the child makes system calls on its own stack only.
    let raw_fork = || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t };
    let parent = std::process::id() as libc::pid_t;
    let status = wait(child(raw_fork, || {
        let mut found = [0u64; 1];
        (0..PAGES)
            .map(|page| {
                let local = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: 8 };
                let remote = libc::iovec { iov_base: pages.at(page).cast(), iov_len: 8 };
                // SAFETY: eight bytes of the child's stack are written.
                let count =
                    unsafe { libc::process_vm_readv(parent, &raw const local, 1, &raw const remote, 1, 0) };
                match count {
                    8 if found[0] == value(2, page) => 0,
                    8 => 1,
                    _ => 2,
                }
            })
            .max()
            .unwrap_or(3)
    }));
    match status.code() {
        Some(2) => vellum_skip::skip("a child may not read its parent's memory"),
        code => assert_eq!(code, Some(0), "{status:?}"),
    }
    crate::common::end(pager);
}
