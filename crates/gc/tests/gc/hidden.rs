//! Tests of collections in slices, and of minor and major ones (`appel`), while several threads change their
//! objects, wait in blocking regions, and fork.
//!
//! Each thread has a table of objects with numbers. The only pointer to an object moves between the table
//! and other objects all the time. It is often written to memory that the collector has already scanned.

use crate::heap::{begin_with, forked};
use gc::Plan;
use std::sync::OnceLock;
use vellum_gc as gc;
use vellum_random::Rng;
use vellum_sys::{Caps, caps};

const THREADS: usize = 4;
const PLACES: usize = 3000;
const STEPS: usize = 120_000;
/// Words of an object: its number, twice, and two pointers.
const WORDS: usize = 4;

fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| vellum_random::test_seed(Some(0x5eed)))
}

rows! {
    sliced => hide(Plan::MarkSweep);
    sliced_forks => fork(Plan::MarkSweep);
    /// Writes are found out by page protection.
    protected => {
        caps::drop(Caps::TRACK);
        hide(Plan::MarkSweep);
    };
    protected_forks => {
        caps::drop(Caps::TRACK);
        fork(Plan::MarkSweep);
    };
    appel => hide(Plan::Appel);
    appel_forks => fork(Plan::Appel);
}

fn start(plan: Plan) {
    let poison = seed() % 2 == 1;
    begin_with(plan, gc::Config { slice_ns: 1, poison, ..gc::Config::DEFAULT });
}

/// Objects in a table that is one itself, and what their numbers must be.
struct World {
    random: Rng,
    table: *mut usize,
    numbers: Vec<usize>,
    made: usize,
}

impl World {
    fn new(thread: u64) -> World {
        let table = gc::alloc(PLACES * 8).cast();
        let random = Rng::new(seed() ^ thread << 32);
        World { random, table, numbers: vec![0; PLACES], made: 0 }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.index(end)
    }

    fn object(&self, place: usize) -> *mut usize {
        // SAFETY: within the table.
        std::ptr::with_exposed_provenance_mut(unsafe { self.table.add(place).read_volatile() })
    }

    fn make(&mut self) {
        let place = self.below(PLACES);
        let object = gc::alloc(WORDS * 8).cast::<usize>();
        self.made += 1;
        // SAFETY: a new object of `WORDS` words, and a place in the table.
        unsafe {
            object.write(self.made);
            object.add(1).write(self.made);
            self.table.add(place).write_volatile(object.expose_provenance());
        }
        self.numbers[place] = self.made;
    }

    /// Moves an object from the table behind another, and back to another place: for a while only a word that
    /// was just written leads to it.
    fn hide(&mut self) {
        let (from, behind, to) = (self.below(PLACES), self.below(PLACES), self.below(PLACES));
        let (object, holder) = (self.object(from), self.object(behind));
        if object.is_null() || holder.is_null() || from == behind {
            return;
        }
        // SAFETY: live objects of `WORDS` words, and places in the table.
        unsafe {
            holder.add(2).write_volatile(object.expose_provenance());
            self.table.add(from).write_volatile(0);
        }
        let number = std::mem::take(&mut self.numbers[from]);
        // These allocations drive slices on.
        (0..self.below(8)).for_each(|_| _ = std::hint::black_box(gc::alloc(64)));
        // SAFETY: live objects of `WORDS` words, and places in the table.
        unsafe {
            let hidden = holder.add(2).read_volatile();
            self.table.add(to).write_volatile(hidden);
        }
        self.numbers[to] = number;
    }

    fn check(&self) {
        for place in 0..PLACES {
            let object = self.object(place);
            if !object.is_null() {
                // SAFETY: the table holds live objects.
                let (first, second) = unsafe { (object.read_volatile(), object.add(1).read_volatile()) };
                assert_eq!((first, second), (self.numbers[place], self.numbers[place]), "place {place}");
            }
        }
    }

    fn run(&mut self, steps: usize) {
        for step in 0..steps {
            match self.below(10) {
                0..6 => self.make(),
                6..9 => self.hide(),
                _ => _ = std::hint::black_box(gc::alloc(16 + step % 3000)),
            }
            if step % 5000 == 0 {
                self.check();
                gc::blocking(std::thread::yield_now);
            }
            if step % 700 == 0 {
                gc::idle(20_000);
            }
        }
        self.check();
    }
}

/// Objects that are hidden between slices stay.
fn hide(plan: Plan) {
    start(plan);
    let threads: Vec<_> = (0..THREADS as u64)
        .map(|thread| std::thread::spawn(move || World::new(thread).run(STEPS * vellum_skip::scale())))
        .collect();
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    gc::validate().expect("the heap's invariants hold");
    let stats = gc::stats();
    assert!(stats.collections > 10, "{stats:?}");
    assert!(stats.slices > stats.collections || !gc::can_slice(), "{stats:?}");
    let tells = gc::can_slice() || plan == Plan::Appel && stats.unsliced == 0;
    // How many of either kind there are depends on how fast threads come along.
    assert!(stats.partial > 0 || stats.protected > 0 || !tells, "{stats:?}");
}

/// A child that is forked in the middle of a cycle collects its own copy; the parent's cycle goes on.
fn fork(plan: Plan) {
    start(plan);
    let mut world = World::new(77);
    for round in 0..20 {
        world.run(3000);
        let status = forked(|| {
            world.run(2000);
            assert!(gc::collect());
            world.check();
        });
        assert_eq!(status, 0, "the child of round {round}");
    }
    world.check();
}
