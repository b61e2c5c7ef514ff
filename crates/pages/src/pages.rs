//! The page layer's operations on blocks: hand out, give back, grow, shrink.
//!
//! Every operation decides and updates the records under the lock. Then it makes slow system calls without
//! the lock, on extents that no other thread can reach meanwhile. Moving is in [`crate::relocate`], giving
//! frames back in [`crate::release`], the background thread in [`crate::helper`].

use crate::advice::Advised;
use crate::arena::{Arena, Taken};
use crate::available::LimitWatch;
use crate::config::{Config, HugePolicy};
use crate::discard::Vacated;
use crate::error::{Misuse, OutOfMemory};
use crate::helper::Helper;
use crate::holes::Inside;
use crate::resident::Resident;
use crate::shortage::Shortage;
use crate::state::{Advice, Block, DENSE, SPAN, State, Use, WHOLE};
use crate::tag::{Kind, PageNo, Run, flag};
use crate::units::{ALIGN_MAX, ARENA_BYTES, LARGE_MIN, PAGE, UNIT, UNIT_PAGES, bytes_of, pages_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use vellum_sys::lock::{Guarded, Held};
use vellum_sys::{Addr, Caps, Span, caps, limits, map};
use vellum_wire::{Counter, Slot};

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes; rounded up to whole pages.
    pub bytes: usize,
    /// Alignment of the start in bytes: a power of two up to [`ALIGN_MAX`].
    pub align: usize,
    /// If set, every byte must read as zero. Otherwise they hold this process's old data.
    pub zero: bool,
}

/// A block of whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first byte, page-aligned.
    pub addr: NonNull<u8>,
    /// Length in bytes, a multiple of [`PAGE`].
    pub bytes: usize,
    /// If set, every byte reads as zero.
    pub zeroed: bool,
}

impl Extent {
    /// The block's addresses.
    #[inline]
    pub fn span(&self) -> Span {
        Span::at(self.addr.as_ptr(), self.bytes)
    }
}

/// The page layer of a process. There is one, [`Pages::global`]; tests make more.
pub struct Pages {
    pub(crate) state: Guarded<State>,
    /// The start of the span; 0 before the first block.
    start: AtomicUsize,
    pub(crate) hook: AtomicPtr<()>,
    pub(crate) inside: Inside,
    pub(crate) vacated: Vacated,
    pub(crate) shortage: Shortage,
    pub(crate) limits: LimitWatch,
    pub(crate) advised: Advised,
    pub(crate) helper: Helper,
    /// The slot, for counts made without the lock.
    counting: AtomicPtr<Slot>,
    /// Pages that the program has mapped from the kernel since the account was written: see `elsewhere`.
    pub(crate) elsewhere: AtomicU64,
}

static GLOBAL: Pages = Pages::new();

impl Pages {
    /// A page layer that has claimed nothing yet.
    pub const fn new() -> Pages {
        Pages {
            state: Guarded::new(State::new()),
            start: AtomicUsize::new(0),
            hook: AtomicPtr::new(core::ptr::null_mut()),
            inside: Inside::new(),
            vacated: Vacated::new(),
            shortage: Shortage::new(),
            limits: LimitWatch::new(),
            advised: Advised::new(),
            helper: Helper::new(),
            counting: AtomicPtr::new(core::ptr::null_mut()),
            elsewhere: AtomicU64::new(0),
        }
    }

    /// The process's page layer.
    #[inline]
    pub fn global() -> &'static Pages {
        &GLOBAL
    }

    pub(crate) fn is_global(&self) -> bool {
        core::ptr::eq(self, &raw const GLOBAL)
    }

    /// The addresses that every block lies in. Fixed after the first block; empty without address space.
    pub fn span(&self) -> Span {
        let placed = self.placed();
        if placed.is_empty() {
            let mut state = self.state.lock();
            self.init(&mut state);
        }
        self.placed()
    }

    /// [`Pages::span`] without the lock: empty before the first block. Takes no lock.
    #[inline]
    pub fn placed(&self) -> Span {
        self.span_of(SPAN)
    }

    /// This layer's address space: the span and the tables beside it. Empty before the first block.
    #[inline]
    pub fn reserved(&self) -> Span {
        self.span_of(WHOLE)
    }

    #[inline]
    fn span_of(&self, bytes: usize) -> Span {
        match self.start.load(Ordering::Acquire) {
            0 => Span::EMPTY,
            start => Span::new(Addr::new(start), bytes),
        }
    }

    /// The side table: unit `i`, counted from the span's start, has [`UNIT_SIDE`](crate::UNIT_SIDE) bytes at
    /// `i * UNIT_SIDE` from here. Mapped for every unit handed out; zero until its owner writes it.
    pub fn side(&self) -> *mut u8 {
        let mut state = self.state.lock();
        self.init(&mut state);
        state.side.ptr()
    }

    /// Applies settings. Memory handed out before keeps the form it has.
    pub fn configure(&self, config: Config) {
        self.state.lock().config = config;
    }

    /// The counters.
    pub fn slot(&self) -> &'static Slot {
        self.state.lock().slot
    }

    /// Counts in `slot` from now on, which takes over the counts so far.
    pub fn attach_slot(&self, slot: &'static Slot) {
        let mut state = self.state.lock();
        slot.copy_counts(state.slot);
        state.slot = slot;
        self.counting.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        state.publish();
    }

    /// Keeps counting in `slot` from zero: for a forked child, whose parent keeps its own counts.
    pub fn attach_new_slot(&self, slot: &'static Slot) {
        let mut state = self.state.lock();
        state.slot = slot;
        self.counting.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        state.publish();
    }

    /// Maps only needed memory from now on, and unmaps the rest, before a process locks all (`mlockall`).
    pub fn on_mlockall(&self) {
        let mut state = self.state.lock();
        if state.is_init {
            state.map_no_more_than_needed();
        }
    }

    /// Makes only system calls that map memory from now on, before a process forbids itself others.
    pub fn no_syscalls(&self) {
        self.dismiss_helper();
        let mut state = self.state.lock();
        self.init(&mut state);
        state.still = true;
        state.arenas.iter_mut().for_each(Arena::dump_all);
        self.inside.be_still();
        caps::drop(Caps::all().difference(Caps::NOREPLACE));
    }

    /// Checks every invariant; names the first that is broken. Slow: walks the tags of everything mapped.
    pub fn validate(&self) -> Result<(), &'static str> {
        let mut state = self.state.lock();
        if !state.is_init {
            return Ok(());
        }
        state.arenas.iter_mut().try_for_each(Arena::validate)
    }

    /// Hands out a block.
    ///
    /// # Errors
    /// [`OutOfMemory`] when there is no address space, or the size or alignment exceeds
    /// [`BLOCK_MAX`](crate::BLOCK_MAX) or [`ALIGN_MAX`].
    pub fn alloc(&self, request: Request) -> Result<Extent, OutOfMemory> {
        let refused = OutOfMemory { bytes: request.bytes };
        let pages = pages_of(request.bytes).ok_or(refused)?;
        if !request.align.is_power_of_two() || request.align > ALIGN_MAX {
            return self.refuse(refused);
        }
        let align = (request.align / PAGE).max(1) as u32;
        let usage = self.use_for(pages, request.zero);
        let Some((arena, taken)) = self.find_pages(pages, align, usage) else {
            return self.refuse(refused);
        };
        self.lend(arena, &taken, usage, request.zero);
        let extent = self.extent(arena, &taken);
        // SAFETY: null, or a slot that lives for ever.
        if let Some(slot) = unsafe { self.counting.load(Ordering::Relaxed).as_ref() } {
            slot.count_size(request.bytes, 1);
        }
        if request.zero && !extent.zeroed {
            let warm = taken.bytes_before_cold();
            // SAFETY: the extent was taken a moment ago and nobody else knows of it.
            unsafe { extent.addr.write_bytes(0, warm) };
            let state = self.state.lock();
            state.count(Counter::BytesCleared, warm as u64);
            return Ok(Extent { zeroed: true, ..extent });
        }
        Ok(extent)
    }

    /// Hands out units of [`UNIT`] bytes, so aligned, contents undefined, until `out` is full or memory ends;
    /// returns how many. If many have no frames, the helper fetches those while the caller cuts the units up.
    pub fn alloc_units(&self, out: &mut [*mut u8]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            let wanted = (out.len() - filled) as u32;
            let usage = if wanted as usize * UNIT >= LARGE_MIN { Use::Batch } else { Use::Fixed };
            let Some((arena, taken)) = self
                .find_reused_units(wanted)
                .or_else(|| self.find_pages(wanted * UNIT_PAGES, UNIT_PAGES, usage))
                .or_else(|| self.find_pages(UNIT_PAGES, UNIT_PAGES, Use::Fixed))
            else {
                break;
            };
            let mut state = self.state.lock();
            let arena = &mut state.arenas[arena];
            let end = taken.end();
            let missing = arena.span(taken.cold_from, end - taken.cold_from);
            for page in (taken.start..end).step_by(UNIT_PAGES as usize) {
                if page + UNIT_PAGES < end {
                    arena.split(page, UNIT_PAGES);
                }
                out[filled] = arena.address(page).ptr();
                filled += 1;
            }
            drop(state);
            self.fetch_ahead(missing);
        }
        filled
    }

    /// Gives units back.
    ///
    /// # Safety
    /// Each was handed out by [`Pages::alloc_units`] and is used by nobody.
    pub unsafe fn free_units(&self, units: &[*mut u8]) {
        let mut state = self.state.lock();
        state.before_free();
        for &unit in units {
            if let Ok(Block { arena, page, .. }) = locate(&mut state, Addr::of(unit)) {
                self.free_unit(&mut state, arena, page);
            }
        }
        self.after_free(state, u32::MAX);
    }

    /// Gives a block back; returns its length in bytes. Its frames stay in the cache, its contents are lost.
    ///
    /// # Errors
    /// [`Misuse`] if `addr` is not the start of a live block; nothing has changed then.
    ///
    /// # Safety
    /// The block is not used any more.
    pub unsafe fn free(&self, addr: NonNull<u8>) -> Result<usize, Misuse> {
        let mut state = self.state.lock();
        let Block { arena, page, pages } = locate(&mut state, Addr::of(addr.as_ptr()))?;
        let flags = state.arenas[arena].flags(page);
        if flags & flag::MAPPING != 0 {
            return Err(Misuse::Mapping);
        }
        self.give_back(state, arena, page);
        Ok(bytes_of(pages))
    }

    /// The live block that starts at `addr`.
    ///
    /// # Errors
    /// [`Misuse`] if none does.
    pub fn extent_at(&self, addr: *const u8) -> Result<Extent, Misuse> {
        let mut state = self.state.lock();
        let Block { arena, page, pages } = locate(&mut state, Addr::of(addr))?;
        if state.arenas[arena].flags(page) & flag::MAPPING != 0 {
            return Err(Misuse::Mapping);
        }
        let addr = NonNull::new(addr.cast_mut()).ok_or(Misuse::NotOurs)?;
        Ok(Extent { addr, bytes: bytes_of(pages), zeroed: false })
    }

    /// Changes a block's length without moving it, or returns `None`.
    ///
    /// # Safety
    /// `addr` is the start of a live block; when it shrinks, the part cut off is not used any more.
    pub unsafe fn resize_in_place(&self, addr: NonNull<u8>, bytes: usize) -> Option<Extent> {
        // SAFETY: `# Safety` of this function is that of `stretch`.
        unsafe { self.stretch(addr, bytes, false) }
    }

    /// [`Pages::resize_in_place`] whose new bytes read as zero.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn resize_in_place_zeroed(&self, addr: NonNull<u8>, bytes: usize) -> Option<Extent> {
        // SAFETY: `# Safety` of this function is that of `stretch`.
        unsafe { self.stretch(addr, bytes, true) }
    }

    /// [`Pages::resize_in_place`], clearing new bytes if `zero`.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn stretch(&self, addr: NonNull<u8>, bytes: usize, zero: bool) -> Option<Extent> {
        let pages = pages_of(bytes)?;
        let mut state = self.state.lock();
        let Block { arena, page, pages: old } = locate(&mut state, Addr::of(addr.as_ptr())).ok()?;
        if pages < old {
            self.cut(state, arena, page, pages);
        } else if pages > old {
            let is_refused = limits::is_refused_at_once(bytes_of(pages - old));
            if is_refused || !state.arenas[arena].growth_is_possible(page, pages) {
                return None;
            }
            let mut taken = state.arenas[arena].grow(page, pages);
            state.book_taken(&taken);
            state.count(Counter::RegrownBlocks, 1);
            state.count(Counter::RegrownBytes, u64::from(taken.pages) * PAGE as u64);
            let new = state.arenas[arena].address(taken.start).ptr::<u8>();
            if taken.cold() > 0 {
                drop(state);
                self.fill_from_cache(arena, &mut taken);
                self.limit_to_peak(&taken);
                let mut state = self.state.lock();
                let block = state.arenas[arena].span(page, pages);
                let advice = state.plan_growth(arena, block, &taken);
                let flags = state.arenas[arena].flags(page) | State::flags_for(&taken, &advice);
                state.arenas[arena].set_flags(page, flags);
                self.after_cold(state, &advice, block);
            } else {
                state.publish();
                drop(state);
            }
            if zero {
                // SAFETY: the block's own new pages.
                unsafe { new.write_bytes(0, taken.bytes_before_cold()) };
            }
        }
        Some(Extent { addr, bytes: bytes_of(pages), zeroed: false })
    }

    /// Shortens the used extent at `page` to `pages`; the rest goes to the cache.
    fn cut(&self, mut state: Held<'_, State>, arena: usize, page: PageNo, pages: u32) {
        state.arenas[arena].split(page, pages);
        self.give_back(state, arena, page + pages);
    }

    /// Finds the arenas a place, if they have none yet. Returns whether they have one.
    pub(crate) fn init(&self, state: &mut State) -> bool {
        if state.is_init {
            return true;
        }
        if !state.init() {
            return false;
        }
        let dense = state.arenas[DENSE].whole();
        let window = match state.config.huge {
            HugePolicy::Auto => {
                state.windows.watch_arena(dense);
                None
            }
            HugePolicy::Always => Some(state.arenas[DENSE].mapped_span()),
            HugePolicy::Never => None,
        };
        Advice::huge(window).give();
        self.start.store(state.start.get(), Ordering::Release);
        true
    }

    fn extent(&self, arena: usize, taken: &Taken) -> Extent {
        let start = Addr::new(self.start.load(Ordering::Relaxed));
        let address = start + arena * ARENA_BYTES + bytes_of(taken.start);
        let addr = NonNull::new(address.ptr()).expect("arenas lie above the null page");
        Extent { addr, bytes: bytes_of(taken.pages), zeroed: taken.warm() + taken.marked() == 0 }
    }

    fn refuse(&self, refused: OutOfMemory) -> Result<Extent, OutOfMemory> {
        self.state.lock().count(Counter::OutOfMemory, 1);
        Err(refused)
    }

    /// Takes every lock, so that a forked child finds the layer whole. Pair with one of the two below.
    pub fn fork_prepare(&self) {
        self.state.raw().lock();
    }

    /// Gives the locks back in the parent.
    pub fn fork_parent(&self) {
        self.state.raw().unlock();
        self.end_fork();
    }

    /// Makes the layer usable in the child: the locks are free and there is no helper.
    pub fn fork_child(&self) {
        self.state.raw().reset_after_fork();
        // The thread that had those in hand is not here.
        {
            let mut state = self.state.lock();
            state.away = 0;
            state.resident = Resident::new();
        }
        if self.is_global() {
            vellum_sys::owner::claim();
            self.advised.reset_after_fork();
            self.vacated.reset_after_fork();
            self.helper.reset_after_fork();
            self.limits.reset_after_fork();
        }
    }
}

/// Gives the address space back, as few layers fit; the process's own never ends.
impl Drop for Pages {
    fn drop(&mut self) {
        let state = self.state.lock();
        if state.is_init && state.arenas[DENSE].is_reserved() {
            // SAFETY: all who held a block of this layer was to be gone before it.
            let _ = unsafe { map::release(state.whole()) };
        }
    }
}

impl Default for Pages {
    fn default() -> Self {
        Pages::new()
    }
}

/// The used extent that starts at `address`.
pub(crate) fn locate(state: &mut State, address: Addr) -> Result<Block, Misuse> {
    let arena = state.arena_at(address).ok_or(Misuse::NotOurs)?;
    let page = state.arenas[arena].page(address);
    if !address.is_aligned(PAGE) {
        return Err(match state.arenas[arena].containing(page) {
            Some(Run { start, kind: Kind::Used, .. }) => {
                Misuse::InsideBlock { start: state.arenas[arena].address(start) }
            }
            _ => Misuse::AlreadyFree,
        });
    }
    let pages = state.arenas[arena].used_at(page)?;
    // Freed, and out of its list while a thread deals with its frames.
    if state.arenas[arena].flags(page) & flag::AWAY != 0 {
        return Err(Misuse::AlreadyFree);
    }
    Ok(Block { arena, page, pages })
}

const _: () = assert!(UNIT.is_multiple_of(PAGE));
