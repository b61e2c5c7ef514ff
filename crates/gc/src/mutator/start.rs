//! Starts a heap: reserves its memory and applies its settings.

use crate::config::{Config, STACK_WORDS};
use crate::heap::Heap;
use crate::instance::{Collector, world};
use crate::plan::PlanState;
use crate::process::cards;
use crate::sizing::growth::cache_bytes;
use crate::sizing::policy::Found;
use crate::space::address_table::AddressTable;
use crate::space::block::Scan;
use crate::space::size_class::{ATOMIC_FIRST, CLASS_LAST, TYPED_FIRST, WORD, bytes_of};
use crate::space::slot::{NO_SLOT, Slot};
use crate::trace::mark::StackMemory;
use vellum_pages::OutOfMemory;
use vellum_sys::map;

impl Collector {
    /// Starts the heap with `config`, if it has not started. False if memory is out.
    pub(crate) fn start(&mut self, config: Config) -> bool {
        self.heap.started || self.start_anew(config)
    }

    #[cold]
    fn start_anew(&mut self, config: Config) -> bool {
        let Collector { heap, plan } = self;
        if !vellum_pages::is_suited() || heap.begin_slots().is_err() {
            return false;
        }
        let Some(space) = AddressTable::new() else { return false };
        let Ok(stack) = map::reserve_writable(STACK_WORDS * WORD) else {
            space.give_back();
            return false;
        };
        if config.tells_writes && !cards::make(space.span) {
            // SAFETY: the range was reserved a moment ago, and nobody knows of it.
            let _ = unsafe { map::release(stack) };
            space.give_back();
            return false;
        }
        // From here on nothing fails.
        if config.safepoints || config.precise_stacks {
            world().at_safepoints();
        }
        if config.idle_thread {
            world().idle.want();
        }
        let config = heap.strict_asked.map_or(config, |strict| strict.put_on(config));
        heap.shared.observer.begin(&config);
        heap.stack = StackMemory { start: stack.start.ptr(), room: STACK_WORDS };
        heap.space.table = space;
        *plan = PlanState::new(config.plan);
        heap.config = Config { sizing: heap.sizing_asked.unwrap_or(config.sizing), ..config };
        heap.moves = plan.copies().is_some();
        heap.counts_blocks = plan.counts_blocks();
        if heap.moves {
            heap.space.descriptors.with_pins();
        }
        heap.started = true;
        heap.sizing.cache_bytes = cache_bytes();
        heap.set_max(config.max_bytes);
        plan.size(heap, Found::NOTHING, true);
        true
    }
}

impl Heap {
    /// The slots of untyped objects.
    fn begin_slots(&mut self) -> Result<(), OutOfMemory> {
        self.space.slots.truncate(0);
        self.space.slots.reserve(TYPED_FIRST)?;
        for index in 0..TYPED_FIRST {
            let (class, scan) = if index < ATOMIC_FIRST {
                (index, Scan::Words)
            } else {
                (index - ATOMIC_FIRST, Scan::Nothing)
            };
            let is_used = (1..=CLASS_LAST).contains(&class);
            self.space.slots.push(if is_used {
                Slot { size: bytes_of(class), scan, ..NO_SLOT }
            } else {
                NO_SLOT
            })?;
        }
        Ok(())
    }
}
