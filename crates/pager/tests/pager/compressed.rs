//! Compressed pages: what fits is never read from the store; what does not is written behind, also to a disk
//! that is full for a while; and what does not pay is given up.

use crate::common::{READS, Random, Shaky, end, packing, start};
use std::sync::atomic::Ordering::Relaxed;
use vellum_pager::{Event, FRAMES_MIN, PAGE, Pager};

const WORDS: usize = PAGE / 8;

/// An object of pages of which one word in `sparse` is random.
struct Object {
    start: *mut u64,
    seeds: Vec<u64>,
    sparse: usize,
}

impl Object {
    fn new(pager: &'static Pager<&'static Shaky>, pages: usize, sparse: usize) -> Object {
        let start = pager.create(pages * PAGE, 1, true).expect("room").as_ptr().cast();
        Object { start, seeds: vec![0; pages], sparse }
    }

    fn words(&self, page: usize) -> impl Iterator<Item = (*mut u64, u64)> + '_ {
        let mut random = Random::seeded(self.seeds[page]);
        (0..WORDS / self.sparse).map(move |index| {
            // SAFETY: within the object.
            (unsafe { self.start.add(page * WORDS + index * self.sparse) }, random.next())
        })
    }

    fn write(&mut self, page: usize, seed: u64) {
        self.seeds[page] = seed;
        // SAFETY: within the object, which this thread alone uses.
        self.words(page).for_each(|(word, value)| unsafe { word.write_volatile(value) });
    }

    fn check(&self, page: usize) {
        for (word, value) in self.words(page) {
            // SAFETY: as above.
            assert_eq!(unsafe { word.read_volatile() }, value, "page {page}");
        }
    }
}

fn read(pager: &Pager<&'static Shaky>) -> u64 {
    pager.count(Event::ReadRead) + pager.count(Event::WriteRead)
}

#[test]
fn pages_that_fit_are_never_read_from_the_store() {
    const PAGES: usize = 8 * FRAMES_MIN as usize;
    let mut random = Random::new();
    let store = Shaky::lasting(0, 8192);
    // Were it used, the program would be stopped.
    store.fails.store(1, Relaxed);
    let Some(pager) = start(packing(4 * FRAMES_MIN), store) else { return };
    let mut object = Object::new(pager, PAGES, 32);
    (0..PAGES).for_each(|page| object.write(page, page as u64 + 1));
    for _ in 0..20 * PAGES {
        let page = random.below(PAGES);
        object.check(page);
        if random.below(3) == 0 {
            object.write(page, random.next());
        }
    }
    let unpacked = pager.count(Event::ReadUnpacked) + pager.count(Event::WriteUnpacked);
    assert!(unpacked > PAGES as u64, "{unpacked} pages decompressed");
    assert_eq!((read(pager), pager.count(Event::Written)), (0, 0));
    end(pager);
}

/// Pages that compress by a third, in objects of several times what frames and compressed pages hold.
#[test]
fn pages_written_behind_survive_a_disk_that_is_full_for_a_while() {
    const PAGES: usize = 12 * FRAMES_MIN as usize;
    let mut random = Random::new();
    let store = Shaky::lasting(0, 8192);
    store.spares.store(READS, Relaxed);
    store.errno.store(libc::ENOSPC, Relaxed);
    store.left.store(0, Relaxed);
    store.fails.store(1, Relaxed);
    let Some(pager) = start(packing(FRAMES_MIN), store) else { return };
    let mut object = Object::new(pager, PAGES, 3);
    (0..PAGES).for_each(|page| object.write(page, page as u64 + 1));
    for _ in 0..4 {
        store.left.store(5, Relaxed);
        for _ in 0..3 * PAGES {
            let page = random.below(PAGES);
            object.check(page);
            object.write(page, random.next());
        }
        assert_eq!(store.left.load(Relaxed), 0, "writes have failed");
        (0..PAGES).for_each(|page| object.check(page));
        pager.validate().expect("an invariant");
    }
    assert!(pager.count(Event::Packed) > 0 && pager.count(Event::Written) > 0 && read(pager) > 0);
    end(pager);
}

/// Pages that do not compress: the memory that others had goes back to the frames.
#[test]
fn what_does_not_pay_is_given_up() {
    const PAGES: usize = 16 * FRAMES_MIN as usize;
    /// Rounds in which it must have been found out.
    const ROUNDS: usize = 100;
    let Some(pager) = start(packing(2 * FRAMES_MIN), Shaky::lasting(0, 8192)) else { return };
    let mut sparse = Object::new(pager, PAGES, 32);
    (0..PAGES).for_each(|page| sparse.write(page, page as u64 + 1));
    assert!(pager.compressed_frames() > 0);
    let mut dense = Object::new(pager, PAGES, 1);
    let mut rounds = 0;
    while pager.compressed_frames() > 0 {
        rounds += 1;
        assert!(rounds < ROUNDS, "{} frames are kept", pager.compressed_frames());
        (0..PAGES).for_each(|page| dense.write(page, (rounds * PAGES + page) as u64));
        pager.validate().expect("an invariant");
    }
    for page in 0..PAGES {
        sparse.check(page);
        dense.check(page);
    }
    end(pager);
}
