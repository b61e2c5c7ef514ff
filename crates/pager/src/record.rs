//! What the pager knows of each page.
//!
//! ```text
//!  Fresh ──fault──▶ Mapped ──taken away──▶ Held ──submitted──▶ Writing
//!    ▲                ▲  ▲                  │ │                   │
//!    │ renewed        │  └──── fault ───────┘ │ unchanged         │ written
//!    │                │                       ▼                   ▼
//!  (any)              └────── fault ──────── Stored ◀─────────────┘
//!                     └────── fault ──────── Vague  ◀── discarded (any)
//! ```

use crate::table::Zero;
use crate::units::{Place, SlotNo};

/// Where a page's contents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Nowhere: it reads as zero.
    Fresh = 0,
    /// In a frame at the page's own address.
    Mapped = 1,
    /// In a frame in the pool, at [`Record::place`].
    Held = 2,
    /// As `Held`, and being given up: compared with the store's copy, or written there.
    Writing = 3,
    /// In the store, at [`Record::slot`], or compressed (`tier`).
    Stored = 4,
    /// Nowhere, and whatever it reads as will do.
    Vague = 5,
    /// In the store, and being read ahead into a frame at [`Record::place`].
    Reading = 6,
    /// In a frame that is on its way from [`Record::place`] to the page's own address: who touches it waits,
    /// and is woken by its coming.
    Arriving = 7,
}

/// The fate of a page once it is written or read.
pub(crate) mod flag {
    /// Somebody waits for it.
    pub(crate) const WANTED: u8 = 1 << 0;
    /// Its contents are no longer needed; it will be [`State::Vague`](super::State::Vague).
    pub(crate) const DROPPED: u8 = 1 << 1;
    /// With `DROPPED`: it will be [`State::Fresh`](super::State::Fresh).
    pub(crate) const RENEWED: u8 = 1 << 2;
    /// While it is held: it was brought beside another, and stands for what was brought with it
    /// (`neighbours`).
    pub(crate) const PROBE: u8 = 1 << 3;
}

/// A page's record. Zero is a fresh page.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Record {
    state: u8,
    pub(crate) flags: u8,
    /// It has a lock of the C library's, and is to be kept where it is.
    stays: bool,
    /// It came back alone, by a fault of its own.
    lone: bool,
    place: u32,
    /// Plus one; 0 is none.
    slot: u32,
}

// SAFETY: integers and bools, for which zero is `false`, and 0 is a state.
unsafe impl Zero for Record {}

const _: () = assert!(size_of::<Record>() == 12);

impl Record {
    pub(crate) fn state(&self) -> State {
        match self.state {
            1 => State::Mapped,
            2 => State::Held,
            3 => State::Writing,
            4 => State::Stored,
            5 => State::Vague,
            6 => State::Reading,
            7 => State::Arriving,
            _ => State::Fresh,
        }
    }

    pub(crate) fn set(&mut self, state: State) {
        self.state = state as u8;
    }

    /// The page's frame is in the pool at `place`.
    pub(crate) fn hold(&mut self, place: Place) {
        self.set(State::Held);
        self.place = place.0;
    }

    /// Where the frame of a page that is held or being written lies.
    pub(crate) fn place(&self) -> Place {
        Place(self.place)
    }

    /// A page that is stored has no place: its stamp is there (`waits`).
    pub(crate) fn stamp(&self) -> u32 {
        self.place
    }

    pub(crate) fn set_stamp(&mut self, stamp: u32) {
        self.place = stamp;
    }

    /// Whether the page is to be kept where it is.
    pub(crate) fn stays(&self) -> bool {
        self.stays
    }

    /// Sets whether the page is to be kept where it is; returns whether that is news.
    pub(crate) fn set_stays(&mut self, stays: bool) -> bool {
        core::mem::replace(&mut self.stays, stays) != stays
    }

    /// Whether the page, which is in memory, came back alone by a fault of its own: what goes on with nothing
    /// may come again.
    pub(crate) fn is_lone(&self) -> bool {
        self.lone
    }

    pub(crate) fn set_lone(&mut self, lone: bool) {
        self.lone = lone;
    }

    /// The copy in the store, if there is one.
    pub(crate) fn slot(&self) -> Option<SlotNo> {
        self.slot.checked_sub(1).map(SlotNo)
    }

    pub(crate) fn set_slot(&mut self, slot: Option<SlotNo>) {
        self.slot = slot.map_or(0, |slot| slot.0 + 1);
    }
}
