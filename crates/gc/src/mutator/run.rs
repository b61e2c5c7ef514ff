//! Calls due finalizers and disclaimers (callbacks that may keep a dead object), while the program's threads
//! run and no lock is held.

use crate::death::Deaths;
use crate::death::disclaim::Disclaimer;
use crate::death::finalizers::Finalizer;
use crate::death::table::Step;
use crate::heap::Heap;
use crate::mutator::access::{holding_cells, with_heap};
use crate::mutator::{attach, sampling};
use crate::process::hooks;

use core::cell::Cell;
use vellum_sys::Addr;

/// Finalizers, or disclaimers, taken out of their table at a time.
const BATCH: usize = 32;

impl Heap {
    /// Takes finalizers that are due out of the table, as many as there is room for; returns how many.
    fn take_due(&mut self, taken: &mut [Option<(Addr, Finalizer)>]) -> usize {
        if self.deaths.due == 0 {
            return 0;
        }
        let mut count = 0;
        // Twice at most: a table made anew since the last step may have the rest before `due_from`.
        for _ in 0..2 {
            self.deaths.due_from = self.deaths.finalizers.step(self.deaths.due_from, |object, finalizer| {
                if !finalizer.due {
                    return Step::Keep;
                }
                let Some(place) = taken.get_mut(count) else { return Step::Stop };
                *place = Some((object, *finalizer));
                count += 1;
                Step::Remove
            });
            if count > 0 {
                break;
            }
            self.deaths.due_from = 0;
        }
        self.deaths.due -= count;
        count
    }
}

/// Runs the finalizers that are due; returns how many.
pub fn run() -> usize {
    let Some(thread) = attach::attached() else { return 0 };
    let mut ran = 0;
    loop {
        let mut batch: [Option<(Addr, Finalizer)>; BATCH] = [None; BATCH];
        // The objects and the finalizers' arguments stay until their turn.
        let held = [const { Cell::new(Addr::NULL) }; BATCH * 2];
        let count = holding_cells(&held, || {
            let count = with_heap(thread, |heap| {
                let count = heap.take_due(&mut batch);
                for ((object, finalizer), held) in batch.iter().flatten().zip(held.chunks_exact(2)) {
                    held[0].set(*object);
                    held[1].set(finalizer.data);
                }
                count
            });
            let due = batch.iter_mut().filter_map(Option::take);
            for ((object, finalizer), held) in due.zip(held.chunks_exact(2)) {
                // SAFETY: the program vouched for the call when it set the finalizer; the object is held.
                unsafe { (finalizer.function)(object.ptr(), finalizer.data.ptr()) };
                held.iter().for_each(|held| held.set(Addr::NULL));
            }
            count
        });
        ran += count;
        if count == 0 {
            return ran;
        }
    }
}

/// After a collection: reports samples that have died, and runs disclaimers and finalizers. Finalizers do not
/// run here if they run on demand, nor within another finalizer.
#[cold]
pub(crate) fn run_after_collection() {
    let Some(thread) = attach::attached() else { return };
    let (wanted, told, asked, changed) = with_heap(thread, |heap| {
        let Deaths { due, on_demand, disclaimers, samples, .. } = &heap.deaths;
        let is_due = *due > 0;
        (is_due && !on_demand, is_due && *on_demand, disclaimers.any_due(), samples.any_changed())
    });
    if changed {
        sampling::tell_deaths(thread);
    }
    if told {
        hooks::tell_due();
    }
    if (wanted || asked) && !thread.finalizing.replace(true) {
        if asked {
            run_disclaimers();
        }
        if wanted {
            run();
        }
        thread.finalizing.set(false);
    }
}

/// Runs the finalizers that are due, unless the calling thread is in a finalizer; returns how many ran.
pub fn run_unless_within() -> usize {
    let Some(thread) = attach::attached() else { return 0 };
    if thread.finalizing.replace(true) {
        return 0;
    }
    let ran = run();
    thread.finalizing.set(false);
    ran
}

/// Finalizers that are due.
pub fn due() -> usize {
    attach::attached().map_or(0, |thread| with_heap(thread, |heap| heap.deaths.due))
}

/// Runs every finalizer, also of live objects, until the table is empty; returns how many ran.
pub fn run_all() -> usize {
    let Some(thread) = attach::attached() else { return 0 };
    let mut ran = 0;
    loop {
        with_heap(thread, |heap| {
            heap.deaths.finalizers.retain(|_, finalizer| {
                finalizer.due = true;
                true
            });
            heap.deaths.due = heap.deaths.finalizers.len();
        });
        match run() {
            0 => return ran,
            some => ran += some,
        }
    }
}

/// Returns whether finalizers run in [`run`] only.
pub fn on_demand(on: bool) {
    if let Some(thread) = attach::attached() {
        with_heap(thread, |heap| heap.deaths.on_demand = on);
    }
}

/// Calls all disclaimers that are due; returns how many.
fn run_disclaimers() -> usize {
    let Some(thread) = attach::attached() else { return 0 };
    let mut ran = 0;
    loop {
        let mut batch = [(Addr::NULL, None); BATCH];
        let mut answers = [(Addr::NULL, false); BATCH];
        let count = with_heap(thread, |heap| heap.deaths.disclaimers.take(&mut batch));
        if count == 0 {
            return ran;
        }
        for ((object, this), answer) in batch.iter().zip(&mut answers).take(count) {
            let Some(Disclaimer { function, data, .. }) = *this else { continue };
            // An earlier disclaimer may have freed this object, or taken its disclaimer away.
            if !with_heap(thread, |heap| heap.deaths.disclaimers.is_asked(*object)) {
                continue;
            }
            // SAFETY: the program vouched for the call when it set it; the object is a root until it is
            // settled.
            let stays = unsafe { function(object.ptr(), data.ptr()) } != 0;
            *answer = (*object, stays);
        }
        with_heap(thread, |heap| heap.deaths.disclaimers.settle(&answers[..count]));
        ran += count;
    }
}
