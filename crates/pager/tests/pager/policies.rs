//! Policies, without a kernel: against exact algorithms on reference strings, and their bookkeeping against a
//! model.

use crate::recency::by_recency;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use vellum_pager::PageNo;
use vellum_pager::policy::{Clock, DiscardableFirst, Link, Policy, Window};
use vellum_workset::Page;
use vellum_workset::oracle::{StackDistances, exact_working_set};

const PAGES: usize = 60;

/// A reference string with phases, and its pages as the theory numbers them.
fn references(seed: u64, count: usize) -> Vec<Page> {
    let tails: Vec<f64> = (1..PAGES).map(|h| if h < 20 { 0.7 - 0.03 * h as f64 } else { 0.004 }).collect();
    by_recency(&tails, seed, count)
}

fn number(page: Page) -> PageNo {
    PageNo(u32::try_from(page.0).expect("a small page"))
}

/// A memory of `frames` frames of which at most `mapped_max` are mapped, under `policy`. Returns the faults.
fn replace(policy: &mut dyn Policy, string: &[Page], frames: u32, mapped_max: u32) -> u64 {
    let mut links = vec![Link::default(); PAGES + 1];
    let (mut mapped, mut held) = (BTreeSet::new(), BTreeSet::new());
    let mut faults = 0;
    for (now, &page) in (0..).zip(string) {
        let page = number(page);
        if held.remove(&page) {
            policy.referenced(&mut links, page, now);
            mapped.insert(page);
        } else if !mapped.contains(&page) {
            faults += 1;
            while policy.held() + policy.mapped() >= frames {
                if let Some(victim) = policy.victim(&mut links, now) {
                    assert!(held.remove(&victim) || mapped.remove(&victim), "{victim:?} has no frame");
                } else {
                    let probed = policy.probe(&mut links, now).expect("a mapped page");
                    assert!(mapped.remove(&probed) && held.insert(probed));
                }
            }
            policy.arrived(&mut links, page, now);
            mapped.insert(page);
        }
        while policy.mapped() > mapped_max {
            let probed = policy.probe(&mut links, now).expect("a mapped page");
            assert!(mapped.remove(&probed) && held.insert(probed), "{probed:?} was not mapped");
        }
        assert_eq!((policy.mapped() as usize, policy.held() as usize), (mapped.len(), held.len()));
    }
    faults
}

/// With every page held as soon as it was referenced, every reference is seen, and the clock is exactly LRU.
#[test]
fn a_clock_that_sees_everything_is_lru() {
    for seed in 1..6 {
        let string = references(seed, 20_000);
        let mut oracle = StackDistances::new();
        string.iter().for_each(|&page| {
            oracle.reference(page);
        });
        for frames in [5, 10, 20, 40] {
            let faults = replace(&mut Clock::new(), &string, frames, 0);
            assert_eq!(faults, oracle.lru_faults(frames as usize), "seed {seed}, {frames} frames");
        }
    }
}

/// With nothing held before a frame is wanted, nothing is seen, and the clock is first in first out.
#[test]
fn a_clock_that_sees_nothing_is_fifo() {
    for seed in 1..6 {
        let string = references(seed, 20_000);
        for frames in [5usize, 10, 20, 40] {
            let (mut queue, mut faults) = (VecDeque::new(), 0);
            for page in &string {
                if !queue.contains(page) {
                    faults += 1;
                    if queue.len() == frames {
                        queue.pop_front();
                    }
                    queue.push_back(*page);
                }
            }
            let found = replace(&mut Clock::new(), &string, frames as u32, frames as u32);
            assert_eq!(found, faults, "seed {seed}, {frames} frames");
        }
    }
}

/// In between, a second chance is worth something where LRU is the best there is: recently referenced pages
/// are the likelier, the more so the more recently.
#[test]
fn an_eighth_held_is_between_the_two() {
    let tails: Vec<f64> = (1..PAGES as i32).map(|h| 0.9f64.powi(h)).collect();
    let string = by_recency(&tails, 9, 50_000);
    for frames in [16, 32] {
        let fifo = replace(&mut Clock::new(), &string, frames, frames);
        let lru = replace(&mut Clock::new(), &string, frames, 0);
        let clock = replace(&mut Clock::new(), &string, frames, frames - frames / 8);
        assert!(lru < clock && clock < fifo, "{frames} frames: {lru} {clock} {fifo}");
    }
}

/// Pages that leave the window are given up at once and nothing else is: with every reference seen, the
/// faults are those of the exact working set.
#[test]
fn a_window_that_sees_everything_is_the_working_set() {
    for window in [5u64, 30, 100, 1000] {
        let string = references(window, 20_000);
        let mut policy = Window::new(window);
        let mut links = vec![Link::default(); PAGES + 1];
        let mut resident = BTreeSet::new();
        let mut faults = 0;
        let mut sizes = 0;
        for (now, &page) in (1..).zip(&string) {
            let page = number(page);
            if resident.insert(page) {
                faults += 1;
                policy.arrived(&mut links, page, now);
            } else {
                policy.referenced(&mut links, page, now);
            }
            policy.probe(&mut links, now).expect("the page just referenced");
            // W(t, T): references at t - T + 1 up to t.
            while let Some(old) = policy.outside(&links, now + 1) {
                assert_eq!(policy.victim(&mut links, now), Some(old));
                resident.remove(&old);
            }
            sizes += resident.iter().filter(|&&page| policy.contains(&links, page, now)).count();
        }
        let (mean, exact) = exact_working_set(&string, window as usize);
        assert_eq!(faults, exact, "window {window}");
        let found = sizes as f64 / string.len() as f64;
        assert!((found - mean).abs() <= 1.0, "window {window}: {found} pages, exactly {mean}");
    }
}

/// Seeing only what it looks for, four times in a window, it keeps all of the exact working set, and nothing
/// that left it more than a quarter of a window and a moment ago.
#[test]
fn a_window_that_looks_keeps_the_working_set_and_little_more() {
    for window in [8u64, 40, 200, 1000] {
        let string = references(window, 20_000);
        let mut policy = Window::new(window);
        let mut links = vec![Link::default(); PAGES + 1];
        let (mut mapped, mut held) = (BTreeSet::new(), BTreeSet::new());
        let mut last = [None; PAGES + 1];
        for (now, &page) in (1u64..).zip(&string) {
            let page = number(page);
            if held.remove(&page) {
                policy.referenced(&mut links, page, now);
            } else if !mapped.contains(&page) {
                policy.arrived(&mut links, page, now);
            }
            mapped.insert(page);
            last[page.index()] = Some(now);
            while policy.is_due(&links, now) {
                let probed = policy.probe(&mut links, now).expect("a mapped page");
                assert!(mapped.remove(&probed) && held.insert(probed));
            }
            while let Some(old) = policy.outside(&links, now) {
                assert_eq!(policy.victim(&mut links, now), Some(old));
                held.remove(&old);
            }
            for (index, last) in last.iter().enumerate() {
                let page = PageNo(index as u32);
                let is_there = mapped.contains(&page) || held.contains(&page);
                let age = last.map_or(u64::MAX, |last| now - last);
                assert!(is_there || age >= window, "window {window}: page {index} of age {age} is not there");
                assert!(!is_there || age <= window + window / 4, "{window}: page {index} of age {age}");
            }
        }
    }
}

/// A page is due to be looked at a quarter of a window after it was last.
#[test]
fn a_window_looks_four_times() {
    let mut links = vec![Link::default(); 4];
    let mut policy = Window::new(100);
    policy.arrived(&mut links, PageNo(1), 10);
    assert!(!policy.is_due(&links, 34) && policy.is_due(&links, 35));
    assert_eq!(policy.probe(&mut links, 35), Some(PageNo(1)));
    assert!(!policy.is_due(&links, 1000), "nothing is mapped");
    assert!(policy.contains(&links, PageNo(1), 135) && !policy.contains(&links, PageNo(1), 136));
    assert!(Window::new(1).goes_by_time() && !Clock::new().goes_by_time());
}

#[derive(Clone, Debug)]
enum Deed {
    Arrive(u32),
    Refer(usize),
    Probe,
    Stay(usize),
    Victim,
    Spare,
    Go(usize),
    Discard(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (0u32..40).prop_map(Deed::Arrive),
        2 => (0usize..40).prop_map(Deed::Refer),
        3 => Just(Deed::Probe),
        1 => (0usize..40).prop_map(Deed::Stay),
        2 => Just(Deed::Victim),
        1 => Just(Deed::Spare),
        1 => (0usize..40).prop_map(Deed::Go),
        2 => (0usize..40).prop_map(Deed::Discard),
    ]
}

fn nth(set: &BTreeSet<PageNo>, which: usize) -> Option<PageNo> {
    set.iter().nth(which % set.len().max(1)).copied()
}

/// Whatever happens in whatever order, no page is lost, doubled, or given up twice, and discardable pages go
/// before all others, the oldest first.
fn keeps_its_books(policy: &mut dyn Policy, deeds: &[Deed]) -> Result<(), TestCaseError> {
    let mut links = vec![Link::default(); 40];
    let (mut mapped, mut held) = (BTreeSet::new(), BTreeSet::new());
    let mut discardable: VecDeque<PageNo> = VecDeque::new();
    for (now, deed) in (0..).zip(deeds) {
        let spare_of = |set: &BTreeSet<PageNo>| -> BTreeSet<PageNo> {
            set.iter().filter(|page| !discardable.contains(page)).copied().collect()
        };
        match *deed {
            Deed::Arrive(page) => {
                let page = PageNo(page);
                if !mapped.contains(&page) && !held.contains(&page) {
                    policy.arrived(&mut links, page, now);
                    mapped.insert(page);
                }
            }
            Deed::Refer(which) => {
                if let Some(page) = nth(&held, which) {
                    policy.referenced(&mut links, page, now);
                    held.remove(&page);
                    mapped.insert(page);
                    discardable.retain(|&other| other != page);
                }
            }
            Deed::Probe => match policy.probe(&mut links, now) {
                Some(page) => {
                    prop_assert!(spare_of(&mapped).contains(&page));
                    mapped.remove(&page);
                    held.insert(page);
                }
                None => prop_assert!(spare_of(&mapped).is_empty()),
            },
            Deed::Stay(which) => {
                if let Some(page) = nth(&spare_of(&held), which) {
                    policy.stays(&mut links, page);
                    held.remove(&page);
                    mapped.insert(page);
                }
            }
            Deed::Victim | Deed::Spare => {
                let expected = discardable.pop_front();
                let victim = policy.victim(&mut links, now);
                match (expected, victim) {
                    (Some(expected), victim) => prop_assert_eq!(victim, Some(expected)),
                    (None, Some(page)) => prop_assert!(held.contains(&page)),
                    (None, None) => prop_assert!(held.is_empty()),
                }
                if let Some(page) = victim {
                    mapped.remove(&page);
                    held.remove(&page);
                    if matches!(deed, Deed::Spare) {
                        policy.spared(&mut links, page);
                        held.insert(page);
                    }
                }
            }
            Deed::Go(which) => {
                let all = mapped.union(&held).copied().collect();
                if let Some(page) = nth(&all, which) {
                    policy.gone(&mut links, page);
                    mapped.remove(&page);
                    held.remove(&page);
                    discardable.retain(|&other| other != page);
                }
            }
            Deed::Discard(which) => {
                let all = mapped.union(&held).copied().collect();
                if let Some(page) = nth(&all, which) {
                    policy.discardable(&mut links, page);
                    if !discardable.contains(&page) {
                        discardable.push_back(page);
                    }
                }
            }
        }
        prop_assert_eq!((policy.mapped() as usize, policy.held() as usize), (mapped.len(), held.len()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn policies_keep_their_books(deeds in proptest::collection::vec(deed(), 1..300)) {
        keeps_its_books(&mut DiscardableFirst::new(Clock::new()), &deeds)?;
        keeps_its_books(&mut DiscardableFirst::new(Window::new(50)), &deeds)?;
    }
}
