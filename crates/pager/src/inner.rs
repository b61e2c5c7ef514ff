//! What the pager's lock guards: every page's record, the pool, the store's slots, and the policy; and the
//! steps that change several of them.

use crate::bits::Bits;
use crate::checksum::{Key, Sum};
use crate::fork::Forking;
use crate::neighbours::Neighbours;
use crate::objects::Objects;
use crate::policy::{Choice, Chosen, Link, Policy};
use crate::pool::Pool;
use crate::reader::Clusters;
use crate::record::{Record, State, flag};
use crate::share::Beside;
use crate::streams::Streams;
use crate::table::Table;
use crate::tier::{RESERVE, SEGMENT_FRAMES, Tier};
use crate::units::{BATCH, PageNo, Place, SlotNo};
use crate::waits::Waits;
use crate::writer::Queue;
use rustix::io::Errno;
use vellum_sys::credentials::Change;
use vellum_sys::text::Share as Portion;

/// Slots beyond one for each page of an object, so that a cluster can be written to new slots before its old
/// ones are free.
pub(crate) const SLACK: u32 = 2 * BATCH as u32;
/// Room is set aside in the store by this many slots at once: 16 MiB.
pub(crate) const STEP: u32 = 4096;

/// What the fault-handling thread is asked to do by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Nothing.
    None,
    /// To set aside room for this many slots in all.
    Reserve(u32),
    /// To have this many pages from the second on be what those from the first on are; the answer is how many
    /// are (`pager/relocate.rs`).
    PassOn(PageNo, PageNo, u32),
    /// To follow the program in [`Inner::change`], and have the other threads do.
    Follow,
    /// To end.
    Stop,
}

pub(crate) struct Inner {
    /// Pages that were to be kept where they are.
    pub(crate) staying: u32,
    /// Frames there are, without those whose memory the tier has; those that were asked for, and those that
    /// the limits on the process allow now: where
    /// there are more, free ones are given back until there are not.
    pub(crate) frames: u32,
    pub(crate) asked: u32,
    pub(crate) allowed: u32,
    /// Those that control groups allow.
    pub(crate) share: u32,
    /// Memory that is not paged.
    pub(crate) beside: Beside,
    /// Frames in memory when that was looked at last.
    pub(crate) seen_resident: u32,
    /// Most pages dealt with in one go.
    pub(crate) chunk: u32,
    pub(crate) base: usize,
    pub(crate) records: Table<Record>,
    pub(crate) links: Table<Link>,
    pub(crate) sums: Table<Sum>,
    pub(crate) pool: Pool,
    /// Pages that are compressed.
    pub(crate) tier: Tier,
    pub(crate) free_slots: Bits,
    /// Slots there is room for in the store.
    pub(crate) reserved: u32,
    /// Slots that compressed pages are being written to: no page's yet, and not free.
    pub(crate) slots_written_behind: u32,
    /// Pages of objects.
    pub(crate) committed: u32,
    pub(crate) committed_max: u32,
    /// Pages whose contents are in the store and nowhere else.
    pub(crate) stored: u32,
    /// Those in the first pages of the span, which the allocator cuts small blocks from.
    pub(crate) units: Objects,
    /// How many pages those are.
    pub(crate) near: u32,
    /// All others.
    pub(crate) objects: Objects,
    pub(crate) policy: Chosen,
    pub(crate) streams: Streams,
    pub(crate) neighbours: Neighbours,
    pub(crate) queue: Queue,
    /// What is being read ahead.
    pub(crate) clusters: Clusters,
    pub(crate) key: Key,
    /// The sum of a page of zeros, which need no room in the store.
    pub(crate) zero_sum: Sum,
    /// What the program has changed of who it is, last.
    pub(crate) change: Change,
    pub(crate) request: Request,
    pub(crate) answer: Result<u32, Errno>,
    pub(crate) stopping: bool,
    /// The end of what was ever an object's.
    pub(crate) high: u32,
    pub(crate) forking: Forking,
    pub(crate) waits: Waits,
}

/// One frame in this many may be that of a page that is kept where it is.
const STAYING_SHARE: u32 = 4;

/// Frames that may be owed for the tier's memory: a round of pages that are compressed frees more.
const OWED_MAX: u32 = RESERVE * SEGMENT_FRAMES;

/// How many pages one go may concern, with this many frames.
fn chunk_of(frames: u32) -> u32 {
    /// The part of all.
    const SHARE: u32 = 16;
    (frames / SHARE).clamp(1, BATCH as u32)
}

impl Inner {
    pub(crate) const fn none() -> Inner {
        Inner {
            staying: 0,
            frames: 0,
            asked: 0,
            allowed: 0,
            share: 0,
            beside: Beside::none(),
            seen_resident: 0,
            chunk: 1,
            base: 0,
            records: Table::empty(),
            links: Table::empty(),
            sums: Table::empty(),
            pool: Pool::none(),
            tier: Tier::none(),
            free_slots: Bits::empty(),
            reserved: 0,
            slots_written_behind: 0,
            committed: 0,
            committed_max: 0,
            stored: 0,
            units: Objects::none(),
            near: 0,
            objects: Objects::none(),
            policy: Chosen::new(Choice::Clock),
            streams: Streams::new(),
            neighbours: Neighbours::new(),
            queue: Queue::new(),
            clusters: Clusters::new(),
            key: Key::new([0, 0]),
            zero_sum: [0, 0],
            change: Change::none(),
            request: Request::None,
            answer: Ok(0),
            stopping: false,
            high: 0,
            forking: Forking::not(),
            waits: Waits::none(),
        }
    }

    pub(crate) fn new(
        frames: u32,
        base: usize,
        near: u32,
        pages: u32,
        choice: Choice,
        compressed: Portion,
    ) -> Result<Inner, Errno> {
        let (pool, key) = (Pool::new(frames)?, Key::random());
        // SAFETY: a page of the pool that nobody has written to yet.
        let zero_sum = unsafe { key.sum(pool.start() as *const u8) };
        Ok(Inner {
            staying: 0,
            frames,
            asked: frames,
            allowed: frames,
            share: frames,
            chunk: chunk_of(frames),
            base,
            records: Table::new(pages as usize)?,
            links: Table::new(pages as usize)?,
            sums: Table::new(pages as usize)?,
            pool,
            tier: Tier::new(compressed, frames, pages)?,
            free_slots: Bits::new(pages + SLACK + STEP)?,
            units: Objects::new(0, near)?,
            near,
            objects: Objects::new(near, pages)?,
            policy: Chosen::new(choice),
            key,
            zero_sum,
            ..Inner::none()
        })
    }

    /// Frames to be had without giving anything up, below which pages are given up ahead: those for the next
    /// faults, and those that are to be given back.
    pub(crate) fn low(&self) -> u32 {
        self.spare() + self.surplus()
    }

    fn spare(&self) -> u32 {
        2 * self.chunk
    }

    /// Has as many frames allowed as control groups do, and as memory that is not paged leaves, where that
    /// counts.
    pub(crate) fn allow(&mut self) {
        let left = if self.near > 0 { self.beside.leaves(self.asked) } else { self.asked };
        self.allowed = self.share.min(left);
        self.tier.follow(self.allowed);
    }

    /// Frames that there are beyond those allowed.
    pub(crate) fn surplus(&self) -> u32 {
        self.all_frames().saturating_sub(self.allowed)
    }

    /// Frames that there are, with those whose memory the tier has.
    pub(crate) fn all_frames(&self) -> u32 {
        self.frames + self.tier.frames()
    }

    /// Those of them that are in memory.
    pub(crate) fn resident(&self) -> u32 {
        self.pool.resident(self.frames) + self.tier.frames()
    }

    /// Has another segment for the tier, whose frames are owed until some are free ([`Inner::settle`]). False
    /// if it has all that it may have, or too many are owed already.
    pub(crate) fn feed_tier(&mut self) -> bool {
        if !self.tier.may_grow() || self.surplus() >= OWED_MAX || !self.tier.adopt() {
            return false;
        }
        self.settle();
        true
    }

    /// Gives up free frames for those beyond the allowed ones.
    pub(crate) fn settle(&mut self) {
        let free = self.pool.free();
        self.frames -= self.pool.retire(self.surplus().min(free));
        self.chunk = chunk_of(self.frames);
    }

    /// Has frames again for the memory of a free segment. False if none is free.
    pub(crate) fn starve_tier(&mut self) -> bool {
        if !self.tier.disown() {
            return false;
        }
        self.frames += self.pool.add(SEGMENT_FRAMES);
        self.chunk = chunk_of(self.frames);
        true
    }

    /// Has as many frames as are allowed, as far as free ones can be given back. True if the number has
    /// changed.
    pub(crate) fn follow_allowance(&mut self) -> bool {
        /// More are taken only if they are this part of all, so that small changes cause none.
        const STEP: u32 = 8;
        let before = self.frames;
        if self.surplus() > 0 {
            let free = self.pool.free().saturating_sub(self.spare().min(self.pool.free()));
            self.frames -= self.pool.retire(self.surplus().min(free));
        } else if self.allowed - self.all_frames() >= (self.frames / STEP).max(1) {
            self.frames += self.pool.add(self.allowed - self.all_frames());
        }
        self.chunk = chunk_of(self.frames);
        self.frames != before
    }

    /// Whether frames enough have come into memory since what is beside them was looked at that it should be
    /// looked at again: together they may be more than is allowed.
    pub(crate) fn has_grown(&self) -> bool {
        /// The part of all that were asked for.
        const SHARE: u32 = 64;
        self.resident() > self.seen_resident + self.asked / SHARE
    }

    /// Held pages wanted, as a second chance.
    pub(crate) fn held_wanted(&self) -> u32 {
        /// The part of all frames.
        const SHARE: u32 = 8;
        (self.frames / SHARE).max(self.chunk)
    }

    pub(crate) fn address(&self, page: PageNo) -> usize {
        self.base + page.index() * crate::units::PAGE
    }

    /// The objects among which one at `page` is.
    pub(crate) fn objects_at(&mut self, page: PageNo) -> &mut Objects {
        if page.0 < self.near { &mut self.units } else { &mut self.objects }
    }

    pub(crate) fn record(&mut self, page: PageNo) -> &mut Record {
        &mut self.records[page.index()]
    }

    /// Forgets the page's copies, in the tier and in the store.
    pub(crate) fn drop_copies(&mut self, page: PageNo) {
        self.tier.remove(page);
        if let Some(slot) = self.record(page).slot() {
            self.record(page).set_slot(None);
            self.free_slots.insert(slot.0, 1);
        }
    }

    /// A slot that nobody uses. There always is one, as each page of an object is entitled to one.
    pub(crate) fn take_slot(&mut self) -> Option<SlotNo> {
        self.free_slots.take(1).map(|run| SlotNo(run.start))
    }

    /// The page's frame is no policy's concern any more.
    pub(crate) fn policy_gone(&mut self, page: PageNo) {
        self.policy.gone(&mut self.links, page);
    }

    /// Gives up the frame of a page that is in the pool and in no policy's care; the page's new state is
    /// `state`.
    pub(crate) fn release(&mut self, page: PageNo, state: State) {
        let place = self.record(page).place();
        if matches!(state, State::Fresh | State::Vague) {
            self.drop_copies(page);
        }
        self.stored += u32::from(state == State::Stored);
        if state == State::Stored {
            let stamp = self.waits.lose();
            self.record(page).set_stamp(stamp);
        }
        let record = self.record(page);
        record.set(state);
        record.flags = 0;
        self.pool.put_free(place, 1);
    }

    /// The contents of `page` are not needed any more, whether it is still somebody's or not.
    pub(crate) fn forget(&mut self, page: PageNo) {
        match self.record(page).state() {
            State::Mapped | State::Held => {
                self.drop_copies(page);
                self.policy.discardable(&mut self.links, page);
            }
            State::Stored => {
                self.drop_copies(page);
                self.stored -= 1;
                self.record(page).set(State::Vague);
            }
            State::Writing | State::Reading | State::Arriving => self.record(page).flags |= flag::DROPPED,
            State::Fresh | State::Vague => {}
        }
    }

    /// Keeps `page` where it is, once it is there, until its object ends, if it is one of the few that may.
    pub(crate) fn keep(&mut self, page: PageNo) {
        if self.staying < self.frames / STAYING_SHARE {
            self.staying += u32::from(self.record(page).set_stays(true));
        }
    }

    /// Ends [`Inner::keep`].
    pub(crate) fn keep_no_more(&mut self, page: PageNo) {
        self.staying -= u32::from(self.record(page).set_stays(false));
    }

    /// Whether `page` stays in memory. No page does while a limit leaves too few frames for the kept pages:
    /// a pager without a frame to give up stops the program.
    pub(crate) fn stays(&self, page: PageNo) -> bool {
        self.records[page.index()].stays() && self.staying <= self.frames / STAYING_SHARE
    }

    /// The page reads as zero from now on. Returns false if that is left to the caller: it is mapped, or will
    /// be at once.
    pub(crate) fn renew(&mut self, page: PageNo) -> bool {
        match self.record(page).state() {
            State::Mapped | State::Arriving => return false,
            State::Held => {
                self.policy.gone(&mut self.links, page);
                self.release(page, State::Fresh);
            }
            State::Writing | State::Reading => self.record(page).flags |= flag::DROPPED | flag::RENEWED,
            state @ (State::Stored | State::Vague) => {
                self.drop_copies(page);
                self.stored -= u32::from(state == State::Stored);
                self.record(page).set(State::Fresh);
            }
            State::Fresh => {}
        }
        true
    }

    /// Checks that frames, slots and records agree; names what does not. Slow: looks at every page.
    pub(crate) fn validate(&mut self) -> Result<(), &'static str> {
        let (mut mapped, mut held, mut writing, mut stored, mut slots) = (0, 0, 0, 0, 0);
        for index in 0..self.records.len() {
            let record = self.records[index];
            let in_care = self.links[index].is_listed();
            match record.state() {
                State::Mapped => mapped += 1,
                State::Held => held += 1,
                State::Writing | State::Reading | State::Arriving => writing += 1,
                State::Stored if record.slot().is_none() && !self.tier.has(PageNo(index as u32)) => {
                    return Err("a stored page is nowhere");
                }
                State::Stored => stored += 1,
                _ => {}
            }
            if in_care != matches!(record.state(), State::Mapped | State::Held) {
                return Err("the policy cares for pages without frames, or not for all with");
            }
            if let Some(slot) = record.slot() {
                slots += 1;
                if self.free_slots.has(slot.0) {
                    return Err("a page's slot is free");
                }
            }
        }
        if self.pool.held() != held + writing {
            return Err("the pool holds other pages than are recorded as held");
        }
        if stored != self.stored {
            return Err("other pages are stored than are counted");
        }
        if self.pool.free() + held + writing + mapped != self.frames {
            return Err("frames were lost or made");
        }
        if (self.policy.mapped(), self.policy.held()) != (mapped, held) {
            return Err("the policy counts other pages than there are");
        }
        let slots = slots + self.slots_written_behind;
        if writing == 0 && self.free_slots.count() + slots != self.reserved {
            return Err("slots were lost or made");
        }
        self.tier.validate(|page| self.records[page.index()].state())?;
        Ok(())
    }

    /// A run of frames that hold nothing needed, each present: at most `most`; and all zeros, if `zero`.
    pub(crate) fn take_frames(&mut self, most: u32, zero: bool) -> Option<(Place, u32)> {
        self.pool.take_free(most, zero).map(|run| (Place(run.start), run.len))
    }
}
