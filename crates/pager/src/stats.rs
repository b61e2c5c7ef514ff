//! The counters: the rows of the source's tables (Figures 13 to 24), and what tells how well the pager does.
//!
//! A fault is counted once, by whether the access that met it read or wrote, and by what had to be done:
//!
//! | | the page |
//! | --- | --- |
//! | *zero-filled* | had no contents yet |
//! | *not read* | had contents that nobody needs: any frame will do |
//! | *read* | came from the store |
//! | *decompressed* | came from the compressed pages in memory |
//!
//! and a page that loses its frame is *discarded* (nobody needs it), *compressed* or *written*
//! (a compressed page that is written behind is both, one after the other); *flushed* are discardable
//! pages whose frames were taken at the program's word, before anybody wanted frames. Beside the tables:
//! *found* are faults on pages that were held, which cost no transfer; *ahead* are pages brought with
//! another's fault; *unchanged* are pages that lost their frames unwritten because the store had them
//! already, or because they are all zeros.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_wire::{Counter, Slot};

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident => $counter:ident;)*) => {
        /// What happens to a page. All are counted in pages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Event { $($(#[$doc])* $name),* }

        impl Event {
            /// All of them, in order.
            pub const ALL: &'static [Event] = &[$(Event::$name),*];

            /// Where it is counted for others to see.
            pub const fn counter(self) -> Counter {
                match self { $(Event::$name => Counter::$counter),* }
            }
        }
    };
}

events! {
    /// A read fault, zero-filled.
    ReadZeroFilled => PagedReadZeroFilled;
    /// A read fault, not read.
    ReadNotRead => PagedReadNotRead;
    /// A read fault, read.
    ReadRead => PagedReadRead;
    /// A write fault, zero-filled.
    WriteZeroFilled => PagedWriteZeroFilled;
    /// A write fault, not read.
    WriteNotRead => PagedWriteNotRead;
    /// A write fault, read.
    WriteRead => PagedWriteRead;
    /// A read fault, decompressed.
    ReadUnpacked => PagedReadUnpacked;
    /// A write fault, decompressed.
    WriteUnpacked => PagedWriteUnpacked;
    /// A page-out, discarded.
    Discarded => PagedDiscarded;
    /// A page-out, written.
    Written => PagedWritten;
    /// A page-out, compressed.
    Packed => PagedPacked;
    /// A page flushed.
    Flushed => PagedFlushed;
    /// A fault on a held page.
    Found => PagedFound;
    /// A page brought before anybody asked for it.
    Ahead => PagedAhead;
    /// A page-out that needed no writing: the store has the page already, or it is all zeros.
    Unchanged => PagedUnchanged;
}

/// The counts of one pager.
#[derive(Debug)]
pub(crate) struct Stats([AtomicU64; Event::ALL.len()]);

impl Stats {
    pub(crate) const fn new() -> Stats {
        Stats([const { AtomicU64::new(0) }; Event::ALL.len()])
    }

    /// Counts `pages` pages; only called under the pager's lock.
    pub(crate) fn count(&self, event: Event, pages: u32) {
        let word = &self.0[event as usize];
        word.store(word.load(Relaxed) + u64::from(pages), Relaxed);
    }

    pub(crate) fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Relaxed)
    }

    /// Lets others see the counts.
    pub(crate) fn publish(&self, slot: &Slot) {
        for &event in Event::ALL {
            slot.set(event.counter(), self.get(event));
        }
    }
}
