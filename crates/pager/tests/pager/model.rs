//! Random operations with few frames, compared with a model of what the pages must hold.

use crate::common::{Limit, Pages, Random, end, start};
use std::ops::Range;
use std::ptr::NonNull;
use vellum_pager::{FRAMES_MIN, PAGE, Pager, Refused};
use vellum_sys::Span;

/// Words of a page that the model follows.
const PROBES: [usize; 4] = [0, 170, 341, PAGE / 8 - 1];

/// The values that the probes of a page must have; `None` for any.
type Page = [Option<u64>; PROBES.len()];
const ANYTHING: Page = [None; PROBES.len()];
const ZERO: Page = [Some(0); PROBES.len()];

struct Object {
    start: NonNull<u8>,
    pages: Vec<Page>,
    is_mapping: bool,
    marked: Range<usize>,
}

impl Object {
    fn span(&self, pages: &Range<usize>) -> Span {
        Span::at(self.at(pages.start), pages.len() * PAGE)
    }

    fn at(&self, page: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(page * PAGE)
    }

    fn probe(&self, page: usize, probe: usize) -> *mut u64 {
        self.at(page).wrapping_add(PROBES[probe] * 8).cast()
    }

    fn check(&self, page: usize) {
        for (probe, wanted) in self.pages[page].into_iter().enumerate() {
            // SAFETY: a word of the object, which only this thread uses.
            let found = unsafe { self.probe(page, probe).read_volatile() };
            assert!(
                wanted.is_none_or(|wanted| wanted == found),
                "{found:#x}, not {wanted:x?}: {page} {probe}"
            );
        }
    }

    /// Sees that every byte of a page is zero.
    fn check_zero(&self, page: usize) {
        // SAFETY: a page of the object, which only this thread uses.
        let words = unsafe { std::slice::from_raw_parts(self.at(page).cast::<u64>(), PAGE / 8) };
        assert!(words.iter().all(|&word| word == 0), "page {page} of {:p}", self.start);
    }

    fn write(&mut self, page: usize, random: &mut Random) {
        for probe in 0..PROBES.len() {
            if random.below(4) > 0 {
                let word = random.next();
                // SAFETY: a word of the object, which only this thread uses.
                unsafe { self.probe(page, probe).write_volatile(word) };
                self.pages[page][probe] = Some(word);
            }
        }
    }
}

struct Program {
    pager: &'static Pager,
    random: Random,
    objects: Vec<Object>,
    /// Pages of all objects, about.
    most: usize,
}

impl Program {
    fn step(&mut self) {
        let total: usize = self.objects.iter().map(|object| object.pages.len()).sum();
        let choice = self.random.below(24);
        if self.objects.is_empty() || choice < 3 && total < self.most {
            return self.make();
        }
        let which = self.random.below(self.objects.len());
        let marked = std::mem::take(&mut self.objects[which].marked);
        if !marked.is_empty() {
            let object = &self.objects[which];
            self.pager.need(object.span(&marked));
            assert!(!self.pager.is_marked(object.at(marked.start)));
        }
        match choice {
            3 if self.objects.len() > 3 => self.finish(which),
            4 if self.objects[which].is_mapping => self.cut(which),
            4 | 5 if !self.objects[which].is_mapping => self.resize(which),
            6 | 7 => self.forget(which),
            8 => self.zero(which),
            _ => self.touch(which),
        }
    }

    fn make(&mut self) {
        let (pager, random) = (self.pager, &mut self.random);
        let count = 1 + random.below(self.most / 8);
        let is_mapping = random.below(3) == 0;
        let is_zero = is_mapping || random.below(2) == 0;
        let align = [1, PAGE, 16 * PAGE][random.below(if is_mapping { 2 } else { 3 })];
        let bytes = count * PAGE - random.below(PAGE);
        let made = if is_mapping { pager.map(bytes) } else { pager.create(bytes, align, is_zero) };
        let start = made.expect("room");
        assert!(start.addr().get().is_multiple_of(align.max(PAGE)) && pager.owns(start.as_ptr()));
        if is_mapping {
            assert_eq!(pager.mapped_from(start.as_ptr()), Some(count * PAGE));
        } else {
            assert_eq!(pager.len(start.as_ptr()), Some(count * PAGE));
        }
        let pages = vec![if is_zero { ZERO } else { ANYTHING }; count];
        let object = Object { start, pages, is_mapping, marked: 0..0 };
        if is_zero && random.below(2) == 0 {
            (0..count).for_each(|page| object.check_zero(page));
        }
        self.objects.push(object);
    }

    fn finish(&mut self, which: usize) {
        let Object { start, pages, is_mapping, .. } = self.objects.swap_remove(which);
        // SAFETY: the object is used no more.
        unsafe {
            if is_mapping {
                self.pager.unmap(Span::at(start.as_ptr(), pages.len() * PAGE));
            } else {
                assert_eq!(self.pager.destroy(start), Ok(pages.len() * PAGE));
            }
        }
    }

    fn cut(&mut self, which: usize) {
        let mut object = self.objects.swap_remove(which);
        let range = self.random.range(object.pages.len());
        // SAFETY: the pages are used no more.
        unsafe { self.pager.unmap(object.span(&range)) };
        let behind = object.pages.split_off(range.end);
        object.pages.truncate(range.start);
        let start = NonNull::new(object.at(range.end)).expect("an address");
        let rest = Object { start, pages: behind, is_mapping: true, marked: 0..0 };
        self.objects.extend([object, rest].into_iter().filter(|object| !object.pages.is_empty()));
    }

    fn resize(&mut self, which: usize) {
        let object = &mut self.objects[which];
        let count = 1 + self.random.below(self.most / 6);
        // SAFETY: the part cut off is used no more.
        match unsafe { self.pager.resize(object.start, count * PAGE) } {
            Ok(()) => object.pages.resize(count, ANYTHING),
            refused => assert!(refused == Err(Refused::Span) && count > object.pages.len(), "{refused:?}"),
        }
        assert_eq!(self.pager.len(object.start.as_ptr()), Some(object.pages.len() * PAGE));
    }

    fn forget(&mut self, which: usize) {
        let object = &mut self.objects[which];
        let range = self.random.range(object.pages.len());
        let forget = [Pager::mark, Pager::flush][self.random.below(2)];
        // SAFETY: the model does not need what the pages hold.
        unsafe { forget(self.pager, object.span(&range)) };
        assert!(self.pager.is_marked(object.at(range.start)));
        object.pages[range.clone()].fill(ANYTHING);
        // They are needed again when the object is used next.
        object.marked = range;
    }

    fn zero(&mut self, which: usize) {
        let object = &mut self.objects[which];
        let range = self.random.range(object.pages.len());
        // SAFETY: the model does not need what the pages hold.
        unsafe { self.pager.zero(object.span(&range)) };
        object.pages[range.clone()].fill(ZERO);
        range.for_each(|page| object.check_zero(page));
    }

    fn touch(&mut self, which: usize) {
        let object = &mut self.objects[which];
        let range = self.random.range(object.pages.len());
        let is_written = self.random.below(2) == 0;
        for page in range {
            object.check(page);
            if is_written {
                object.write(page, &mut self.random);
            }
        }
    }

    fn run(mut self, steps: usize) {
        (0..steps).for_each(|_| self.step());
        for object in &self.objects {
            (0..object.pages.len()).for_each(|page| object.check(page));
        }
        (0..self.objects.len()).rev().for_each(|which| self.finish(which));
    }
}

/// Runs programs in threads, with objects of several times the frames together.
fn exercise(frames: u32, threads: usize, steps: usize) {
    let _limit = Limit::of_seconds(60);
    let mut seeds = Random::new();
    let Some(pager) = start(frames) else { return };
    let running: Vec<_> = (0..threads)
        .map(|_| {
            let random = Random::seeded(seeds.next());
            let most = 6 * frames as usize / threads;
            std::thread::spawn(move || Program { pager, random, objects: Vec::new(), most }.run(steps))
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().expect("a program found what it had written"));
    assert!(pager.frames() <= frames);
    end(pager);
    assert!(!pager.is_serving());
}

#[test]
fn a_program_finds_what_it_wrote() {
    exercise(FRAMES_MIN, 1, 2500 * vellum_skip::scale());
}

#[test]
fn threads_find_what_they_wrote() {
    exercise(4 * FRAMES_MIN, 3, 1000 * vellum_skip::scale());
}

/// Pages dropped and used again do not count as fresh.
#[test]
fn pages_needed_again_are_cleared_for_the_next_object() {
    let Some(pager) = start(FRAMES_MIN) else { return };
    for forget in [Pager::mark, Pager::flush, Pager::zero] {
        let first = Pages::new(pager, 8);
        // SAFETY: the pages hold nothing that is needed.
        unsafe { forget(pager, first.from(0)) };
        pager.need(first.from(0));
        first.fill(1);
        first.end(pager);
        let second = Pages::new(pager, 8);
        assert_eq!(first.at(0), second.at(0), "the same pages");
        assert!((0..8).all(|page| second.has(page, 0)));
        second.end(pager);
    }
    end(pager);
}

/// The counts are as the pages that moved.
#[test]
fn counts_are_plausible() {
    vellum_skip::alone(|| {
        let _limit = Limit::of_seconds(60);
        const FRAMES: usize = 4 * FRAMES_MIN as usize;
        let Some(pager) = start(FRAMES as u32) else { return };
        let settle = |pages: Pages| {
            pages.settle(FRAMES);
            pager.counts()
        };
        let pages = Pages::new(pager, 8 * FRAMES);
        pages.fill(1);
        let filled = settle(pages);
        assert!((7 * FRAMES..=9 * FRAMES).contains(&(filled.written as usize)), "{filled:?}");
        assert_eq!(filled.discarded, 0);
        assert_eq!(pages.wrong(1), None);
        let looked = settle(pages);
        // All but those that were in memory, each once or, read too far ahead, twice.
        let read = (looked.read - filled.read) as usize;
        assert!((6 * FRAMES..=16 * FRAMES).contains(&read), "{read}");
        // SAFETY: what the pages hold is not needed.
        unsafe { pager.mark(pages.from(0)) };
        let others = Pages::new(pager, 2 * FRAMES);
        others.fill(2);
        // The evicting thread drops marked pages at its next look.
        while settle(others).discarded == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(others.wrong(2), None);
        end(pager);
    });
}

/// Pages that the program forbids itself, or locks into memory, are as they were, and others make room.
#[test]
fn protected_and_locked_pages_keep_their_contents() {
    const PAGES: usize = 4 * FRAMES_MIN as usize;
    let _limit = Limit::of_seconds(60);
    let Some(pager) = start(FRAMES_MIN) else { return };
    let pages = Pages::new(pager, PAGES);
    let protect = |page: usize, protection| {
        // SAFETY: a page of the object, which nobody else uses.
        assert_eq!(unsafe { libc::mprotect(pages.at(page).cast(), PAGE, protection) }, 0);
    };
    pages.fill(1);
    let forbidden = [PAGES - 1, PAGES - 3, 7];
    forbidden.into_iter().for_each(|page| protect(page, libc::PROT_NONE));
    // SAFETY: a page of the object; a refusal changes nothing.
    let _ = unsafe { libc::mlock(pages.at(20).cast(), PAGE) };
    for round in 1..4 {
        pages.settle(FRAMES_MIN as usize);
        for page in (0..PAGES).filter(|page| !forbidden.contains(page)) {
            assert!(pages.has(page, crate::common::value(1, page)), "page {page} in round {round}");
        }
    }
    forbidden.into_iter().for_each(|page| protect(page, libc::PROT_READ | libc::PROT_WRITE));
    assert_eq!(pages.wrong(1), None);
    end(pager);
}
