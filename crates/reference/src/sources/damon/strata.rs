//! A process's memory cut into strata, of each of which one page is drawn.
//!
//! ```text
//! maps     ─heap──────  ─a─ ─b─   ─program text─   ─big──────────────────
//! areas    ├────────┤   ├─────┤                    ├──────────────────────┤
//! strata   ├──┼──┼──┤   ├─────┤                    ├┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┼┤
//! ```
//!
//! Too many areas are joined across small gaps. Each has strata in proportion to its resident memory.
//!
//! Left out are mappings without access, the mappings that the kernel adds to every process, and a program's
//! text and constants. (The other sources leave those out where other processes have them mapped too.)
//!
//! The sum of the strata whose page was referenced is an unbiased estimate for any cut, because pages are
//! drawn evenly. The cut decides the error of a single sum. Strata within which all pages are used alike add
//! no error.

use vellum_kernel::mapping::{Mapping, mappings, smaps};

pub(crate) type Stratum = (u64, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its resident bytes, or its length if these were not read.
    pub(crate) weight: u64,
}

const PAGE: u64 = vellum_sys::PAGE as u64;

/// The areas in the text of `maps`, in order and without overlap; `resident` says what is known of those that
/// begin at an address. A line that goes back behind the one before it is left out: the kernel writes none.
pub(crate) fn areas(maps: &[u8], resident: impl Fn(u64) -> Option<u64>) -> Vec<Area> {
    let mut last = 0;
    let area = |mapping: Mapping<'_>| {
        let Mapping { start, end, rights, .. } = mapping;
        if start < last || end == start {
            return None;
        }
        last = end;
        let of_program = mapping.is_private() && !rights.contains(&b'w') && mapping.is_of_file();
        let wanted = !rights.starts_with(b"---") && !mapping.is_kernels() && !of_program;
        wanted.then(|| Area { start, end, weight: resident(start).unwrap_or(end - start).min(end - start) })
    };
    mappings(maps).filter_map(area).collect()
}

/// The resident bytes of each mapping in the text of `smaps`, by its first address.
pub(crate) fn resident(text: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    smaps(text).map(|(mapping, sizes)| (mapping.start, sizes.resident.0))
}

/// At most `most` strata of the areas, which are in order and do not overlap; none if there are no areas.
pub(crate) fn strata(areas: &[Area], most: usize) -> Vec<Stratum> {
    let areas = joined(areas, (most / 2).max(1));
    let weight: u128 = areas.iter().map(|area| u128::from(area.weight)).sum();
    let free = most.saturating_sub(areas.len()) as u128;
    let mut strata = Vec::with_capacity(most);
    for area in &areas {
        let pages = (area.end - area.start) / PAGE;
        let more = (free * u128::from(area.weight)).checked_div(weight).unwrap_or(0) as u64;
        let count = (1 + more).min(pages.max(1));
        let edge =
            |at: u64| area.start + (u128::from(pages) * u128::from(at) / u128::from(count)) as u64 * PAGE;
        strata.extend((0..count).map(|at| (edge(at), if at + 1 == count { area.end } else { edge(at + 1) })));
    }
    strata
}

/// At most `most` areas: the areas nearest to each other are joined, with the gap between them.
fn joined(areas: &[Area], most: usize) -> Vec<Area> {
    let mut gaps: Vec<u64> = areas.windows(2).map(|pair| pair[1].start.saturating_sub(pair[0].end)).collect();
    let mut surplus = areas.len().saturating_sub(most);
    gaps.sort_unstable();
    let widest = surplus.checked_sub(1).map(|last| gaps[last]);
    let mut joined: Vec<Area> = Vec::with_capacity(areas.len().min(most));
    for area in areas {
        match joined.last_mut() {
            Some(last)
                if surplus > 0
                    && widest.is_some_and(|widest| area.start.saturating_sub(last.end) <= widest) =>
            {
                (last.end, last.weight) = (area.end, last.weight.saturating_add(area.weight));
                surplus -= 1;
            }
            _ => joined.push(*area),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &[u8] = b"1000-3000 r-xp 00000000 fe:00 77    /usr/bin/x\n4000-5000 rw-p 00003000 fe:00 77    /usr/bin/x\n\
        8000-10000 rw-p 00000000 00:00 0          [heap]\n20000-30000 ---p 00000000 00:00 0\n\
        40000-42000 r--s 00000000 fe:00 78    /data file\n7ff0000-7ff2000 r--p 00000000 00:00 0   [vvar]\nrubbish\n";

    #[test]
    fn memory_that_can_be_referenced_is_found() {
        let found = areas(MAPS, |start| (start == 0x8000).then_some(0x1000));
        let weights: Vec<_> = found.iter().map(|area| (area.start, area.weight)).collect();
        assert_eq!(weights, [(0x4000, 0x1000), (0x8000, 0x1000), (0x40000, 0x2000)]);
        let smaps = b"8000-10000 rw-p 00000000 00:00 0 [heap]\nSize: 32 kB\nRss:    12 kB\nPss: 1 kB\nVmFlags: rd\nab000-ac000 rw-p 0 0:0 0\nRss: 4 kB\n";
        assert_eq!(resident(smaps).collect::<Vec<_>>(), [(0x8000, 12 << 10), (0xab000, 4 << 10)]);
    }

    #[test]
    fn lines_that_go_back_are_left_out() {
        let maps = b"8000-9000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n8800-a000 rw-p 0 0:0 0\na000-a000 rw-p 0 0:0 0\nb000-d000 rw-p 0 0:0 0\n";
        let found = areas(maps, |_| None);
        assert_eq!(found.iter().map(|area| area.start).collect::<Vec<_>>(), [0x8000, 0xb000]);
        let cut = strata(&found, 2);
        assert_eq!((cut[0].0, cut[cut.len() - 1].1), (0x8000, 0xd000));
    }

    #[test]
    fn strata_go_where_memory_is() {
        let area = |start: u64, pages: u64, weight: u64| Area { start, end: start + pages * PAGE, weight };
        let cut = strata(&[area(0, 100, 0), area(1 << 30, 100, 100 * PAGE)], 52);
        assert_eq!(cut.len(), 52);
        assert_eq!(cut[0], (0, 100 * PAGE), "what is empty is one stratum");
        assert!(cut[1..].iter().all(|(start, end)| (PAGE..=2 * PAGE).contains(&(end - start))));
        assert!(strata(&[], 10).is_empty());
    }

    proptest! {
        #[test]
        fn strata_cover_every_area_once_in_order_and_are_not_too_many(
            sizes in prop::collection::vec((1u64..300, 0u64..5000, any::<u32>()), 1..300),
            most in 2usize..500,
        ) {
            let mut at = PAGE;
            let areas: Vec<Area> = sizes.iter().map(|(pages, gap, weight)| {
                let start = at + gap * PAGE;
                at = start + pages * PAGE;
                Area { start, end: at, weight: u64::from(*weight) }
            }).collect();
            let cut = strata(&areas, most);
            prop_assert!(cut.len() <= most, "{} of {most}", cut.len());
            prop_assert!(cut.iter().all(|(start, end)| start < end && start % PAGE == 0 && end % PAGE == 0));
            prop_assert!(cut.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            for area in &areas {
                let inside: u64 = cut.iter().map(|(start, end)| end.min(&area.end).saturating_sub(*start.max(&area.start))).sum();
                prop_assert_eq!(inside, area.end - area.start);
            }
        }
    }
}
