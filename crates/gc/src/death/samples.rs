//! The table of the objects that a heap profile samples (`observer::sampling`). An entry stays until its
//! object dies.
//!
//! # Invariants
//! * A sampled object may move. The table's keys are addresses, so a moved object's entry waits in a list.
//!   When the program runs, the entry returns to the table under the new address.
//! * The lists of moved and of dead objects have room for all sampled objects, as a collection may not
//!   allocate.
//! * The sampler (the heap profile's callback) is called while the program's threads run, with no lock held.

use crate::death::table::Table;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use vellum_pages::{Buffer, Plain};
use vellum_sys::Addr;

/// The sampler's name for an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Token(pub [u64; 3]);

// SAFETY: numbers, which own nothing.
unsafe impl Plain for Token {}

#[derive(Clone, Copy)]
struct Moved {
    object: Addr,
    token: Token,
}

// SAFETY: numbers, which own nothing.
unsafe impl Plain for Moved {}

/// The sampled objects of a heap.
pub(crate) struct Samples {
    live: Table<Token>,
    /// Moved samples, until the table has them again.
    moved: Buffer<Moved>,
    /// Dead samples, until they are reported to the sampler.
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
    pub(crate) fn forget(&mut self, object: Addr) -> bool {
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
    pub(crate) fn bytes_to_grow(&self) -> usize {
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
    pub(crate) fn make_room(&mut self) -> bool {
        let most = self.most();
        room_for(&mut self.moved, most) && room_for(&mut self.gone, most)
    }

    fn take_moved(&mut self, at: usize) -> Moved {
        let (taken, last) = (self.moved[at], self.moved.len() - 1);
        self.moved[at] = self.moved[last];
        self.moved.truncate(last);
        taken
    }

    /// Returns whether something is to be done after a collection (`tell_deaths`).
    pub(crate) fn any_changed(&self) -> bool {
        !self.gone.is_empty() || !self.moved.is_empty()
    }

    /// Enters moved samples into the table. Without memory a sample is given up.
    pub(crate) fn enter_moved(&mut self) {
        while let Some(at) = self.moved.len().checked_sub(1) {
            let Moved { object, token } = self.take_moved(at);
            if let Some(lost) = self.enter(object, token) {
                self.bury(lost);
            }
        }
    }

    /// Enters a sample into the table. Returns the sample that is given up: this one, without memory, or an
    /// earlier one at the same address, whose end went unnoticed.
    pub(crate) fn enter(&mut self, object: Addr, token: Token) -> Option<Token> {
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
    pub(crate) fn each(&self, mut visit: impl FnMut(Addr)) {
        self.live.each(|object, _| visit(object));
        self.moved.iter().for_each(|moved| visit(moved.object));
    }

    fn bury(&mut self, token: Token) {
        let pushed = self.gone.push(token);
        debug_assert!(pushed.is_ok(), "room was made when it was remembered");
    }

    pub(crate) fn take_gone(&mut self, batch: &mut [Token]) -> usize {
        let count = batch.len().min(self.gone.len());
        let rest = self.gone.len() - count;
        batch[..count].copy_from_slice(&self.gone[rest..]);
        self.gone.truncate(rest);
        count
    }

    pub(crate) fn put_back(&mut self, batch: &[Token]) {
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
