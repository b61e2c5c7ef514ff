//! Memory objects against a byte-for-byte model, with few frames, random accesses, discards, and stores that
//! fail.

use crate::common::{Random, Shaky, config, end, file_store, packing, start};
use std::ptr::NonNull;
use vellum_pager::{Backing, Choice, Config, Event, FRAMES_MIN, PAGE, Pager};
use vellum_sys::text::Share;
use vellum_sys::{Caps, caps};

/// An object and what it must hold; `None` is a byte that may be anything.
struct Object {
    start: NonNull<u8>,
    bytes: Vec<Option<u8>>,
}

impl Object {
    fn slice(&self, from: usize, len: usize) -> &[u8] {
        // SAFETY: within the object, which only this thread uses.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(from), len) }
    }

    fn check(&self, from: usize, len: usize) {
        for (index, (&found, wanted)) in
            self.slice(from, len).iter().zip(&self.bytes[from..from + len]).enumerate()
        {
            assert!(wanted.is_none_or(|wanted| wanted == found), "byte {} of {:p}", from + index, self.start);
        }
    }

    fn write(&mut self, from: usize, len: usize, random: &mut Random) {
        for index in from..from + len {
            let byte = random.next() as u8;
            // SAFETY: within the object.
            unsafe { self.start.as_ptr().add(index).write_volatile(byte) };
            self.bytes[index] = Some(byte);
        }
    }
}

/// Objects' pages in all: many times the frames.
const PAGES_MAX: usize = 12 * FRAMES_MIN as usize;

fn exercise<B: Backing + Send + Sync>(pager: &'static Pager<B>, random: &mut Random, steps: u32) {
    let mut objects: Vec<Object> = Vec::new();
    for step in 0..steps {
        let total: usize = objects.iter().map(|object| object.bytes.len() / PAGE).sum();
        let which = random.below(objects.len());
        match random.below(20) {
            0 | 1 if total < PAGES_MAX => {
                let pages = 1 + random.below(150);
                let zero = random.below(2) == 0;
                let align = if random.below(3) == 0 { 16 * PAGE } else { 1 };
                let start = pager.create(pages * PAGE - random.below(PAGE), align, zero).expect("room");
                assert!(start.as_ptr().addr().is_multiple_of(align) && pager.owns(start.as_ptr()));
                assert_eq!(pager.len(start.as_ptr()), Some(pages * PAGE));
                objects.push(Object { start, bytes: vec![zero.then_some(0); pages * PAGE] });
            }
            2 if objects.len() > 3 => {
                let object = objects.swap_remove(which);
                // SAFETY: the object is used no more.
                unsafe { pager.destroy(object.start) }.expect("an object");
                assert_eq!(pager.len(object.start.as_ptr()), None);
            }
            3 if !objects.is_empty() => {
                let object = &mut objects[which];
                let pages = 1 + random.below(200);
                if random.below(2) == 0 {
                    // SAFETY: the old place is used no more.
                    let moved = unsafe { pager.relocate(object.start, pages * PAGE) }.expect("room");
                    assert!(moved != object.start && pager.len(object.start.as_ptr()).is_none());
                    object.start = moved;
                    object.bytes.resize(pages * PAGE, None);
                    continue;
                }
                // SAFETY: the part cut off is used no more.
                if unsafe { pager.resize(object.start, pages * PAGE) }.is_ok() {
                    object.bytes.resize(pages * PAGE, None);
                }
            }
            4 | 5 if !objects.is_empty() => {
                let object = &mut objects[which];
                let from = random.below(object.bytes.len());
                let len = random.below(object.bytes.len() - from);
                let start = object.start.as_ptr().wrapping_add(from);
                let forget = [Pager::mark, Pager::discard, Pager::flush][random.below(3)];
                // SAFETY: what the range holds is not needed: the model says so below.
                unsafe { forget(pager, start, len) };
                let whole = from.next_multiple_of(PAGE)..(from + len) / PAGE * PAGE;
                if whole.start < whole.end {
                    object.bytes[whole].fill(None);
                }
                if random.below(2) == 0 {
                    object.slice(from, len.min(1));
                }
                pager.need(start, len);
            }
            _ if !objects.is_empty() => {
                let object = &mut objects[which];
                let from = random.below(object.bytes.len());
                let len = random.below((object.bytes.len() - from).min(5 * PAGE));
                if random.below(12) == 0 {
                    // In order, so that pages are read ahead.
                    object.check(0, object.bytes.len());
                } else if random.below(2) == 0 {
                    object.write(from, len.min(300), random);
                } else {
                    object.check(from, len);
                }
            }
            _ => {}
        }
        if step % 64 == 0 {
            pager.validate().expect("an invariant");
        }
    }
    for object in &objects {
        object.check(0, object.bytes.len());
    }
    for object in objects {
        // SAFETY: the object is used no more.
        unsafe { pager.destroy(object.start) }.expect("an object");
    }
    pager.validate().expect("an invariant");
}

#[test]
fn a_file_store() {
    let mut random = Random::new();
    let directory = tempfile::tempdir().expect("a directory");
    let scarce = Config { compressed: Share::Bytes(128 << 10), ..packing(FRAMES_MIN) };
    for config in [config(FRAMES_MIN), packing(FRAMES_MIN), scarce] {
        let store = file_store(directory.path());
        let Some(pager) = start(config, store) else { return };
        exercise(pager, &mut random, 6000);
        let packs = config.compressed != Share::Off;
        for event in [Event::Packed, Event::ReadUnpacked, Event::WriteUnpacked] {
            assert_eq!(pager.count(event) > 0, packs, "{event:?}");
        }
        let goes_out = !packs;
        for event in [Event::Discarded, Event::Written, Event::ReadRead] {
            assert!(pager.count(event) > 0 || !goes_out, "{event:?}");
        }
        end(pager);
    }
}

#[test]
fn a_window_and_more_frames() {
    let mut random = Random::new();
    for frames in [FRAMES_MIN, 3 * FRAMES_MIN] {
        let config = Config { policy: Choice::Window(2_000_000), ..config(frames) };
        let Some(pager) = start(config, Shaky::new(0, 8192)) else { return };
        exercise(pager, &mut random, 4000);
        end(pager);
    }
}

#[test]
fn a_store_that_fails_now_and_then_loses_nothing() {
    let mut random = Random::new();
    for config in [config(FRAMES_MIN), packing(FRAMES_MIN)] {
        let Some(pager) = start(config, Shaky::new(7, 8192)) else { return };
        exercise(pager, &mut random, 3000);
        end(pager);
    }
}

/// What a kernel without `UFFDIO_MOVE` does, and without privilege. In a process of its own, as the flags are
/// the process's.
#[test]
fn without_moving_and_without_privilege() {
    vellum_skip::alone(|| {
        caps::drop(Caps::MOVE | Caps::KERNEL_FAULTS);
        let mut random = Random::new();
        for config in [config(FRAMES_MIN), packing(FRAMES_MIN)] {
            let Some(pager) = start(config, Shaky::new(0, 8192)) else { return };
            assert_eq!(pager.reach(), Some(vellum_sys::fault::Reach::User));
            exercise(pager, &mut random, 4000);
            end(pager);
        }
    });
}

#[test]
fn a_full_store_is_an_error_when_memory_is_asked_for() {
    let Some(pager) = start(config(FRAMES_MIN), Shaky::new(0, 900)) else { return };
    let first = pager.create(300 * PAGE, 1, false).expect("room");
    assert_eq!(
        pager.create(200 * PAGE, 1, false),
        Err(vellum_pager::Refused::Store(rustix::io::Errno::NOSPC)),
        "900 slots, less the slack"
    );
    // SAFETY: used no more.
    unsafe { pager.destroy(first) }.expect("an object");
    let again = pager.create(300 * PAGE, 1, false).expect("room again");
    // SAFETY: used no more.
    unsafe {
        pager.destroy(again).expect("an object");
        assert_eq!(pager.destroy(again), Err(vellum_pager::Refused::NoObject));
        pager.stop();
    }
}

/// Who asks which pages are referenced learns of those that are, and of the others when they were last.
#[test]
fn references_are_told() {
    const PAGES: usize = FRAMES_MIN as usize / 2;
    let of_clock = start(config(FRAMES_MIN), Shaky::new(0, 8192));
    assert_eq!(of_clock.and_then(|pager| pager.references(|_, _| panic!("a clock has no times"))), None);
    let config = Config { policy: Choice::Window(4_000_000), ..config(FRAMES_MIN) };
    let Some(pager) = start(config, Shaky::new(0, 8192)) else { return };
    let object = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr();
    let touch = |page: usize| {
        // SAFETY: within the object.
        unsafe { object.add(page * PAGE).write_volatile(1) };
    };
    (0..PAGES).for_each(touch);
    let told = || {
        let mut told = Vec::new();
        pager.references(|page, until| told.push((page.0 as usize, until))).expect("times");
        told
    };
    assert_eq!(told().iter().map(|&(page, _)| page).collect::<Vec<_>>(), (0..PAGES).collect::<Vec<_>>());
    // Two pages are used on; the others are looked at after a quarter of the window, and found out to be
    // idle.
    loop {
        (0..100_000).for_each(|_| [3, 9].into_iter().for_each(touch));
        let told = told();
        let newest = told.iter().map(|&(_, until)| until).max().expect("pages");
        let idle = told.iter().filter(|&&(_, until)| newest - until > 8_000_000).count();
        if idle == PAGES - 2 {
            assert!(
                told.iter().all(|&(page, until)| [3, 9].contains(&page) == (newest - until <= 8_000_000))
            );
            break;
        }
    }
    end(pager);
}

/// Pages that the program forbids itself, or locks into memory, stay where they are, and others make room.
#[test]
fn what_cannot_be_taken_away_stays() {
    const PAGES: usize = 4 * FRAMES_MIN as usize;
    let Some(pager) = start(config(FRAMES_MIN), Shaky::new(0, 8192)) else { return };
    let object = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr();
    // SAFETY: within the object.
    let word = |page: usize| unsafe { object.add(page * PAGE) };
    let forbid = |page: usize, protection| {
        // SAFETY: a page of the object, which nobody else uses.
        assert_eq!(unsafe { libc::mprotect(word(page).cast(), PAGE, protection) }, 0);
    };
    // SAFETY: within the object, and nothing is forbidden yet.
    (0..PAGES).for_each(|page| unsafe { word(page).write_volatile(page as u8) });
    for page in [PAGES - 1, PAGES - 3, 7] {
        // SAFETY: as above.
        unsafe { word(page).read_volatile() };
        forbid(page, libc::PROT_NONE);
    }
    // SAFETY: as above.
    unsafe { libc::mlock(word(20).cast(), PAGE) };
    for _ in 0..3 {
        for page in (0..PAGES).filter(|page| ![PAGES - 1, PAGES - 3, 7].contains(page)) {
            // SAFETY: as above.
            assert_eq!(unsafe { word(page).read_volatile() }, page as u8);
        }
    }
    for page in [PAGES - 1, PAGES - 3, 7] {
        forbid(page, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: as above.
        assert_eq!(unsafe { word(page).read_volatile() }, page as u8);
    }
    end(pager);
}

/// An object that is mostly in the store is at another place without being read.
#[test]
fn an_object_changes_its_place_unread() {
    const PAGES: usize = 8 * FRAMES_MIN as usize;
    let Some(pager) = start(config(FRAMES_MIN), Shaky::new(0, 8192)) else { return };
    let object = pager.create(PAGES * PAGE, 1, true).expect("room");
    // SAFETY: within the object, wherever it is.
    let word = |start: NonNull<u8>, page: usize| unsafe { start.as_ptr().add(page * PAGE).cast::<u64>() };
    // SAFETY: as above.
    (0..PAGES).for_each(|page| unsafe { word(object, page).write_volatile(page as u64 + 1) });
    let read = || pager.count(Event::ReadRead) + pager.count(Event::WriteRead) + pager.count(Event::Ahead);
    let before = read();
    // SAFETY: the old place is used no more.
    let moved = unsafe { pager.relocate(object, 2 * PAGES * PAGE) }.expect("room");
    let cost = read() - before;
    assert!(cost < u64::from(FRAMES_MIN), "{cost} pages read to move an object of {PAGES}");
    pager.validate().expect("an invariant");
    // SAFETY: as above.
    (0..PAGES).for_each(|page| unsafe { assert_eq!(word(moved, page).read_volatile(), page as u64 + 1) });
    end(pager);
}

/// Pages that come together may lie in several mappings, where the program has forbidden itself some of them
/// while they were out, or locked them.
#[test]
fn runs_of_pages_come_back_to_several_mappings() {
    const PAGES: usize = 8 * FRAMES_MIN as usize;
    let Some(pager) = start(config(2 * FRAMES_MIN), Shaky::new(0, 8192)) else { return };
    let object = pager.create(PAGES * PAGE, 1, true).expect("room").as_ptr();
    // SAFETY: within the object.
    let word = |page: usize| unsafe { object.add(page * PAGE).cast::<u64>() };
    // SAFETY: as above, and nothing is forbidden yet.
    (0..PAGES).for_each(|page| unsafe { word(page).write_volatile(page as u64 + 1) });
    let is_forbidden = |page: usize| page % 37 == 5 || page % 50 == 9;
    for page in (0..PAGES).filter(|&page| is_forbidden(page)) {
        let protection = if page % 2 == 0 { libc::PROT_NONE } else { libc::PROT_READ };
        // SAFETY: a page of the object, which nobody else uses.
        assert_eq!(unsafe { libc::mprotect(word(page).cast(), PAGE, protection) }, 0);
    }
    // SAFETY: as above.
    unsafe { libc::madvise(word(100).cast(), 3 * PAGE, libc::MADV_DONTDUMP) };
    let mut random = Random::new();
    for step in 0..8 * PAGES {
        let page = if step < 4 * PAGES { step % PAGES } else { random.below(PAGES) };
        if !is_forbidden(page) {
            // SAFETY: as above.
            assert_eq!(unsafe { word(page).read_volatile() }, page as u64 + 1);
        }
    }
    for page in 0..PAGES {
        // SAFETY: as above.
        unsafe {
            assert_eq!(libc::mprotect(word(page).cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
            assert_eq!(word(page).read_volatile(), page as u64 + 1);
        }
    }
    end(pager);
}

/// Threads that each own every so-manieth word of the same pages: a write that is lost while its page goes is
/// seen.
#[test]
fn threads_share_pages() {
    let mut seeds = Random::new();
    for config in [config(FRAMES_MIN), packing(FRAMES_MIN)] {
        let Some(pager) = start(config, Shaky::new(0, 8192)) else { return };
        share_pages(pager, &mut seeds);
        end(pager);
    }
}

fn share_pages(pager: &'static Pager<Shaky>, seeds: &mut Random) {
    const THREADS: usize = 4;
    const PAGES: usize = 5 * FRAMES_MIN as usize;
    let object = pager.create(PAGES * PAGE, 1, true).expect("room");
    let start = object.as_ptr().addr();
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let mut random = Random::seeded(seeds.next());
            std::thread::spawn(move || {
                let words = PAGES * PAGE / 8 / THREADS;
                let mut model = vec![0u64; words];
                for _ in 0..30_000 {
                    // Few words of each page, so that pages are shared.
                    let word = random.below(words / 64) * 64;
                    let place = (start + (word * THREADS + thread) * 8) as *mut u64;
                    // SAFETY: each thread has words of its own within the object.
                    unsafe {
                        assert_eq!(place.read_volatile(), model[word], "word {word} of thread {thread}");
                        if random.below(2) == 0 {
                            model[word] = random.next();
                            place.write_volatile(model[word]);
                        }
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread found its own words");
    }
    pager.validate().expect("an invariant");
}
