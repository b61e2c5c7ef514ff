//! A random program that uses the heap, and a model that checks it: a graph of the program's objects.
//!
//! The program allocates objects of every sort, links them, moves roots, frees, resizes and collects. The
//! model has the expected contents of each object and finds the reachable ones by a plain search. These must
//! be there, unchanged, at each check. Without roots, nearly no object may be left. Objects may move: after
//! a collection the model follows pointers to their new addresses. All pointers to an object must agree, and
//! an object with an ambiguous pointer to it must not have moved. The seed is printed; `VELLUM_TEST_SEED`
//! sets it.

mod tables;

use std::collections::{HashMap, HashSet};
use vellum_gc as gc;
use vellum_random::Rng;

const ROOTS: usize = 64;
/// The default number of steps of a program, times [`vellum_skip::scale`].
const STEPS: usize = 60_000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Sort {
    Untyped,
    Atomic,
    Typed,
}

struct Object {
    address: usize,
    words: usize,
    sort: Sort,
    /// The type's period and which of its words are pointers.
    shape: (usize, u64),
    /// What each word must be: another object and an offset into it, or a number.
    content: Vec<Word>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Word {
    Number(usize),
    Pointer(usize, usize),
}

struct Program {
    random: Rng,
    objects: Vec<Object>,
    /// Indices into `objects`; the addresses are in `roots`, which the collector scans.
    held: Vec<Option<usize>>,
    roots: Box<[usize; ROOTS]>,
    checked: usize,
    /// Collections that the addresses in `objects` are true of.
    seen: u64,
    /// Of this many objects three are atomic or untyped.
    kinds: usize,
    /// Objects found elsewhere than before.
    moved: usize,
    tables: tables::Tables,
}

/// Roots from here on are given precisely.
const PRECISE: usize = ROOTS / 2;

impl Program {
    fn below(&mut self, end: usize) -> usize {
        self.random.index(end)
    }

    fn words(&mut self) -> usize {
        match self.below(100) {
            0..70 => 1 + self.below(12),
            70..90 => 1 + self.below(200),
            90..98 => 1 + self.below(1200),
            98 => 1 + self.below(9000),
            _ => 1 + self.below(90_000),
        }
    }

    fn allocate(&mut self) {
        let words = self.words();
        let (sort, shape, address) = match self.below(self.kinds) {
            0 => (Sort::Atomic, (1, 0), gc::alloc_atomic(words * 8)),
            1 => {
                let align = 16 << self.below(9);
                let atomic = self.below(2) == 0;
                let address = gc::alloc_aligned(words * 8, align, atomic);
                assert!(address.addr().is_multiple_of(align), "{address:p} is aligned to {align}");
                (if atomic { Sort::Atomic } else { Sort::Untyped }, (1, u64::from(!atomic)), address)
            }
            2 => (Sort::Untyped, (1, 1), gc::alloc(words * 8)),
            _ => {
                let period = 1 + self.below(8);
                let bitmap = self.random.next_u64() & ((1 << period) - 1);
                let layout = gc::type_of(period * 8, |_| bitmap).expect("a small type");
                let words = words.next_multiple_of(period);
                let address = if words == period {
                    gc::alloc_typed(layout)
                } else {
                    gc::alloc_array(layout, words / period)
                };
                self.add(address, words, Sort::Typed, (period, bitmap));
                return;
            }
        };
        self.add(address, words, sort, shape);
    }

    fn add(&mut self, address: *mut u8, words: usize, sort: Sort, shape: (usize, u64)) {
        assert!(!address.is_null(), "memory for {words} words");
        assert!(gc::size(address) >= words * 8, "{address:p} has room for {words} words");
        let mut content = vec![Word::Number(0); words];
        if sort == Sort::Atomic {
            for (index, word) in content.iter_mut().enumerate() {
                *word = Word::Number(index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ address.addr());
            }
        }
        let address = address.expose_provenance();
        let index = self.objects.len();
        self.objects.push(Object { address, words, sort, shape, content });
        if sort == Sort::Atomic {
            for word in 0..words {
                self.write(index, word);
            }
        } else {
            self.verify(index);
        }
        let root = self.below(ROOTS);
        self.hold(root, Some(index));
    }

    fn hold(&mut self, root: usize, object: Option<usize>) {
        self.held[root] = object;
        // Volatile: the collector reads what the compiler thinks nobody does.
        let value = object.map_or(0, |object| self.objects[object].address);
        // SAFETY: the place is in the box.
        unsafe { (&raw mut self.roots[root]).write_volatile(value) };
    }

    fn value(&self, word: Word) -> usize {
        match word {
            Word::Number(number) => number,
            Word::Pointer(object, offset) => self.objects[object].address + offset,
        }
    }

    fn write(&self, object: usize, word: usize) {
        let Object { address, content, .. } = &self.objects[object];
        let place = std::ptr::with_exposed_provenance_mut::<usize>(address + word * 8);
        let value = self.value(content[word]);
        // SAFETY: within the object, which the model reaches.
        unsafe { gc::write(place, value) };
    }

    fn verify(&self, object: usize) {
        let Object { address, content, .. } = &self.objects[object];
        for (index, &word) in content.iter().enumerate() {
            let place = std::ptr::with_exposed_provenance::<usize>(address + index * 8);
            // SAFETY: within the object, which the model reaches.
            let found = unsafe { place.read_volatile() };
            assert_eq!(found, self.value(word), "word {index} of object {object} at {address:#x}");
        }
    }

    /// An object that the model reaches, by a random walk.
    fn reach(&mut self) -> Option<usize> {
        let root = self.below(ROOTS);
        let mut at = self.held[root]?;
        for _ in 0..self.below(6) {
            let start = self.below(self.objects[at].words);
            let content = &self.objects[at].content;
            let next = content[start..].iter().find_map(|&word| match word {
                Word::Pointer(object, _) => Some(object),
                Word::Number(_) => None,
            });
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        Some(at)
    }

    fn link(&mut self) {
        let (Some(from), Some(to)) = (self.reach(), self.reach()) else { return };
        let word = self.below(self.objects[from].words);
        let Object { sort, shape: (period, bitmap), .. } = self.objects[from];
        let may_point = sort == Sort::Untyped || (sort == Sort::Typed && bitmap >> (word % period) & 1 != 0);
        let new = if may_point && self.below(8) != 0 {
            let interior = if self.below(3) == 0 { self.below(self.objects[to].words * 8) } else { 0 };
            Word::Pointer(to, interior)
        } else {
            // Where no pointer may be, a number that looks like one must not matter.
            Word::Number(if may_point { self.below(1000) } else { self.objects[to].address })
        };
        self.objects[from].content[word] = new;
        self.write(from, word);
    }

    /// Finds objects where the last collection has put them.
    fn follow(&mut self) {
        let now = gc::stats().collections;
        if std::mem::replace(&mut self.seen, now) == now {
            return;
        }
        let mut found: HashMap<usize, usize> = HashMap::new();
        let mut waiting = Vec::new();
        for (root, held) in self.held.iter().enumerate() {
            if let Some(object) = *held {
                // SAFETY: the place is in the box.
                waiting.push((
                    object,
                    unsafe { (&raw const self.roots[root]).read_volatile() },
                    root < PRECISE,
                ));
            }
        }
        while let Some((object, address, is_ambiguous)) = waiting.pop() {
            let Object { address: before, sort, content, .. } = &self.objects[object];
            if is_ambiguous {
                assert_eq!(address, *before, "object {object} moved although it is pinned");
            }
            if let Some(&there) = found.get(&object) {
                assert_eq!(address, there, "two ways to object {object}");
                continue;
            }
            found.insert(object, address);
            for (index, &word) in content.iter().enumerate() {
                if let Word::Pointer(target, offset) = word {
                    let place = std::ptr::with_exposed_provenance::<usize>(address + index * 8);
                    // SAFETY: within the object, which the model reaches.
                    let pointer = unsafe { place.read_volatile() };
                    waiting.push((target, pointer.wrapping_sub(offset), *sort == Sort::Untyped));
                }
            }
            if let Some(value) = self.tables.value_at(object, address) {
                waiting.push(value);
            }
        }
        for (object, address) in found {
            self.moved += usize::from(self.objects[object].address != address);
            self.objects[object].address = address;
        }
    }

    fn reachable(&self) -> HashSet<usize> {
        self.reachable_from(self.held.iter().flatten().copied().collect())
    }

    fn reachable_from(&self, mut waiting: Vec<usize>) -> HashSet<usize> {
        let mut found = HashSet::new();
        while let Some(object) = waiting.pop() {
            if found.insert(object) {
                waiting.extend(self.targets(object));
                waiting.extend(self.tables.value_of(object));
            }
        }
        found
    }

    /// What an object refers to.
    fn targets(&self, object: usize) -> impl Iterator<Item = usize> {
        self.objects[object].content.iter().filter_map(|&word| match word {
            Word::Pointer(object, _) => Some(object),
            Word::Number(_) => None,
        })
    }

    fn check(&mut self) {
        self.follow();
        gc::validate().expect("the heap's invariants hold");
        let reachable = self.reachable();
        for &object in &reachable {
            self.verify(object);
            self.checked += 1;
        }
        self.check_tables(&reachable);
    }

    fn step(&mut self) {
        self.follow();
        match self.below(1000) {
            0..10 => {
                // A slice of any length.
                let ns = [0, 1000, 20_000, 1_000_000][self.below(4)];
                gc::idle(ns);
            }
            10..450 => self.allocate(),
            450..500 => self.step_tables(),
            500..850 => self.link(),
            850..990 => {
                let root = self.below(ROOTS);
                let object = self.reach().filter(|_| root.is_multiple_of(2));
                self.hold(root, object);
            }
            990..998 => {
                if let Some(object) = self.reach() {
                    let Object { address, words, .. } = self.objects[object];
                    let inside = std::ptr::with_exposed_provenance(address + self.below(words * 8));
                    assert_eq!(gc::base(inside).addr(), address, "the start of {inside:p}");
                }
            }
            _ => {
                assert!(gc::collect());
                self.check();
            }
        }
    }
}

/// Runs the program on a heap of `config`, which is poisoned or not by the seed; of `kinds` objects, three
/// are atomic or untyped and the rest typed. How many objects moved.
pub(crate) fn run(config: gc::Config, kinds: usize) -> usize {
    run_steps(config, kinds, STEPS)
}

/// The same for `steps` steps.
pub(crate) fn run_steps(config: gc::Config, kinds: usize, steps: usize) -> usize {
    let steps = steps * vellum_skip::scale();
    let seed = vellum_random::test_seed(Some(0x5eed));
    gc::init(gc::Config { poison: config.poison || seed % 2 == 1, ..config }).expect("the heap starts");
    gc::finalize_on_demand(true);
    let mut program = Program {
        random: Rng::new(seed),
        objects: Vec::new(),
        held: vec![None; ROOTS],
        roots: Box::new([0; ROOTS]),
        checked: 0,
        seen: 0,
        kinds,
        moved: 0,
        tables: tables::Tables::new(),
    };
    let range = program.roots.as_ptr_range();
    let middle = &raw const program.roots[PRECISE];
    // SAFETY: the box outlives the heap's last collection in this test, and holds addresses of objects or 0.
    unsafe {
        gc::add_roots(range.start.cast(), middle.cast()).expect("room for a range");
        gc::add_precise_roots(middle.cast(), range.end.cast()).expect("room for a range");
    }
    for step in 1..=steps {
        program.step();
        if step % (steps / 3) == 0 {
            // Grown structures are dropped now and then, so that much dies at once.
            for root in 0..ROOTS / 2 {
                program.hold(root, None);
            }
        }
    }
    gc::collect();
    program.check();
    program.tables.expect_use(steps);
    assert!(program.checked > (steps / 16).min(1000), "only {} objects were checked", program.checked);
    let stats = gc::stats();
    assert!(stats.collections > 20, "{stats:?}");
    // Where every allocation collects, idle time finds nothing worth a slice.
    let has_slices = gc::can_slice() && (config.slice_ns > 0 || config.eager == 0);
    assert!(stats.slices > 20 || !has_slices, "{stats:?}");
    eprintln!("{} collections, {} of them partial", stats.collections, stats.partial);
    let has_cycles = gc::can_slice() && config.slice_ns > 0 && config.eager == 0;
    assert!(stats.partial > 3 || stats.protected > 3 || !has_cycles, "{stats:?}");
    for root in 0..ROOTS {
        program.hold(root, None);
    }
    crate::heap::wipe();
    for _ in 0..4 {
        gc::collect();
        program.finalize();
    }
    program.check_tables(&HashSet::new());
    program.tables.expect_death();
    // An old address on the stack may hold an object, but is not to hold all that this led to.
    gc::walk(|object, size| {
        // SAFETY: the program uses no object any more.
        unsafe { object.write_bytes(0, size) };
    });
    crate::heap::wipe();
    for _ in 0..2 {
        gc::collect();
        gc::finalize();
    }
    gc::collect();
    let mut left = 0;
    gc::walk(|_, _| left += 1);
    let allocated = program.objects.len();
    assert!(left < allocated / 100, "{left} objects of {allocated} are left without roots");
    assert_eq!(gc::remove_roots(range.start.cast(), range.end.cast()), 2);
    program.moved
}
