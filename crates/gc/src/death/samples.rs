//! Sampled objects, for a profile of who holds the heap: they are remembered until they die.
//!
//! The inlined paths of allocation test nothing. A run ends before the object that is to be a sample, which
//! is then a run of its own, so that the slow path hands it out (as where `checks` collects at random). How
//! many objects of a slot pass before the next sample is drawn by the [`Sampler`]; without one, a new run
//! costs one test.
//!
//! ```text
//! run      ▢ ▢ ▢ ▢ ▢ ▢ ▢ ▢        left = 4: the fourth object from here is the sample
//! handed   ▢ ▢ ▢                  then the run is used up, and left = 1
//! handed         ▢                one object, recorded with the stack of who asked
//! ```
//!
//! # Invariants
//! * `left` counts the objects to come of a thread's slot, beyond its run, up to and with the sample; 0 means
//!   that none was drawn. Unused objects of a run are counted back, so samples depend on requests alone.
//! * A sample may move. It leaves the table then, which knows it by its address, for the list of those that
//!   have moved; it comes back with the world going on.
//! * The lists of those that have moved or died have room for every sample, as a collection may not allocate.
//!   The sampler hears of the dead with the world going on and no lock held.

use crate::death::table::Table;
use crate::heap::Heap;
use crate::mutator::access::with_heap;
use crate::mutator::thread::Thread;
use crate::space::block::Address;
use crate::space::size_class::SMALL_MAX;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use vellum_pages::{Buffer, PAGE, Plain, round_up};

/// What the sampler knows an object by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Token(pub [u64; 3]);

// SAFETY: numbers, which own nothing.
unsafe impl Plain for Token {}

/// Who samples objects.
#[derive(Debug)]
pub struct Sampler {
    /// How many objects of this many bytes pass before one is a sample.
    pub passing: fn(bytes: usize) -> u32,
    /// Whether a new object of this many bytes, with pages of its own, is a sample.
    pub is_due: fn(bytes: usize) -> bool,
    /// Records a sample of which `bytes` bytes were asked for, and which takes `whole`, with the calling
    /// thread's stack. `None` if it cannot be.
    pub record: fn(bytes: usize, whole: usize) -> Option<Token>,
    /// Notes that an object has died. False, with nothing done, if it is to be asked again later.
    pub forget: fn(Token) -> bool,
}

static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(null_mut());
/// Changes when the sampler does: what threads have drawn holds no longer. 0: nothing is sampled.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Has `sampler` sample the objects that are allocated from now on, or with `None` nobody. To be called again
/// when it samples at another rate.
pub fn sample(sampler: Option<&'static Sampler>) {
    static LAST: AtomicU32 = AtomicU32::new(0);
    if let Some(sampler) = sampler {
        SAMPLER.store(core::ptr::from_ref(sampler).cast_mut(), Ordering::Release);
        EPOCH.store(LAST.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Release);
    } else {
        // What was sampled is still known, and its sampler is to hear of its end.
        EPOCH.store(0, Ordering::Release);
    }
}

fn sampler() -> Option<&'static Sampler> {
    // SAFETY: null, or what `sample` stored, a static.
    unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }
}

/// Whether objects are sampled.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    EPOCH.load(Ordering::Relaxed) != 0
}

/// Objects of `size` bytes of a slot of the calling thread's up to and with the next sample.
fn left(thread: &Thread, slot: usize, size: usize) -> u32 {
    let epoch = EPOCH.load(Ordering::Acquire);
    if thread.epoch.replace(epoch) != epoch {
        thread.cursors.iter().for_each(|cursor| cursor.left.set(0));
    }
    match (thread.cursors[slot].left.get(), sampler()) {
        (0, Some(sampler)) => (sampler.passing)(size).saturating_add(1),
        (0, None) => u32::MAX,
        (left, _) => left,
    }
}

/// How many of the next `count` free objects, of `size` bytes, may be handed out as a run: up to the next
/// sample, or the sample alone.
#[cold]
pub(crate) fn objects_before(thread: &Thread, slot: usize, size: usize, count: u32) -> u32 {
    let (cursor, left) = (&thread.cursors[slot], left(thread, slot, size));
    let handed = count.min(left.saturating_sub(1).max(1));
    cursor.sampled.set(left == 1);
    cursor.left.set(left - handed);
    handed
}

/// Whether a new large object, of this many bytes, is a sample.
pub(crate) fn is_due(bytes: usize) -> bool {
    is_on() && sampler().is_some_and(|sampler| (sampler.is_due)(bytes))
}

/// Records a new object of which `bytes` bytes were asked for. The calling thread holds the object, and is
/// outside of the heap.
#[cold]
pub(crate) fn record(thread: &'static Thread, object: Address, bytes: usize) {
    let Some(sampler) = sampler() else { return };
    // The dead do not count for the peak.
    tell_deaths(thread);
    let size = with_heap(thread, |heap| heap.block_starting(object).map(|block| block.size.get()));
    let whole = size.map(|size| if size > SMALL_MAX { round_up(size, PAGE) } else { size });
    let Some(token) = whole.and_then(|whole| (sampler.record)(bytes.min(whole), whole)) else { return };
    if let Some(lost) = with_heap(thread, |heap| heap.remember(object, token)) {
        let _ = (sampler.forget)(lost);
    }
}

/// Tells the sampler what has died. Outside of the heap.
#[cold]
pub(crate) fn tell_deaths(thread: &'static Thread) {
    /// Objects at a time.
    const BATCH: usize = 64;
    let Some(sampler) = sampler() else { return };
    with_heap(thread, |heap| heap.deaths.samples.enter_moved());
    loop {
        let mut batch = [Token::default(); BATCH];
        let count = with_heap(thread, |heap| heap.deaths.samples.take_gone(&mut batch));
        if count == 0 {
            return;
        }
        if let Some(from) = batch[..count].iter().position(|&token| !(sampler.forget)(token)) {
            with_heap(thread, |heap| heap.deaths.samples.put_back(&batch[from..count]));
            return;
        }
    }
}

#[derive(Clone, Copy)]
struct Moved {
    object: Address,
    token: Token,
}

// SAFETY: numbers, which own nothing.
unsafe impl Plain for Moved {}

/// The sampled objects of a heap.
pub(crate) struct Samples {
    live: Table<Token>,
    /// Those that have moved, until the table has them again.
    moved: Buffer<Moved>,
    /// Those that have died, until the sampler knows.
    gone: Buffer<Token>,
}

impl Samples {
    pub(crate) const fn new() -> Samples {
        Samples { live: Table::new(), moved: Buffer::new(), gone: Buffer::new() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.live.bytes()
            + self.moved.capacity() * size_of::<Moved>()
            + self.gone.capacity() * size_of::<Token>()
    }

    pub(crate) fn shrink(&mut self) {
        self.live.shrink();
    }

    /// Notes that an object is gone; whether it was a sample.
    #[inline]
    pub(crate) fn forget(&mut self, object: Address) -> bool {
        if self.live.len() + self.moved.len() == 0 {
            return false;
        }
        let token = self.live.remove(object).or_else(|| {
            let at = self.moved.iter().position(|moved| moved.object == object)?;
            Some(self.take_moved(at).token)
        });
        token.into_iter().for_each(|token| self.bury(token));
        token.is_some()
    }

    /// Samples there may be, with one more.
    fn most(&self) -> usize {
        self.live.len() + self.moved.len() + 1
    }

    /// Bytes that it grows by for one more, at most.
    fn bytes_to_grow(&self) -> usize {
        let most = self.most();
        let lists = [
            (self.moved.len() + most > self.moved.capacity(), size_of::<Moved>()),
            (self.gone.len() + most > self.gone.capacity(), size_of::<Token>()),
        ];
        // A list grows to twice what it needs at most.
        let lists = lists.iter().filter(|(grows, _)| *grows).map(|(_, bytes)| 2 * most * bytes);
        self.live.bytes_to_grow() + lists.sum::<usize>()
    }

    /// Makes room in the lists for one more. False if memory is out.
    fn make_room(&mut self) -> bool {
        let most = self.most();
        room_for(&mut self.moved, most) && room_for(&mut self.gone, most)
    }

    fn take_moved(&mut self, at: usize) -> Moved {
        let (taken, last) = (self.moved[at], self.moved.len() - 1);
        self.moved[at] = self.moved[last];
        self.moved.truncate(last);
        taken
    }

    /// Whether something is to be done after a collection ([`tell_deaths`]).
    pub(crate) fn any_changed(&self) -> bool {
        !self.gone.is_empty() || !self.moved.is_empty()
    }

    /// Has the table know those that have moved. One that there is no memory for is known no longer.
    fn enter_moved(&mut self) {
        while let Some(at) = self.moved.len().checked_sub(1) {
            let Moved { object, token } = self.take_moved(at);
            if let Some(lost) = self.enter(object, token) {
                self.bury(lost);
            }
        }
    }

    /// Enters a sample into the table. Returns the sample that is known no longer: this one, without memory,
    /// or one that was there before, whose end went unnoticed.
    fn enter(&mut self, object: Address, token: Token) -> Option<Token> {
        let old = self.live.get(object);
        self.live.insert(object, token).map_or(Some(token), |()| old)
    }

    /// Notes which samples a collection has found dead. After everything that the trace is to mark is marked.
    pub(crate) fn settle(&mut self, marker: &Marker<'_, impl Movement>) {
        for at in (0..self.moved.len()).rev() {
            let object = self.moved[at].object;
            if !marker.is_marked(object) {
                let Moved { token, .. } = self.take_moved(at);
                self.bury(token);
            } else if let Some(object) = marker.moved_to(object) {
                self.moved[at].object = object;
            }
        }
        let Samples { live, moved, gone } = self;
        live.retain(|object, &mut token| {
            let pushed = if !marker.is_marked(object) {
                gone.push(token)
            } else if let Some(object) = marker.moved_to(object) {
                moved.push(Moved { object, token })
            } else {
                return true;
            };
            debug_assert!(pushed.is_ok(), "room was made when it was remembered");
            false
        });
    }

    /// Calls `visit` with every sampled object.
    pub(crate) fn each(&self, mut visit: impl FnMut(Address)) {
        self.live.each(|object, _| visit(object));
        self.moved.iter().for_each(|moved| visit(moved.object));
    }

    fn bury(&mut self, token: Token) {
        let pushed = self.gone.push(token);
        debug_assert!(pushed.is_ok(), "room was made when it was remembered");
    }

    fn take_gone(&mut self, batch: &mut [Token]) -> usize {
        let count = batch.len().min(self.gone.len());
        let rest = self.gone.len() - count;
        batch[..count].copy_from_slice(&self.gone[rest..]);
        self.gone.truncate(rest);
        count
    }

    fn put_back(&mut self, batch: &[Token]) {
        // Their room may be promised to objects that were remembered meanwhile.
        if self.gone.reserve(batch.len() + self.most()).is_ok() {
            batch.iter().for_each(|&token| self.bury(token));
        }
    }
}

/// Makes room for `more` values, and if it must, for twice as many. False if memory is out.
fn room_for<T: Plain>(list: &mut Buffer<T>, more: usize) -> bool {
    list.len() + more <= list.capacity() || list.reserve(2 * more).is_ok()
}

impl Heap {
    /// Remembers a sampled object. Returns what is to be forgotten, as [`Samples::enter`] does.
    fn remember(&mut self, object: Address, token: Token) -> Option<Token> {
        let needs = self.deaths.samples.bytes_to_grow();
        if needs != 0 && !self.may_take(needs) || !self.deaths.samples.make_room() {
            return Some(token);
        }
        self.deaths.samples.enter(object, token)
    }
}
