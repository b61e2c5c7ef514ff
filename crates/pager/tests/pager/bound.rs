//! Tests of the bound on memory: programs use many times their frames while their memory is sampled.

use crate::common::{Limit, Pages, Random, end, start, value};
use std::time::Duration;

const FRAMES: usize = 2048;
/// Pages of all objects together.
const PAGES: usize = 8 * FRAMES;

/// Goes through all pages in order, and then to as many at random; writes to some.
fn go(pages: Pages, mut random: Random) {
    let mut rounds = vec![1; pages.count];
    for touch in 0..2 * pages.count {
        let page = if touch < pages.count { touch } else { random.below(pages.count) };
        assert!(pages.has(page, value(rounds[page], page)), "page {page}, written {} times", rounds[page]);
        if random.below(3) == 0 {
            rounds[page] += 1;
            pages.put(page, value(rounds[page], page));
        }
    }
}

fn watch(threads: usize) {
    let _limit = Limit::of_seconds(120);
    let mut seeds = Random::new();
    let Some(pager) = start(FRAMES as u32) else { return };
    let objects: Vec<Pages> = (0..threads).map(|_| Pages::new(pager, PAGES / threads)).collect();
    let resident = || objects.iter().map(|pages| pages.resident()).sum::<usize>();
    // Memory is filled faster than a disk takes it. The excess goes, however much came.
    let settle = || {
        while resident() > FRAMES || pager.resident_pages() > FRAMES as u32 {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    objects.iter().for_each(|pages| pages.fill(1));
    eprintln!("{} pages in memory when {PAGES} were filled", resident());
    settle();
    let mut samples = Vec::new();
    std::thread::scope(|scope| {
        let mut launch = |&pages: &Pages| {
            let random = Random::seeded(seeds.next());
            scope.spawn(move || go(pages, random))
        };
        let running: Vec<_> = objects.iter().map(&mut launch).collect();
        while !running.iter().all(|thread| thread.is_finished()) {
            samples.push(resident());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    samples.sort_unstable();
    let part = |percent: usize| samples[(samples.len() - 1) * percent / 100];
    eprintln!("pages in memory: {} at 50 %, {} at 90 %, {} at most", part(50), part(90), part(100));
    // Where processors or the disk are busy, more arrive for a while. Without a bound all would be there.
    assert!(part(50) <= 2 * FRAMES, "twice the frames, half of the time");
    settle();
    assert!(pager.frames() <= FRAMES as u32);
    end(pager);
}

#[test]
fn one_thread_keeps_to_the_frames() {
    vellum_skip::alone(|| watch(1));
}

#[test]
fn two_threads_keep_to_the_frames() {
    vellum_skip::alone(|| watch(2));
}
