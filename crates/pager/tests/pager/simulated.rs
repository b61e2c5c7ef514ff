//! The whole pager, threads and kernel included, on a reference string whose exact figures are known: what it
//! fetches is no less than the best replacement there can be has to, and no more than LRU in half its frames.

use crate::common::{Random, Shaky, config, end, start};
use crate::recency::by_recency;
use std::collections::{BTreeMap, BTreeSet};
use vellum_pager::{Choice, Config, Event, FRAMES_MIN, PAGE};
use vellum_workset::Page;
use vellum_workset::oracle::StackDistances;

const PAGES: usize = 3 * FRAMES_MIN as usize;
const REFERENCES: usize = 30_000;

/// The faults of Belady's MIN: the page referenced again last, or never, is replaced.
fn least_faults(string: &[Page], frames: usize) -> u64 {
    const NEVER: usize = usize::MAX;
    let mut next = vec![NEVER; string.len()];
    let mut seen = BTreeMap::new();
    for (at, page) in string.iter().enumerate().rev() {
        next[at] = seen.insert(*page, at).unwrap_or(NEVER);
    }
    let (mut by_next, mut of_page, mut faults) = (BTreeSet::new(), BTreeMap::new(), 0);
    for (at, page) in string.iter().enumerate() {
        match of_page.remove(page) {
            Some(due) => {
                by_next.remove(&(due, *page));
            }
            None => {
                faults += 1;
                if by_next.len() == frames
                    && let Some((_, gone)) = by_next.pop_last()
                {
                    of_page.remove(&gone);
                }
            }
        }
        by_next.insert((next[at], *page));
        of_page.insert(*page, next[at]);
    }
    faults
}

#[test]
fn the_least_faults_by_hand() {
    let string: Vec<Page> = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5].map(Page).to_vec();
    assert_eq!([3, 4, 5].map(|frames| least_faults(&string, frames)), [7, 6, 5]);
}

#[test]
fn fetches_are_between_the_optimum_and_lru_of_half_the_frames() {
    let seed = Random::new().next();
    // Recently referenced pages are the likelier, so that frames are worth something all the way down.
    let tails: Vec<f64> = (1..PAGES as i32).map(|h| 0.97f64.powi(h)).collect();
    let string = by_recency(&tails, seed, REFERENCES);
    let mut lru = StackDistances::new();
    string.iter().for_each(|&page| {
        lru.reference(page);
    });
    let most = lru.lru_faults(FRAMES_MIN as usize / 2);
    let least = least_faults(&string, FRAMES_MIN as usize);
    for policy in [Choice::Clock, Choice::Window(20_000_000)] {
        let Some(pager) = start(Config { policy, ..config(FRAMES_MIN) }, Shaky::new(0, 8192)) else { return };
        let object = pager.create((PAGES + 1) * PAGE, 1, true).expect("room").as_ptr();
        for page in &string {
            let page = usize::try_from(page.0).expect("a small page");
            // SAFETY: within the object.
            unsafe {
                let word = object.add(page * PAGE).cast::<u64>();
                let before = word.read_volatile();
                assert!(before == 0 || before == page as u64 + 1, "page {page} holds {before}");
                word.write_volatile(page as u64 + 1);
            }
        }
        let fetched: u64 =
            [Event::ReadZeroFilled, Event::WriteZeroFilled, Event::ReadRead, Event::WriteRead, Event::Ahead]
                .iter()
                .map(|&event| pager.count(event))
                .sum();
        eprintln!("{policy:?}: {fetched} pages fetched; {least} at least, {most} by LRU in half the frames");
        assert!((least..=most).contains(&fetched), "{policy:?}: {fetched}, not within {least}..={most}");
        end(pager);
    }
}
