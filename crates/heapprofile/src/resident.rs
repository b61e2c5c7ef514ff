//! The count of the process's resident pages, by use.
//!
//! ```text
//! /proc/self/smaps ─▶ resident bytes of each mapping ─▶ outside the allocator: code, stacks, files, …
//!                                                    └▶ the allocator's span: resident, marked
//! mincore, slab by slab ─▶ resident bytes of slabs − bytes of blocks in use there = holes, by size class
//! the page layer's count ─▶ cached;  the rest of the span: blocks in use
//! ```
//!
//! The sum of all uses is therefore the kernel's figure. The kernel may take *marked* pages at any time
//! (`MADV_FREE`). Threads run during the count: a change in that time may or may not be counted.
//!
//! # Stacks that pin holes
//! Neither a slab nor a page can be returned while a block in it is in use. Only sampled blocks have known
//! stacks, but they lie in slabs of their own (the sample heap). The record of a sample therefore has the
//! slab that would have served the request unsampled. The blocks in that slab are the sample's *neighbours*:
//! the fewer are left, the more free memory each pins. A sample's weight is the number of blocks that it
//! stands for, times the holes of that slab for each block in use there. A class's holes are divided among
//! its samples in proportion to these weights. A block whose slab is gone or unknown has the average weight
//! of its class.

use super::live::Sample;
use core::sync::atomic::Ordering::{Relaxed, Release};
use vellum_malloc::sampling::{CLASSES, SlabUse, bytes_of, for_each_listed, for_each_slab, idle_bytes};
use vellum_pages::{PAGE, Pages, UNIT};
use vellum_sys::mapped::{self, Mapping, What};
use vellum_sys::{Addr, Span, map};
use vellum_wire::Counter;
use vellum_wire::held::{CLASSES_MAX, KINDS, Kind, Resident};

/// Pages whose residence the kernel reports at a time.
const WINDOW_PAGES: usize = 4096;
/// Bytes of the kernel's text that are read at a time: more than a path.
const TEXT_BYTES: usize = 16 << 10;
/// The longest path of a program that is compared.
const PATH_MAX: usize = 4096;
/// The longest guard in front of a thread's stack; a longer one is a reservation.
const GUARD_MAX: usize = 64 << 10;

const _: () = assert!(CLASSES <= CLASSES_MAX);

#[derive(Clone, Copy, Debug)]
struct Class {
    live: u64,
    holes: u64,
    weight: f64,
}

/// The buffers and sums of a count. All zero is a valid value.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Desk {
    /// The pages whose residence `window` has.
    read: Span,
    window: [u8; WINDOW_PAGES],
    text: [u8; TEXT_BYTES],
    program: [u8; PATH_MAX],
    classes: [Class; CLASSES],
}

impl Desk {
    /// Counts, and writes the result to `resident`. `own` are ranges of the profile's tables, and `part` is
    /// where its file is mapped.
    pub(super) fn count(&mut self, resident: &Resident, own: [Span; 3], part: usize) {
        let in_slabs = self.count_slabs();
        let mut kinds = [0u64; KINDS];
        let (span, marked) = self.count_mappings(&mut kinds, part);
        for range in own {
            let bytes = (self.pages(range) * PAGE as u64).min(kinds[Kind::Other as usize]);
            kinds[Kind::Other as usize] -= bytes;
            kinds[Kind::Tables as usize] += bytes;
        }
        let holes: u64 = self.classes.iter().map(|class| class.holes).sum();
        let beside = span.saturating_sub(in_slabs);
        let marked = marked.min(beside);
        let cached = Pages::global().slot().get(Counter::NowCached) + idle_bytes() as u64;
        let cached = cached.min(beside - marked);
        let holes = holes.min(span - marked - cached);
        kinds[Kind::Live as usize] += span - marked - cached - holes;
        kinds[Kind::Holes as usize] = holes;
        kinds[Kind::Cached as usize] = cached;
        kinds[Kind::Marked as usize] = marked;
        for (to, kind) in resident.kinds.iter().zip(kinds) {
            to.store(kind, Relaxed);
        }
        for (index, (to, class)) in resident.classes.iter().zip(&self.classes).enumerate() {
            to.block.store(bytes_of(index) as u64, Relaxed);
            to.live.store(class.live, Relaxed);
            to.holes.store(class.holes, Relaxed);
        }
        resident.counted.fetch_add(1, Release);
    }

    /// Counts what slabs have, by class. Their resident bytes.
    fn count_slabs(&mut self) -> u64 {
        self.classes.fill(Class { live: 0, holes: 0, weight: 0.0 });
        self.read = Span::EMPTY;
        let mut all = 0;
        for_each_slab(|slab| {
            let (used, holes) = self.of_slab(slab);
            let class = &mut self.classes[slab.class];
            class.live += used;
            class.holes += holes;
            all += used + holes;
        });
        for_each_listed(|class, blocks| {
            let bytes = ((blocks * bytes_of(class)) as u64).min(self.classes[class].live);
            self.classes[class].live -= bytes;
            self.classes[class].holes += bytes;
        });
        all
    }

    /// Resident bytes of a slab: of its blocks in use, and of all else.
    fn of_slab(&mut self, slab: SlabUse) -> (u64, u64) {
        let resident = self.pages(Span::new(Addr::new(slab.unit), UNIT)) * PAGE as u64;
        let used = (slab.bytes as u64).min(resident);
        (used, resident - used)
    }

    fn pages(&mut self, range: Span) -> u64 {
        let (mut at, end) = (range.start, range.end());
        let mut count = 0;
        while at < end {
            if !self.read.contains(at) {
                // The next call likely is for the pages behind. If these are not mapped, read the range
                // alone.
                let most = [WINDOW_PAGES, (end - at).div_ceil(PAGE).min(WINDOW_PAGES)];
                let read =
                    most.into_iter().find(|&pages| map::mincore(at, &mut self.window[..pages]).is_ok());
                let Some(pages) = read else { return count };
                self.read = Span::new(at, pages * PAGE);
            }
            let stop = end.min(self.read.end());
            let (first, last) = ((at - self.read.start) / PAGE, (stop - self.read.start).div_ceil(PAGE));
            count += self.window[first..last].iter().filter(|&&page| page & 1 != 0).count() as u64;
            at = stop;
        }
        count
    }

    /// Counts mappings by kind, without the allocator's span. Returns the span's resident bytes, and its
    /// marked bytes.
    fn count_mappings(&mut self, kinds: &mut [u64; KINDS], part: usize) -> (u64, u64) {
        let pages = Pages::global();
        let (reserved, placed) = (pages.reserved(), pages.placed());
        let into = self.program.as_mut_ptr().cast();
        // SAFETY: the buffer is as long as said.
        let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), into, PATH_MAX) };
        let program = &self.program[..usize::try_from(length).unwrap_or(0)];
        let (mut span, mut marked) = (0, 0);
        let mut before = Mapping::default();
        // A file that cannot be read has no mappings: then all is what the allocator knows.
        let _ = mapped::for_each(&mut self.text, program, |mapping| {
            let start = mapping.span.start;
            if placed.contains(start) {
                span += mapping.resident;
                marked += mapping.marked;
            } else if reserved.contains(start) || (part != 0 && start.get() == part) {
                kinds[Kind::Tables as usize] += mapping.resident;
            } else {
                kinds[kind_of(mapping, &before) as usize] += mapping.resident;
            }
            before = *mapping;
        });
        (span, marked)
    }

    /// The weight of a sampled block in use: see the head of this file.
    fn weight(&mut self, sample: &Sample) -> f64 {
        let index = sample.class as usize % CLASSES;
        let class = self.classes[index];
        let blocks = (class.live / bytes_of(index) as u64).max(1);
        let average = class.holes as f64 / blocks as f64;
        let slab = SlabUse::of_unit(sample.neighbours).filter(|slab| slab.class == index);
        let each = slab.map_or(average, |slab| self.of_slab(slab).1 as f64 / (slab.blocks + 1) as f64);
        sample.blocks as f64 * each
    }

    /// Adds the weights of samples in use up, by class.
    pub(super) fn weigh<'a>(&mut self, samples: impl Iterator<Item = &'a Sample>) {
        for sample in samples.filter(|sample| sample.class != 0) {
            let weight = self.weight(sample);
            self.classes[sample.class as usize % CLASSES].weight += weight;
        }
    }

    /// The bytes of its class's holes that a sample pins, after [`Desk::weigh`].
    pub(super) fn share(&mut self, sample: &Sample) -> u64 {
        let class = self.classes[sample.class as usize % CLASSES];
        if sample.class == 0 || class.weight <= 0.0 {
            return 0;
        }
        (class.holes as f64 * self.weight(sample) / class.weight) as u64
    }
}

/// The kind of a mapping outside the allocator; `before` is the mapping before it.
fn kind_of(mapping: &Mapping, before: &Mapping) -> Kind {
    let is_next = before.span.end() == mapping.span.start;
    match mapping.what {
        What::Stack => Kind::Stacks,
        What::Code | What::Kernels => Kind::Code,
        What::Shared => Kind::Shared,
        What::File => Kind::Files,
        What::Guard => Kind::Other,
        What::Anonymous => match before.what {
            What::Guard if is_next && before.span.bytes <= GUARD_MAX => Kind::Stacks,
            // Static data that is zero at first.
            What::Code if is_next => Kind::Code,
            _ => Kind::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_sys::Span;

    #[test]
    fn mappings_are_known_by_what_is_before_them() {
        let span = |start, end| Span::between(Addr::new(start), Addr::new(end));
        let mapping = |start, end, what| Mapping { span: span(start, end), what, ..Mapping::default() };
        let anonymous = mapping(0x10000, 0x20000, What::Anonymous);
        let kind = |before| kind_of(&anonymous, &before);
        assert_eq!(kind(mapping(0xf000, 0x10000, What::Guard)), Kind::Stacks);
        assert_eq!(kind(mapping(0xe000, 0xf000, What::Guard)), Kind::Other);
        assert_eq!(kind(mapping(0xf000, 0x10000, What::Code)), Kind::Code);
        assert_eq!(kind(mapping(0xf000, 0x10000, What::File)), Kind::Other);
        assert_eq!(kind_of(&mapping(0, 1, What::Stack), &anonymous), Kind::Stacks);
    }
}
