//! The start of a heap.

use crate::config::{Config, STACK_WORDS};
use crate::debug::checks;
use crate::heap::Heap;
use crate::mutator::{idle_signal, stop};
use crate::plan;
use crate::sizing::growth::cache_bytes;
use crate::sizing::policy::Found;
use crate::space::address_table::AddressTable;
use crate::space::block::Scan;
use crate::space::size_class::{ATOMIC_FIRST, CLASS_LAST, TYPED_FIRST, WORD, bytes_of};
use crate::space::slot::{NO_SLOT, Slot};
use crate::trace::mark::StackMemory;
use crate::write_tracking::cards;
use vellum_pages::OutOfMemory;
use vellum_sys::map;

impl Heap {
    /// Starts the heap with `config`, if it has not started. False if memory is out.
    pub(crate) fn start(&mut self, config: Config) -> bool {
        if self.started {
            return true;
        }
        if !vellum_pages::is_suited() || self.begin_slots().is_err() {
            return false;
        }
        let Some(space) = AddressTable::new() else { return false };
        let Ok(stack) = map::reserve_writable(STACK_WORDS * WORD) else {
            space.give_back();
            return false;
        };
        if config.tells_writes && !cards::make(&space) {
            // SAFETY: the range was reserved a moment ago, and nobody knows of it.
            let _ = unsafe { map::release(stack) };
            space.give_back();
            return false;
        }
        // From here on nothing fails.
        if config.safepoints || config.precise_stacks {
            stop::at_safepoints();
        }
        if config.idle_thread {
            idle_signal::want();
        }
        let config = self.strict_asked.map_or(config, |strict| strict.put_on(config));
        checks::begin(config);
        self.stack = StackMemory { start: stack.start.ptr(), room: STACK_WORDS };
        self.space.table = space;
        self.config = Config { sizing: self.sizing_asked.unwrap_or(config.sizing), ..config };
        if config.plan.moves() {
            self.space.descriptors.with_pins();
        }
        self.started = true;
        self.sizing.cache_bytes = cache_bytes();
        self.set_max(config.max_bytes);
        plan::of(self).size(self, Found::NOTHING, true);
        true
    }

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
