//! Calls the sampler (the heap profile): when a sampled object is allocated, and when it has died.

use crate::death::samples::Token;
use crate::heap::Heap;
use crate::instance::INSTANCE;
use crate::mutator::access::with_heap;
use crate::observer::sampling::Sampler;
use crate::space::size_class::SMALL_MAX;
use crate::world::thread::Thread;
use vellum_pages::{PAGE, round_up};
use vellum_sys::Addr;

/// Has `sampler` sample the objects that are allocated from now on, or with `None` nobody. To be called again
/// when it samples at another rate.
pub fn sample(sampler: Option<&'static Sampler>) {
    INSTANCE.shared.observer.sample(sampler);
}

fn sampler() -> Option<&'static Sampler> {
    INSTANCE.shared.observer.sampling.sampler()
}

/// Records a new object of `bytes` requested bytes. The caller holds the object, and is outside of the heap.
#[cold]
pub(crate) fn record(thread: &'static Thread, object: Addr, bytes: usize) {
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

/// Reports dead samples to the sampler. Outside of the heap.
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

impl Heap {
    /// Enters a sampled object. Returns the token to give up, as `Samples::enter` does.
    fn remember(&mut self, object: Addr, token: Token) -> Option<Token> {
        let needs = self.deaths.samples.bytes_to_grow();
        if needs != 0 && !self.may_take(needs) || !self.deaths.samples.make_room() {
            return Some(token);
        }
        self.deaths.samples.enter(object, token)
    }
}
