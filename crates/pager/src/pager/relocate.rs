//! Objects at another place: what the pager knows of their pages is passed on, and frames change places; no
//! byte is copied or read from the store.
//!
//! Only what is on its way at that moment, or cannot be moved (it is shared with a child, the program has
//! forbidden it), is copied as anybody would.

use super::{Pager, Refused};
use crate::inner::{Inner, Request};
use crate::policy::Policy;
use crate::record::State;
use crate::store::Backing;
use crate::units::{BATCH, PAGE, PageNo};
use core::ptr::NonNull;
use vellum_sys::fault::Ours;
use vellum_sys::thread::Undisturbed;

/// Pages passed on before others may have the lock.
const AT_ONCE: u32 = 16 * BATCH as u32;

impl<B: Backing + Send> Pager<B> {
    /// Makes the object at `address` `bytes` bytes long, at another place, and returns that. Added pages have
    /// undefined contents.
    ///
    /// # Errors
    /// [`Refused`] if none starts there, or there is no room for both; it is as it was then.
    ///
    /// # Safety
    /// Nobody uses the object meanwhile, and the old place afterwards.
    pub unsafe fn relocate(
        &'static self,
        address: NonNull<u8>,
        bytes: usize,
    ) -> Result<NonNull<u8>, Refused> {
        let old = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let before = self.len(address.as_ptr()).ok_or(Refused::NoObject)?;
        let start = self.create(bytes, PAGE, false)?;
        let new = self.page_at(start.as_ptr()).ok_or(Refused::Span)?;
        let pages = (before.min(bytes.next_multiple_of(PAGE)) / PAGE) as u32;
        let mut at = 0;
        while at < pages {
            let most = (pages - at).min(AT_ONCE);
            // Frames are moved by the thread that has the descriptor for it.
            let done = if self.is_child() {
                0
            } else {
                let _undisturbed = Undisturbed::new();
                self.call(Request::PassOn(old.plus(at), new.plus(at), most)).unwrap_or(0)
            };
            at += done;
            if done < most {
                let offset = at as usize * PAGE;
                // SAFETY: a page of each object, which nobody else uses.
                unsafe {
                    start.as_ptr().add(offset).copy_from_nonoverlapping(address.as_ptr().add(offset), PAGE);
                }
                at += 1;
            }
        }
        // SAFETY: by this function's condition; what it held is elsewhere.
        unsafe { self.destroy(address) }.map(|_| start)
    }

    /// Has `count` pages from `new` on be what those from `old` on are. Returns how many are; if not all, the
    /// next is to be copied.
    pub(crate) fn pass_on(&self, inner: &mut Inner, old: PageNo, new: PageNo, count: u32) -> u32 {
        let mut done = 0;
        while done < count {
            let (from, to) = (old.plus(done), new.plus(done));
            if !is_blank(inner, to) {
                return done;
            }
            match inner.record(from).state() {
                state @ (State::Fresh | State::Vague) => inner.record(to).set(state),
                State::Stored => {
                    let stamp = inner.record(from).stamp();
                    inner.record(to).set(State::Stored);
                    inner.record(to).set_stamp(stamp);
                    pass_slot(inner, from, to);
                    inner.record(from).set(State::Vague);
                }
                State::Held => {
                    let place = inner.record(from).place();
                    inner.policy_gone(from);
                    inner.record(from).set(State::Vague);
                    inner.record(from).flags = 0;
                    pass_slot(inner, from, to);
                    self.deliver(inner, place, to, 1);
                }
                State::Mapped => {
                    let moved = self.move_mapped(inner, from, to, count - done);
                    if moved == 0 {
                        return done;
                    }
                    done += moved;
                    continue;
                }
                State::Writing | State::Reading | State::Arriving => return done,
            }
            done += 1;
        }
        done
    }

    /// Moves mapped pages from `from` on, at most `most`, to `to`. Returns how many.
    fn move_mapped(&self, inner: &mut Inner, from: PageNo, to: PageNo, most: u32) -> u32 {
        if !self.faults().moves() {
            return 0;
        }
        let is_next = |index: &u32| {
            inner.records[from.plus(*index).index()].state() == State::Mapped
                && is_blank(inner, to.plus(*index))
        };
        let run = (0..most).take_while(is_next).count();
        let (source, destination) = (inner.address(from), inner.address(to));
        // SAFETY: both ranges are objects that nobody uses, the second without frames; under the lock nobody
        // else moves any.
        let (bytes, _) =
            unsafe { self.faults().move_pages(source, destination, run * PAGE, Ours::Destination) };
        let moved = (bytes / PAGE) as u32;
        for index in 0..moved {
            inner.policy_gone(from.plus(index));
            inner.record(from.plus(index)).set(State::Vague);
            pass_slot(inner, from.plus(index), to.plus(index));
        }
        if moved > 0 {
            let now = self.now(&inner.policy);
            let Inner { policy, links, records, .. } = inner;
            for page in (to.0..to.0 + moved).map(PageNo) {
                records[page.index()].set(State::Mapped);
                policy.arrived(links, page, now);
            }
        }
        moved
    }
}

/// Whether a page has neither contents nor frame.
fn is_blank(inner: &Inner, page: PageNo) -> bool {
    let record = &inner.records[page.index()];
    matches!(record.state(), State::Fresh | State::Vague) && record.slot().is_none() && !inner.tier.has(page)
}

/// Gives `to` the copies that there are of `from`.
fn pass_slot(inner: &mut Inner, from: PageNo, to: PageNo) {
    let slot = inner.record(from).slot();
    inner.record(from).set_slot(None);
    inner.record(to).set_slot(slot);
    inner.tier.pass(from, to);
    inner.sums[to.index()] = inner.sums[from.index()];
}
