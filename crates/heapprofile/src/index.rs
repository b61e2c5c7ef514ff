//! Finds the entry of a stack or of a line of Python in this process's part of the file, by a hash table.
//!
//! Hashing spreads entries over a whole table. The index therefore has levels, each twice as long as the one
//! before. A level is used once that one is half full, so a process with few stacks touches few pages.
//!
//! An index of zeros is empty.

use super::part::Part;
use vellum_wire::log::Entry;

const FIRST: usize = 1 << 12;
/// Levels: together they have twice as many places as the stacks that a part has room for, nearly.
const LEVELS: usize = 7;
const PLACES: usize = FIRST * ((1 << LEVELS) - 1);
/// Probes before a neighbourhood is full, and a stack is not entered.
const PROBES_MAX: usize = 256;

#[repr(C)]
pub(super) struct Index {
    /// The numbers, plus one; one level behind the other.
    places: [u32; PLACES],
    /// The last level in use, and how many stacks it has.
    level: usize,
    used: usize,
}

impl Index {
    pub(super) fn entries(&self) -> impl Iterator<Item = u32> {
        self.places.iter().filter_map(|place| place.checked_sub(1))
    }

    /// The number of the entry of `hash`, which is added to the part if it is new; `None` if there is no
    /// room.
    pub(super) fn find_or_add(&mut self, part: &mut Part, hash: u64, entry: &Entry<'_>) -> Option<u32> {
        match self.find(hash, |at| part.hash(at) == hash) {
            Ok(at) => Some(at),
            Err(place) => {
                let (place, at) = (place?, part.add(entry)?);
                self.fill(place, at);
                Some(at)
            }
        }
    }

    /// The number of an entry that is there, or the place to [`fill`](Index::fill) with it; no place if there
    /// is no room. `is_it` compares with the entry of a number.
    fn find(&mut self, hash: u64, is_it: impl Fn(u32) -> bool) -> Result<u32, Option<usize>> {
        let mut free = None;
        for level in 0..=self.level {
            match self.find_in(level, hash, &is_it) {
                Ok(at) => return Ok(at),
                Err(place) => free = place,
            }
        }
        if 2 * (self.used + 1) > FIRST << self.level && self.level + 1 < LEVELS {
            (self.level, self.used) = (self.level + 1, 0);
            return self.find_in(self.level, hash, &is_it);
        }
        Err(free)
    }

    /// Enters a number at a place that was found just now.
    fn fill(&mut self, place: usize, at: u32) {
        self.places[place] = at + 1;
        self.used += 1;
    }

    fn find_in(&self, level: usize, hash: u64, is_it: &impl Fn(u32) -> bool) -> Result<u32, Option<usize>> {
        let (first, places) = (FIRST * ((1 << level) - 1), FIRST << level);
        for probe in 0..PROBES_MAX {
            let place = first + (hash as usize).wrapping_add(probe) % places;
            match self.places[place].checked_sub(1) {
                Some(at) if is_it(at) => return Ok(at),
                Some(_) => {}
                None => return Err(Some(place)),
            }
        }
        Err(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_random::Rng;

    #[test]
    fn it_finds_what_was_entered_and_touches_little_for_a_few() {
        // SAFETY: all zero is an empty index. It is too large for the stack.
        let mut index = unsafe { Box::<Index>::new_zeroed().assume_init() };
        let (mut rng, mut hashes) = (Rng::new(11), Vec::<u64>::new());
        while hashes.len() < 60_000 {
            let hash = rng.next_u64();
            let place = index.find(hash, |at| hashes[at as usize] == hash).expect_err("it is new");
            index.fill(place.expect("there is room"), hashes.len() as u32);
            hashes.push(hash);
            if hashes.len() == 1000 {
                assert!(index.places[FIRST..].iter().all(|&place| place == 0));
            }
        }
        for (at, hash) in hashes.iter().enumerate() {
            assert_eq!(index.find(*hash, |at| hashes[at as usize] == *hash), Ok(at as u32));
        }
        let mut entries: Vec<u32> = index.entries().collect();
        entries.sort_unstable();
        assert!(entries.into_iter().eq(0..60_000));
        // A neighbourhood without end is given up.
        index.places.fill(1);
        index.level = LEVELS - 1;
        assert_eq!(index.find(7, |_| false), Err(None));
    }
}
