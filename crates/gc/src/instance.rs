//! The one collector of the process: a heap and its plan (the way to collect it) under one lock, and state
//! that threads read without the lock.
//!
//! The instance is a static of this crate, because both users of the crate (`libvellum.so`, and `vellum-heap`
//! for Rust programs) need the instance. The allocation paths begin at a thread-local variable and have no
//! argument for an instance.

use crate::config::PlanName;
use crate::heap::Heap;
use crate::heap::shared::Shared;
use crate::plan::PlanState;
use crate::world::World;
use vellum_sys::lock::Guarded;

/// The process's.
pub(crate) static INSTANCE: Instance = Instance::new(&INSTANCE.shared);

pub(crate) struct Instance {
    pub shared: Shared,
    pub collector: Guarded<Collector>,
}

/// A heap and its plan. Reached under the lock.
pub(crate) struct Collector {
    pub heap: Heap,
    pub plan: PlanState,
}

// SAFETY: the pointers are to memory of the whole process, reached under the lock.
unsafe impl Send for Collector {}

impl Instance {
    const fn new(shared: &'static Shared) -> Instance {
        let collector = Collector { heap: Heap::new(shared), plan: PlanState::new(PlanName::MarkSweep) };
        Instance { shared: Shared::new(), collector: Guarded::new(collector) }
    }
}

/// The threads of the process's collector.
pub(crate) fn world() -> &'static World {
    &INSTANCE.shared.world
}
