//! Making room: taking pages from their addresses to see whether they are asked for, and giving up the frames
//! of those that are not.
//!
//! Both go by chunks of neighbours where there are any, since what lies together is moved and written in one
//! call. Ahead of need ([`Pager::make_ready`]) a few frames are kept free and an eighth of all pages held;
//! only when that was too slow does a fault wait ([`Pager::wait_for_frame`]).

use crate::exchange::{self, Taken};
use crate::inner::Inner;
use crate::pager::{A_WHILE_NS, Pager};
use crate::policy::{Chosen, Policy};
use crate::record::{State, flag};
use crate::stats::Event;
use crate::store::Backing;
use crate::trouble;
use crate::units::{BATCH, PAGE, PageNo, Place};
use core::sync::atomic::Ordering;
use rustix::io::Errno;
use vellum_sys::lock::Held;
use vellum_sys::{clock, thread};

/// How often in a row nothing may be had before it is taken to be so for good.
const HOPELESS: u32 = 1000;
/// Pages given up at a time where faults jump about.
const APART: u32 = 64;
/// Between two of these.
const PAUSE_NS: u64 = 1_000_000;

/// A few pages.
pub(crate) struct Few {
    pages: [PageNo; BATCH],
    len: usize,
}

impl Few {
    pub(crate) const fn none() -> Few {
        Few { pages: [PageNo(0); BATCH], len: 0 }
    }

    pub(crate) fn push(&mut self, page: PageNo) {
        self.pages[self.len] = page;
        self.len += 1;
    }

    pub(crate) fn as_slice(&self) -> &[PageNo] {
        &self.pages[..self.len]
    }

    pub(crate) fn sort(&mut self) {
        self.pages[..self.len].sort_unstable();
    }
}

impl<B: Backing + Send> Pager<B> {
    /// The process's virtual time in nanoseconds, as far as the policy needs to know.
    pub(crate) fn now(&self, policy: &Chosen) -> u64 {
        if policy.goes_by_time() { clock::own_cpu_ns() } else { 0 }
    }

    /// Gives up and takes away so much that the next faults find frames.
    pub(crate) fn make_ready(&self, inner: &mut Inner) {
        // Pages that lie apart are taken one by one, which somebody waits for.
        let chunk = if inner.streams.is_jumping() { inner.chunk.min(APART) } else { inner.chunk };
        while inner.pool.free() + inner.queue.pending() < inner.low() {
            let held = inner.policy.held();
            if held < inner.held_wanted() + chunk {
                self.take_away(inner, chunk);
            }
            if self.give_up(inner, chunk) == 0 {
                break;
            }
        }
        self.submit(inner);
    }

    /// Waits until a frame is free. The lock is given back meanwhile.
    pub(crate) fn wait_for_frame<'a>(&'a self, mut inner: Held<'a, Inner>) -> Held<'a, Inner> {
        let mut vain = 0;
        loop {
            self.make_ready(&mut inner);
            if inner.pool.free() > 0 {
                return inner;
            }
            let seen = self.written.load(Ordering::Acquire);
            let is_coming = inner.queue.pending() > 0 || !inner.clusters.is_empty();
            drop(inner);
            if is_coming {
                thread::wait(&self.written, seen, A_WHILE_NS);
            } else {
                vain += 1;
                if vain > HOPELESS {
                    trouble::stop("can give up none of its frames: system calls hold them all", Errno::BUSY);
                }
                thread::wait(&self.written, seen, PAUSE_NS);
            }
            inner = self.inner.lock();
        }
    }

    /// Takes up to `most` mapped pages from their addresses, as the policy says.
    pub(crate) fn take_away(&self, inner: &mut Inner, most: u32) {
        let now = self.now(&inner.policy);
        let mut few = Few::none();
        while few.len < most as usize {
            let Some(page) = inner.policy.probe(&mut inner.links, now) else { break };
            few.push(page);
        }
        few.sort();
        self.take(inner, few.as_slice(), |policy, links, page, taken| match taken {
            Taken::Held | Taken::Lost => {}
            Taken::Stays => policy.stays(links, page),
        });
    }

    /// Takes mapped `pages`, sorted, from their addresses, and tells `done` what became of each.
    fn take(
        &self,
        inner: &mut Inner,
        pages: &[PageNo],
        mut done: impl FnMut(&mut Chosen, &mut [crate::policy::Link], PageNo, Taken),
    ) {
        let mut rest = pages;
        while let Some(&first) = rest.first() {
            if self.kept.has(first) || inner.stays(first) {
                done(&mut inner.policy, &mut inner.links, first, Taken::Stays);
                rest = &rest[1..];
                continue;
            }
            // Looked at once: it may be kept from now on, by somebody who waits until this is done.
            let is_next = |&(page, index): &(&PageNo, u32)| {
                page.0 == first.0 + index && !self.kept.has(*page) && !inner.stays(*page)
            };
            let run = 1 + rest[1..].iter().zip(1..).take_while(is_next).count();
            let Some(places) = inner.pool.take_empty(run as u32) else {
                trouble::stop("has no place for a page", Errno::NOSPC);
            };
            let (from, to) = (inner.address(first), inner.pool.address(Place(places.start)));
            // SAFETY: the pages are mapped in the pager's range, the places empty.
            let (bytes, then) =
                unsafe { exchange::take(self.faults(), from, to, places.len as usize * PAGE) };
            let held = (bytes / PAGE) as u32;
            for index in 0..held {
                let page = first.plus(index);
                inner.record(page).hold(Place(places.start + index));
                done(&mut inner.policy, &mut inner.links, page, Taken::Held);
            }
            let mut dealt_with = held;
            if then != Taken::Held && held < places.len {
                let page = first.plus(held);
                if then == Taken::Lost {
                    trouble::lost(inner.address(page));
                }
                done(&mut inner.policy, &mut inner.links, page, then);
                dealt_with += 1;
            }
            if held < places.len {
                inner.pool.put_empty(Place(places.start + held), places.len - held);
            }
            rest = &rest[dealt_with as usize..];
        }
    }

    /// Gives up to `most` pages up, as the policy says: discards those that nobody needs, and leaves the rest
    /// to the writer. Returns how many.
    pub(crate) fn give_up(&self, inner: &mut Inner, most: u32) -> u32 {
        let now = self.now(&inner.policy);
        let (mut held, mut mapped) = (Few::none(), Few::none());
        let most = (most as usize).min(inner.queue.room());
        while held.len + mapped.len < most {
            let Some(page) = inner.policy.victim(&mut inner.links, now) else { break };
            match inner.record(page).state() {
                State::Mapped => mapped.push(page),
                _ => held.push(page),
            }
        }
        // Discardable ones that nobody had taken away yet. Whether they still are can be seen only when they
        // are.
        mapped.sort();
        let mut taken = Few::none();
        self.take(inner, mapped.as_slice(), |policy, links, page, became| match became {
            Taken::Held => taken.push(page),
            Taken::Lost => {}
            Taken::Stays => policy.arrived(links, page, now),
        });
        for &page in taken.as_slice() {
            if self.marks().has(page.0) {
                held.push(page);
            } else {
                inner.policy.spared(&mut inner.links, page);
            }
        }
        held.sort();
        for &page in held.as_slice() {
            self.give_up_one(inner, page);
        }
        held.len as u32
    }

    fn give_up_one(&self, inner: &mut Inner, page: PageNo) {
        if self.marks().has(page.0) {
            inner.release(page, State::Vague);
            self.stats.count(Event::Discarded, 1);
            return;
        }
        if core::mem::take(&mut inner.record(page).flags) & flag::PROBE != 0 {
            inner.neighbours.learn(false);
        }
        inner.record(page).set(State::Writing);
        inner.queue.push(page);
    }
}
