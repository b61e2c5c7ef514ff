//! Tests of kept objects (which stay until they are freed) and of objects that the program frees. Several
//! threads make, resize and free objects at random, and compare these with a model.
//!
//! The model hides the addresses of kept objects, which thus survive only because they are kept. Each kept
//! object has a number at its start and at its end. If it has pointers, it also refers to a second object
//! with the same number, to which nothing else refers. The seed is printed; `VELLUM_TEST_SEED` sets it.

use std::sync::{Mutex, OnceLock};
use vellum_gc as gc;
use vellum_random::Rng;

const THREADS: u64 = 3;
const STEPS: usize = 60_000;
const OBJECTS: usize = 2000;
/// One step in this many collects; one in [`THINS`] frees half of the objects.
const COLLECTS: u64 = 4000;
const THINS: u64 = 9000;

fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| vellum_random::test_seed(Some(0x5eed)))
}

/// A kept object, by an address that the collector does not see.
struct Kept {
    hidden: usize,
    bytes: usize,
    atomic: bool,
    number: usize,
}

impl Kept {
    fn words(&self) -> *mut usize {
        std::ptr::with_exposed_provenance_mut(!self.hidden)
    }

    fn last(&self) -> usize {
        self.bytes / 8 - 1
    }

    fn make(random: &mut Rng, number: usize) -> Kept {
        let below = |random: &mut Rng, end: u64| (random.next_u64() % end) as usize;
        let words = match below(random, 50) {
            0 => below(random, 1500) + 600,
            1..5 => below(random, 500) + 3,
            _ => below(random, 12) + 3,
        };
        let (bytes, atomic) = (words * 8, below(random, 3) == 0);
        // Some are kept by a second word only.
        let object = if below(random, 5) == 0 {
            let object = if atomic { gc::alloc_atomic(bytes) } else { gc::alloc(bytes) };
            gc::keep(object).expect("a new object can be kept");
            object
        } else {
            gc::alloc_kept(bytes, atomic)
        };
        assert!(!object.is_null());
        let this = Kept { hidden: !object.expose_provenance(), bytes, atomic, number };
        this.fill();
        this
    }

    /// Writes what [`Kept::check`] looks for, into an object that must read zero if it has pointers.
    fn fill(&self) {
        let words = self.words();
        // SAFETY: an object of `self.bytes` bytes, whose user this is.
        unsafe {
            if !self.atomic {
                for at in 0..self.bytes / 8 {
                    assert_eq!(words.add(at).read(), 0, "word {at} of a new object of {} bytes", self.bytes);
                }
                let led_to = gc::alloc(24).cast::<usize>();
                led_to.write(self.number);
                words.add(1).write(led_to.expose_provenance());
            }
            words.write(self.number);
            words.add(self.last()).write(self.number);
        }
    }

    fn check(&self) {
        let words = self.words();
        // SAFETY: as in `fill`; what it leads to is there as long as it is.
        unsafe {
            assert_eq!((words.read(), words.add(self.last()).read()), (self.number, self.number));
            if !self.atomic {
                let led_to: *const usize = std::ptr::with_exposed_provenance(words.add(1).read());
                assert_eq!(led_to.read(), self.number, "what a kept object leads to");
            }
            let sort = if self.atomic { gc::Sort::Atomic } else { gc::Sort::Untyped };
            assert_eq!(gc::sort(words.cast()), Some((sort, true)));
        }
    }

    /// Makes it longer or shorter.
    fn resize(&mut self, words: usize) {
        let last = self.last();
        // SAFETY: nobody uses the old one any more.
        let object = unsafe { gc::realloc(self.words().cast(), words * 8) };
        assert!(!object.is_null());
        self.hidden = !object.expose_provenance();
        // SAFETY: an object of `words` words.
        unsafe {
            if words * 8 > self.bytes {
                assert_eq!(self.words().add(last).read(), self.number, "what was there is copied");
            }
            self.words().add(words - 1).write(self.number);
        }
        self.bytes = words * 8;
    }

    fn free(self) {
        // SAFETY: nobody uses it any more.
        unsafe { gc::free(self.words().cast()) }.expect("a kept object can be freed");
    }
}

fn live_on(thread: u64, left: &Mutex<Vec<Kept>>) {
    let mut random = Rng::new(seed() ^ thread << 32);
    let mut kept: Vec<Kept> = Vec::new();
    for step in 0..STEPS * vellum_skip::scale() {
        let number = (thread as usize) << 40 | step << 1 | 1;
        match random.next_u64() % 8 {
            0..4 if kept.len() < OBJECTS => kept.push(Kept::make(&mut random, number)),
            4 if !kept.is_empty() => {
                let at = (random.next_u64() % kept.len() as u64) as usize;
                let words = (random.next_u64() % 40) as usize + 3;
                kept[at].resize(words);
            }
            _ if !kept.is_empty() => {
                let at = (random.next_u64() % kept.len() as u64) as usize;
                kept[at].check();
                kept.swap_remove(at).free();
            }
            _ => {}
        }
        if random.next_u64().is_multiple_of(COLLECTS) {
            gc::collect();
            kept.iter().for_each(Kept::check);
        }
        if random.next_u64().is_multiple_of(THINS) {
            kept.drain(..kept.len() / 2).for_each(Kept::free);
        }
    }
    kept.iter().for_each(Kept::check);
    left.lock().unwrap().append(&mut kept);
}

#[test]
fn kept_objects_stay_until_they_are_freed() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { paranoid: true, ..gc::Config::DEFAULT }).expect("the first heap");
        let left = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let left = &left;
                scope.spawn(move || live_on(thread, left));
            }
        });
        gc::validate().expect("the heap's invariants");
        gc::collect();
        let left = left.into_inner().unwrap();
        left.iter().for_each(Kept::check);
        let bytes: usize = left.iter().map(|this| this.bytes).sum();
        assert!(gc::stats().live_bytes as usize >= bytes);
        left.into_iter().for_each(Kept::free);
        gc::collect();
        gc::collect();
        let alive = gc::stats().live_bytes as usize;
        assert!(alive < bytes / 8, "{alive} bytes of {bytes} are alive after all were freed");

        a_freed_object_is_had_again();
    });
}

/// The heap has no finalizers and links: a thread gets its freed object again, as a new one, when its run of
/// that size ends.
fn a_freed_object_is_had_again() {
    /// Bytes of a run at most.
    const RUN: usize = 4096;
    for bytes in [16, 48, 512, 4096] {
        let object = gc::alloc(bytes);
        // SAFETY: a new object of `bytes` bytes, whose user this is.
        unsafe {
            object.write_bytes(0xff, bytes);
            gc::free(object).expect("an object can be freed");
            assert_eq!(gc::free(object), Err(gc::Refused::NoObject), "a second free is known");
            let again = (0..RUN / bytes + 1).map(|_| gc::alloc(bytes)).find(|&next| next == object);
            let again = again.expect("it comes before more is taken of the heap");
            assert!((0..bytes).all(|at| again.add(at).read() == 0), "it reads zero");
            gc::free(again).expect("it can be freed again");
        }
    }
}
