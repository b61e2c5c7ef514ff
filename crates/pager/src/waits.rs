//! What paging costs a program, and what more frames would have saved: how long its threads waited for pages,
//! and with how many frames pages would not have been read.
//!
//! A page that loses its frame is stamped with how many have lost theirs before. When it is read back, the
//! difference says how many frames more would have kept it, if those that went between went in the order of
//! their last use (the *refault distance*; the kernel has it as `workingset_refault`). Clock is not quite
//! that order, and a page that is brought ahead of its use counts as one that is used: the answer is an
//! estimate.
//!
//! Numbers of frames are kept in classes, four to each doubling.

use crate::units::FRAMES_MAX;

/// Classes to each doubling, as a power of two.
const STEPS: u32 = 2;
const CLASSES: usize = ((FRAMES_MAX.ilog2() + 2) << STEPS) as usize;
/// Of this number of reads, all but one would have been avoided.
const PARTS: u64 = 10;

#[derive(Debug)]
pub(crate) struct Waits {
    /// The ends of waits that are over, less the starts of all, in numbers that wrap.
    sum: u64,
    /// Threads that wait.
    open: u64,
    /// Pages that have lost their frames, in numbers that wrap.
    lost: u32,
    /// Reads that would have been avoided by the frames of each class.
    reads: [u32; CLASSES],
    all_reads: u64,
}

fn class_of(frames: u32) -> usize {
    let log2 = frames.max(1 << STEPS).ilog2();
    let within = (frames >> (log2 - STEPS)) & ((1 << STEPS) - 1);
    ((log2 << STEPS | within) as usize).min(CLASSES - 1)
}

/// The most frames of a class.
fn most_of(class: usize) -> u64 {
    let (log2, within) = (class as u32 >> STEPS, class as u64 & ((1 << STEPS) - 1));
    (((1 << STEPS) + within + 1) << (log2 - STEPS)) - 1
}

impl Waits {
    pub(crate) const fn none() -> Waits {
        Waits { sum: 0, open: 0, lost: 0, reads: [0; CLASSES], all_reads: 0 }
    }

    /// A thread began to wait at `now`.
    pub(crate) fn begin(&mut self, now: u64) {
        self.open += 1;
        self.sum = self.sum.wrapping_sub(now);
    }

    /// One that waited goes on.
    pub(crate) fn end(&mut self, now: u64) {
        if self.open > 0 {
            self.open -= 1;
            self.sum = self.sum.wrapping_add(now);
        }
    }

    /// Nanoseconds that threads have waited until `now`, all together.
    pub(crate) fn waited(&self, now: u64) -> u64 {
        self.sum.wrapping_add(self.open.wrapping_mul(now))
    }

    /// A page loses its frame; the stamp for it.
    pub(crate) fn lose(&mut self) -> u32 {
        self.lost = self.lost.wrapping_add(1);
        self.lost
    }

    /// A page with this stamp is read, where there are `frames` frames.
    pub(crate) fn read(&mut self, stamp: u32, frames: u32) {
        let needed = frames.saturating_add(self.lost.wrapping_sub(stamp)).saturating_add(1);
        let reads = &mut self.reads[class_of(needed)];
        *reads = reads.saturating_add(1);
        self.all_reads += 1;
    }

    /// With how many frames nine of ten reads would have been avoided; at most `all`, with which all would
    /// have. 0 if nothing was read.
    pub(crate) fn enough(&self, all: u32) -> u64 {
        let wanted = self.all_reads - self.all_reads / PARTS;
        let mut avoided = 0;
        for (class, &reads) in self.reads.iter().enumerate() {
            avoided += u64::from(reads);
            if self.all_reads > 0 && avoided >= wanted {
                return most_of(class).min(u64::from(all));
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_say() {
        for frames in (4..5000).chain([FRAMES_MAX, u32::MAX]) {
            let class = class_of(frames);
            assert!(class == CLASSES - 1 || u64::from(frames) <= most_of(class), "{frames}");
            assert!(
                class == 0 || class == 8 || u64::from(frames) > most_of(class - 1) || class == CLASSES - 1
            );
        }
    }

    #[test]
    fn a_loop_over_more_than_the_frames_wants_them_all() {
        // A hundred frames, and a loop over a thousand pages: each is lost before its turn comes again.
        let mut waits = Waits::none();
        let mut stamps = [0; 1000];
        for round in 0..5 {
            for page in 0..1000 {
                if round > 0 {
                    waits.read(stamps[page], 100);
                }
                let old = (page + 900) % 1000;
                stamps[old] = waits.lose();
            }
        }
        let enough = waits.enough(5000);
        assert!((1000..1250).contains(&enough), "{enough}");
        assert_eq!(waits.enough(1010), 1010);
        assert_eq!(Waits::none().enough(100), 0);
    }

    #[test]
    fn waits_add_up() {
        let mut waits = Waits::none();
        waits.begin(10);
        waits.begin(15);
        assert_eq!(waits.waited(20), 15);
        waits.end(20);
        waits.end(30);
        assert_eq!((waits.waited(50), waits.open), (25, 0));
        waits.end(60);
        assert_eq!(waits.waited(70), 25, "what has not begun does not end");
    }
}
