//! Moves pages between ranges of one process without copying.
//!
//! There are two ways, which differ in later costs:
//!
//! * `UFFDIO_MOVE` (Linux 6.8) changes the address of each page. The destination's mapping stays joined with
//!   its neighbours, so no map entry is used. A huge page moves as a whole.
//! * `mremap` moves page-table entries, whole tables if source and destination have the same offset in 2 MiB.
//!   The destination becomes a separate map entry.
//!
//! `UFFDIO_MOVE` may move a page and still return an error that does not count it (`EEXIST`, or `EAGAIN` with
//! too low a count), while the kernel migrates pages. Therefore the destination is checked after every error.
//! The destination was emptied before the first move, and only the mover fills it: a page there has moved.
//!
//! The descriptor for the first way is opened for each transfer and closed after it. A program that closes
//! all descriptors therefore does no harm, and a descriptor's number is in use only during a move.

use crate::caps::{self, Caps};
use crate::uffd::{self, Transfer};
use crate::{Addr, HUGE, PAGE, Span, map, round_up};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

const MOVE_MODE_ALLOW_SRC_HOLES: u64 = 1 << 1;

/// The way in which a transfer was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By `UFFDIO_MOVE`: no map entry spent.
    Move,
    /// By `mremap`: `to` has a separate map entry now.
    Remap,
}

/// The permission to spend map entries on a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// No.
    None,
    /// Yes: moving tables is faster than moving pages.
    Gladly,
}

/// A range of empty memory that pages are being moved into. The range may be touched after it is dropped.
#[derive(Debug)]
pub struct Inlet {
    file: OwnedFd,
    span: Span,
}

impl Inlet {
    /// Opens `span`, which is mapped. Frames that are there are given back: a huge page may have brought
    /// some. Until the inlet is closed a touch there would wait for ever.
    ///
    /// # Errors
    /// The errno with which the kernel refuses; [`Caps::MOVE`] is dropped if it will always.
    ///
    /// # Safety
    /// The span is the caller's, and nothing in it is needed.
    pub unsafe fn open(span: Span) -> Result<Inlet, Errno> {
        if !caps::has(Caps::MOVE) {
            return Err(Errno::NOSYS);
        }
        let opened = uffd::open(uffd::USER_MODE_ONLY, uffd::FEATURE_MOVE).and_then(|file| {
            uffd::register(&file, span, uffd::REGISTER_MODE_MISSING)?;
            Ok(Inlet { file, span })
        });
        if let Err(errno) = opened
            && caps::means_missing(errno)
        {
            caps::refuse(Caps::MOVE, errno);
        }
        let inlet = opened?;
        // From now on only `take` fills the span, so a page that is there has been moved.
        // SAFETY: `# Safety` of this function: nothing in the span is needed.
        unsafe { map::flush(span)? };
        Ok(inlet)
    }

    /// Moves the pages of `from` to `to`, holes included.
    ///
    /// # Errors
    /// The errno, and how many bytes from the start have moved: all of those, and nothing behind them.
    ///
    /// # Safety
    /// `from` is mapped, private, anonymous and the caller's alone; `to` is within the inlet and empty.
    pub unsafe fn take(&self, from: Span, to: Addr) -> Result<(), (Errno, usize)> {
        let (len, mut done) = (from.bytes, 0);
        // The kernel moves out of one map entry at a time, and cannot be asked where it ends.
        let mut piece = len;
        while done < len {
            piece = piece.min(len - done);
            let mut request = Transfer {
                dst: (to + done).get() as u64,
                src: (from.start + done).get() as u64,
                len: piece as u64,
                mode: MOVE_MODE_ALLOW_SRC_HOLES,
                done: 0,
            };
            let result = uffd::move_pages(&self.file, &mut request);
            let counted = usize::try_from(request.done).unwrap_or(0);
            done += counted;
            let Err(errno) = result else { continue };
            // SAFETY: `# Safety` of this function: the destination is within the inlet.
            let uncounted = unsafe { self.arrived(Span::new(to + done, len - done)) };
            done += uncounted;
            match errno {
                Errno::AGAIN => {}
                // The page was moved before, though not counted.
                Errno::EXIST if uncounted > 0 => {}
                Errno::INVAL if piece > HUGE => piece = round_up(piece / 2, HUGE),
                errno if done < len => return Err((errno, done)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The bytes of `span` up to the first page that is not there.
    ///
    /// # Safety
    /// The span is within the inlet.
    unsafe fn arrived(&self, span: Span) -> usize {
        // A page of which that cannot be found out counts as not moved: the process is out of memory then,
        // which its next touch would have met.
        // SAFETY: within the inlet, which nobody touches, and whose empty pages nobody relies on.
        let is_there = |&page: &Addr| unsafe { uffd::is_there(&self.file, page) } == Ok(true);
        span.pages().take_while(is_there).count() * PAGE
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        // Closing the descriptor ends it, too, but joins the mapping with its neighbours later.
        let _ = uffd::unregister(&self.file, self.span);
    }
}

/// Moves the pages of `from` to `to`, leaving `from` mapped and empty. On an error all pages are moved back.
///
/// # Errors
/// The last errno, when no way works: the caller copies.
///
/// # Safety
/// Both are mapped, private, anonymous, the caller's alone, and apart; no page at `to` is resident.
pub unsafe fn transfer(from: Span, to: Addr, entries: Entries) -> Result<Way, Errno> {
    let mut last = Errno::NOSYS;
    let ways = match entries {
        Entries::None => [Some(Way::Move), None],
        Entries::Gladly => [Some(Way::Remap), Some(Way::Move)],
    };
    for way in ways.into_iter().flatten() {
        let done = match way {
            // SAFETY: `# Safety` of this function is that of `by_moving`.
            Way::Move => unsafe { by_moving(from, to) },
            // SAFETY: `# Safety` of this function: both spans are the caller's and do not overlap.
            Way::Remap => unsafe { map::remap(from, to) },
        };
        match done {
            Ok(()) => return Ok(way),
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

/// # Safety
/// As [`transfer`].
unsafe fn by_moving(from: Span, to: Addr) -> Result<(), Errno> {
    // SAFETY: `# Safety` of this function: nothing at `to` is needed, and nobody touches it meanwhile.
    let take = |from: Span, to: Addr| unsafe {
        Inlet::open(Span::new(to, from.bytes))
            .map_err(|errno| (errno, 0))
            .and_then(|inlet| inlet.take(from, to))
    };
    let taken = take(from, to);
    let Err((errno, moved)) = taken else { return Ok(()) };
    if moved > 0 {
        // Pages that a forked child still shares cannot be moved: the moved pages go back. The inlet flushes
        // `from` first: the kernel may have made a huge page of zeros there meanwhile, which `take` would
        // mistake for a moved one. Nothing before `moved` is needed there: its pages are at `to`.
        if let Err((_, back)) = take(Span::new(to, moved), from.start) {
            // SAFETY: both are the caller's; `from` is empty from `back` on, as those pages are at `to`.
            unsafe { copy_back(Span::new(to + back, moved - back), from.start + back) };
        }
    }
    Err(errno)
}

/// # Safety
/// Both ranges are mapped, writable, the caller's, and do not overlap.
unsafe fn copy_back(from: Span, to: Addr) {
    // SAFETY: `# Safety` of this function: two mapped spans that do not overlap.
    unsafe {
        core::ptr::copy_nonoverlapping(from.start.ptr::<u8>(), to.ptr(), from.bytes);
        let _ = map::flush(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::{self, Wrong};

    const PAGES: usize = 24;

    /// A number for every page; 0 for those never touched.
    fn stamp(page: usize) -> u64 {
        if page % 7 == 3 { 0 } else { 0x1000 + page as u64 }
    }

    fn word(span: Span, page: usize) -> *mut u64 {
        (span.start + page * PAGE + 8 * page).ptr()
    }

    fn contents(span: Span) -> Vec<u64> {
        // SAFETY: within the test's own range.
        (0..PAGES).map(|page| unsafe { word(span, page).read_volatile() }).collect()
    }

    /// No page is lost while the kernel migrates pages, for each kind of wrong answer.
    #[test]
    fn a_move_that_is_not_counted_is_a_move() {
        let expected: Vec<u64> = (0..PAGES).map(stamp).collect();
        let wrongs = [Wrong::No, Wrong::Uncounted, Wrong::Short];
        let errnos = [Errno::EXIST, Errno::AGAIN, Errno::BUSY, Errno::NOENT, Errno::NOMEM];
        for (wrong, errno, every) in wrongs
            .into_iter()
            .flat_map(|wrong| errnos.map(|errno| (wrong, errno)))
            .flat_map(|(wrong, errno)| [1, 2, 3].map(|every| (wrong, errno, every)))
        {
            if wrong == Wrong::Short && errno == Errno::AGAIN && every == 1 {
                // A last page that never moves and always says "again": no kernel ends that.
                continue;
            }
            let [from, to] = [(); 2].map(|()| map::reserve_writable(PAGES * PAGE).expect("memory"));
            map::advise_huge(from, false);
            for page in (0..PAGES).filter(|&page| stamp(page) != 0) {
                // SAFETY: within the range.
                unsafe { word(from, page).write_volatile(stamp(page)) };
            }
            // What a huge page may have brought is in the way.
            // SAFETY: within the range.
            unsafe { word(to, 5).write_volatile(0) };
            inject::moves(wrong, every, errno);
            // SAFETY: both ranges are the test's own.
            let moved = unsafe { by_moving(from, to.start) };
            let given = inject::given();
            inject::moves(Wrong::No, 1, Errno::EXIST);
            if matches!(moved, Err(Errno::PERM | Errno::NOSYS | Errno::INVAL)) {
                vellum_skip::skip(format_args!("this kernel or privilege moves no pages ({moved:?})"));
                return;
            }
            let case = format!("{wrong:?} {errno:?}, one in {every}: {moved:?}, {given} wrong answers");
            let (full, empty) = if moved.is_ok() { (to, from) } else { (from, to) };
            assert_eq!(contents(full), expected, "{case}");
            assert_eq!(contents(empty), vec![0; PAGES], "{case}");
            assert!(wrong != Wrong::No || moved == Ok(()), "{case}");
            for span in [from, to] {
                // SAFETY: nobody uses the range any more.
                unsafe { map::release(span) }.expect("a mapped range");
            }
        }
    }
}
