//! The interface for a sampler (the crate `vellum-heapprofile`), which records some blocks with their stacks.
//!
//! The sampler installs one table of functions, which the slow paths call after [`sample`] has been called.
//! The rest of this file gives the sampler access to the heaps.
//!
//! A sampled small block comes from a [`SampleHeap`], which belongs to no thread. In every thread, `free` of
//! such a block therefore takes the slow path, as for another thread's block. A sampled large block has a
//! mark in the word that holds its length (`lengths`).

pub use crate::arch::here;
pub use crate::class::{CLASSES, bytes_of, class_of};
pub use crate::figures::for_each_listed;
pub use crate::hooks::Hooks;
pub use crate::mode::{is_sampled, sample};
pub use crate::seal::random;

use crate::heap::{Heap, pop};
use crate::lengths::{SAMPLED, length_of};
use crate::small::{check_live, free_remote};
use crate::space::Space;
use crate::state::MALLOC;
use crate::{figures, registry, threads, tls};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use vellum_pages::{Pages, UNIT};

/// Installs the sampler's functions. They are called from [`sample`] on, except `serve_request`.
#[inline(never)]
pub fn install(hooks: &'static Hooks) {
    MALLOC.hooks.store(core::ptr::from_ref(hooks).cast_mut(), Release);
}

/// Makes every heap draw the number of requests before its next samples again.
#[inline(never)]
pub fn redraw() {
    MALLOC.epoch.fetch_add(1, Release);
}

/// A thread inside the gate of its heap, until the value is dropped: neither the helper nor a fork finds a
/// lock that this thread took here.
#[derive(Debug)]
pub struct Inside(&'static Heap);

impl Inside {
    /// Enters the gate of the calling thread's heap. `None` if it has none, or is inside already.
    pub fn of_current() -> Option<Inside> {
        tls::current().filter(|heap| heap.gate.enter()).map(Inside)
    }

    /// Enters the gate of the calling thread's heap. A thread without a heap gets one.
    pub fn of_attached() -> Option<Inside> {
        threads::attached().filter(|heap| heap.gate.enter()).map(Inside)
    }

    /// A block of at least `bytes` bytes, or null if memory is out. `draw` returns the number of requests
    /// before the next sample, given the bytes of a block; `sample` makes one, given its class and a block
    /// that it would have lain beside.
    pub fn allocate(
        &self,
        bytes: usize,
        draw: impl Fn(usize) -> u32,
        sample: impl Fn(usize, *const u8) -> Option<*mut u8>,
    ) -> Option<*mut u8> {
        let class = class_of(bytes.max(1));
        let draw = || draw(bytes_of(class));
        self.0.take_or_sample(class, MALLOC.epoch.load(Acquire), draw, |neighbour| sample(class, neighbour))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}

/// The heap of sampled small blocks. It shares no slabs with other heaps.
#[repr(transparent)]
#[derive(Debug)]
pub struct SampleHeap(Heap);

impl SampleHeap {
    /// A new one; `None` if memory is out.
    pub fn create() -> Option<&'static SampleHeap> {
        let heap = registry::create_apart()?;
        // SAFETY: the wrapper has the heap's layout (`repr(transparent)`), and heaps are never unmapped.
        Some(unsafe { &*core::ptr::from_ref(heap).cast() })
    }

    /// A block of `class`; `None` if memory is out.
    ///
    /// # Safety
    /// No other thread is in this function.
    pub unsafe fn allocate(&'static self, class: usize) -> Option<*mut u8> {
        self.0.take_apart(class)
    }

    /// Frees the block at `address` if it is of this heap; false, with nothing done, if it is not.
    /// `is_freed_now` runs after the checks, and returns false if the block is to be freed later.
    ///
    /// # Safety
    /// The conditions of [`crate::free`].
    pub unsafe fn free(&self, address: *mut u8, is_freed_now: impl FnOnce() -> bool) -> bool {
        let Some(slab) = Space::get().slab_of(address).filter(|slab| slab.is_of(&self.0)) else {
            return false;
        };
        // SAFETY: the caller gives the block up, and `slab` describes its unit.
        unsafe {
            check_live("free", slab, address);
            if is_freed_now() {
                free_remote(slab, address);
            }
        }
        true
    }
}

/// The length word of a large block, for [`mark`]; `None` if the block is the pager's.
pub fn length_word(address: *mut u8) -> Option<&'static AtomicU32> {
    length_of(address)
}

/// Marks a large block as sampled in its length word.
pub fn mark(word: &AtomicU32) {
    word.fetch_or(SAMPLED, Relaxed);
}

/// The use of a slab at the moment.
#[derive(Clone, Copy, Debug)]
pub struct SlabUse {
    /// The first address of its unit.
    pub unit: usize,
    /// The class of its blocks.
    pub class: usize,
    /// Blocks that are in use, or on their heap's list.
    pub blocks: usize,
    /// Bytes of these blocks.
    pub bytes: usize,
}

impl SlabUse {
    fn of(unit: usize) -> Option<SlabUse> {
        let slab = Space::get().slab_of(core::ptr::with_exposed_provenance(unit))?;
        slab.is_slab().then(|| {
            let blocks = figures::in_use(slab);
            let class = usize::from(slab.class.get()) % CLASSES;
            SlabUse { unit, class, blocks, bytes: blocks * slab.bytes.get() as usize }
        })
    }

    /// The slab in the unit of that number; see [`unit_number`].
    pub fn of_unit(number: u32) -> Option<SlabUse> {
        SlabUse::of(Space::get().base + (number.checked_sub(1)? as usize) * UNIT)
    }
}

/// The number of the unit around an address, from 1 on; 0 outside the span.
pub fn unit_number(address: *const u8) -> u32 {
    let space = Space::get();
    let offset = (address as usize).wrapping_sub(space.base);
    if offset < space.bytes { (offset / UNIT) as u32 + 1 } else { 0 }
}

/// Calls `see` with each slab.
pub fn for_each_slab(mut see: impl FnMut(SlabUse)) {
    Pages::global().for_each_unit(|unit| {
        if let Some(slab) = SlabUse::of(unit.get()) {
            see(slab);
        }
    });
}

/// Bytes of idle units, and of large blocks that wait in magazines.
pub fn idle_bytes() -> usize {
    registry::all().map(Heap::idle_bytes).sum()
}
impl Heap {
    /// A block of `class`, where blocks are sampled: `draw` returns how many requests pass before the next
    /// sample, `sample` makes one, given a block that it would have lain beside. Numbers drawn in another
    /// epoch do not hold. `None` if memory is out. Inside the gate.
    fn take_or_sample(
        &'static self,
        class: usize,
        epoch: u32,
        draw: impl Fn() -> u32,
        sample: impl Fn(*const u8) -> Option<*mut u8>,
    ) -> Option<*mut u8> {
        let (list, left) = (&self.free[class], &self.countdown.left[class]);
        let draw = || left.set(draw().saturating_add(1));
        self.countdown.begin(epoch);
        loop {
            if let Some(block) = pop(list) {
                return Some(block);
            }
            match left.get() {
                0 => draw(),
                1 => {
                    draw();
                    let rest = self.countdown.withheld[class].replace(null_mut());
                    let neighbour = if rest.is_null() { self.next_from(class) } else { rest.cast() };
                    if !rest.is_null() {
                        let blocks = u32::from(self.countdown.withheld_blocks[class].get());
                        list.set(self.countdown.cut(class, rest, blocks));
                    }
                    if let Some(block) = sample(neighbour) {
                        return Some(block);
                    }
                }
                _ => {
                    let fetched = self.refill(class);
                    if fetched.is_null() {
                        return None;
                    }
                    list.set(self.countdown.part(class, fetched));
                }
            }
        }
    }

    /// The unit from which the next blocks of `class` likely come; null if there is none.
    fn next_from(&self, class: usize) -> *const u8 {
        let bin = &self.bins[class];
        // SAFETY: null, or a slab on a bin's list or being carved: live descriptions in the side table.
        let slab = unsafe { bin.awake.get().as_ref().or_else(|| bin.carving.get().as_ref()) };
        slab.map_or(core::ptr::null(), |slab| self.unit_of(slab))
    }

    /// A block of `class` of a heap that no thread has, for the only thread that uses it now.
    fn take_apart(&'static self, class: usize) -> Option<*mut u8> {
        let (bin, list) = (&self.bins[class], &self.free[class]);
        if list.get().is_null() {
            if !self.woken.is_empty() {
                self.drain();
            }
            // SAFETY: slabs on a bin's list are live descriptions in the side table.
            let awake = unsafe { bin.awake.get().as_ref() };
            list.set(match awake {
                Some(slab) => self.take(bin, slab),
                None => self.carve(bin, class),
            });
        }
        pop(list)
    }
}
