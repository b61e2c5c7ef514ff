//! Two-level logic minimisation by recursion over covers (after the espresso that Zorn measured, 1993).
//!
//! A cube is a set of assignments, two bits a variable (may be 0, may be 1); a cover is a list of cubes. The
//! complement of a cover is found by splitting on a variable, complementing both halves and joining them.
//! Every level allocates cubes and growing lists and frees them on the way back: mixed small sizes, mostly
//! last in, first out, with lists that are reallocated as they grow.

use super::{Failure, Metrics, Params, Rng, measured, raw};

const PROBLEMS: u64 = 500;
/// Points at which each result is checked.
const PROBES: u64 = 200;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let problems = params.scaled(PROBLEMS);
    measured(|| {
        let mut rng = Rng::new(params.seed());
        for problem in 0..problems {
            // 20 to 90 variables of which 14 matter: cubes of one to six words.
            let variables = 20 + (problem as usize * 7) % 71;
            let cover = random_cover(&mut rng, variables);
            let complement = complement(&cover, variables);
            for probe in 0..PROBES {
                let seed = rng.next_u64();
                if cover.holds(seed) == complement.holds(seed) {
                    let what = format!(
                        "probe {probe} of problem {problem} is in both or neither of a cover and its complement"
                    );
                    return Err(Failure::Wrong { workload: "espresso", what });
                }
            }
        }
        Ok(())
    })
}

const BITS_PER_WORD: usize = 32;
/// Variables that cubes restrict; the others only make the cubes longer.
const MATTERING: usize = 14;
const CUBES: usize = 40;

fn random_cover(rng: &mut Rng, variables: usize) -> Cover {
    let mut cover = Cover::new(words(variables));
    for _ in 0..CUBES {
        let cube = cover.push_full();
        for _ in 0..5 {
            cube.restrict(rng.below(MATTERING as u64) as usize, rng.below(2) == 1);
        }
    }
    cover
}

fn words(variables: usize) -> usize {
    (2 * variables).div_ceil(BITS_PER_WORD)
}

/// Everything that `cover` does not hold.
fn complement(cover: &Cover, variables: usize) -> Cover {
    let mut out = Cover::new(words(variables));
    if cover.len == 0 {
        out.push_full();
        return out;
    }
    if cover.cubes().iter().any(|cube| cube.free_of(variables)) {
        return out;
    }
    let split = busiest(cover);
    for value in [false, true] {
        let half = cover.given(split, value);
        let rest = complement(&half, variables);
        for cube in rest.cubes() {
            let new = out.push_copy(*cube);
            new.restrict(split, value);
        }
    }
    out.merged(split)
}

/// The variable that most cubes restrict.
fn busiest(cover: &Cover) -> usize {
    let count = |variable: &usize| cover.cubes().iter().filter(|cube| cube.at(*variable) != 3).count();
    (0..MATTERING).max_by_key(count).expect("there are variables")
}

/// A cube: `words` words in a block of its own, freed by the cover that holds it.
#[derive(Clone, Copy)]
struct Cube {
    bits: *mut u32,
    words: usize,
}

impl Cube {
    fn words(&self) -> &[u32] {
        // SAFETY: the block holds `words` words, written when it was made.
        unsafe { std::slice::from_raw_parts(self.bits, self.words) }
    }

    /// The two bits of a variable: 1 = only zero, 2 = only one, 3 = either, 0 = the empty cube.
    #[inline]
    fn at(&self, variable: usize) -> u32 {
        self.words()[2 * variable / BITS_PER_WORD] >> (2 * variable % BITS_PER_WORD) & 3
    }

    fn restrict(&self, variable: usize, value: bool) {
        let gone = 1u32 << (2 * variable % BITS_PER_WORD) << u32::from(!value);
        // SAFETY: the word lies in the block; cubes are used by one thread, and no slice of it is alive.
        unsafe { *self.bits.add(2 * variable / BITS_PER_WORD) &= !gone };
    }

    fn widen(&self, variable: usize) {
        // SAFETY: as in `restrict`.
        unsafe { *self.bits.add(2 * variable / BITS_PER_WORD) |= 3 << (2 * variable % BITS_PER_WORD) };
    }

    /// Whether no variable is restricted.
    fn free_of(&self, variables: usize) -> bool {
        (0..variables.min(MATTERING)).all(|variable| self.at(variable) == 3)
    }

    /// Whether the two are equal in every variable but this one.
    fn same_but(&self, other: &Self, variable: usize) -> bool {
        let word = 2 * variable / BITS_PER_WORD;
        let ignored = 3u32 << (2 * variable % BITS_PER_WORD);
        let pairs = self.words().iter().zip(other.words()).enumerate();
        pairs
            .map(|(at, (a, b))| (a ^ b) & if at == word { !ignored } else { !0 })
            .all(|differing| differing == 0)
    }

    fn holds(&self, point: u64) -> bool {
        (0..MATTERING).all(|variable| self.at(variable) >> (point >> variable & 1) & 1 == 1)
    }
}

/// A growing list of cubes, which it owns.
struct Cover {
    list: *mut Cube,
    len: usize,
    room: usize,
    words: usize,
}

impl Drop for Cover {
    fn drop(&mut self) {
        // SAFETY: the cover owns its cubes' blocks and its list; both end here.
        unsafe {
            self.cubes().iter().for_each(|cube| raw::free(cube.bits.cast()));
            raw::free(self.list.cast());
        }
    }
}

impl Cover {
    fn new(words: usize) -> Self {
        Self { list: std::ptr::null_mut(), len: 0, room: 0, words }
    }

    fn cubes(&self) -> &[Cube] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `len` cubes were pushed into the list.
        unsafe { std::slice::from_raw_parts(self.list, self.len) }
    }

    fn holds(&self, point: u64) -> bool {
        self.cubes().iter().any(|cube| cube.holds(point))
    }

    fn push_full(&mut self) -> Cube {
        let bits = raw::malloc(self.words * 4).cast::<u32>();
        // SAFETY: the block holds `words` words.
        unsafe { bits.write_bytes(0xff, self.words) };
        self.push(bits)
    }

    fn push_copy(&mut self, cube: Cube) -> Cube {
        let bits = raw::malloc(self.words * 4).cast::<u32>();
        // SAFETY: both blocks hold `words` words and are not the same.
        unsafe { bits.copy_from_nonoverlapping(cube.bits, self.words) };
        self.push(bits)
    }

    fn push(&mut self, bits: *mut u32) -> Cube {
        if self.len == self.room {
            self.room = (self.room * 2).max(4);
            // SAFETY: the list is null or this cover's block; the new one replaces it.
            self.list = unsafe { raw::realloc(self.list.cast(), self.room * size_of::<Cube>()) }.cast();
        }
        let cube = Cube { bits, words: self.words };
        // SAFETY: there is room for one more.
        unsafe { self.list.add(self.len).write(cube) };
        self.len += 1;
        cube
    }

    /// What the cover says where `variable` has `value`.
    fn given(&self, variable: usize, value: bool) -> Self {
        let mut out = Self::new(self.words);
        for cube in self.cubes().iter().filter(|cube| cube.at(variable) >> u32::from(value) & 1 == 1) {
            out.push_copy(*cube).widen(variable);
        }
        out
    }

    /// Joins cubes that differ in nothing but `variable`, which is then free.
    fn merged(self, variable: usize) -> Self {
        let mut out = Self::new(self.words);
        for cube in self.cubes() {
            match out.cubes().iter().find(|twin| twin.same_but(cube, variable)) {
                Some(twin) => twin.widen(variable),
                None => {
                    out.push_copy(*cube);
                }
            }
        }
        out
    }
}
