//! A job of the experiment `real`: a process that references its pages like a simulated program.
//!
//! ```text
//! words ─▶ make the program ─▶ "ready" ─▶ (moved into the cgroup) "go" ─▶ King: all pages once ─▶ "touched"
//!             └─▶ "go" ─▶ warm up ─▶ count ─▶ a line of figures ─▶ go on, uncounted, until killed
//! ```
//!
//! A reference to another page touches it; the processor is then kept busy for as long as the program stays
//! on that page. Virtual time is that work only. With windows, the job has its own references (as a program
//! on Vellum's pages would). At each sample point it chooses its window and returns the pages outside of it
//! (MADV_PAGEOUT) if the group is near its limit. The job's own time pays for all of this. The time of
//! drawing the references belongs to the experiment; it is measured and subtracted.

use crate::model::sim::{Behaviour, Program, benchmark_programs, king_size_program};
use crate::model::{Slrum, SlrumRuns};
use crate::params::{Params, WorkError};
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::fs::FileExt;
use std::time::Instant;
use vellum_measure::Rng;
use vellum_workset::{Control, Criterion, Demand, Quanta, Ticks};

pub(super) const NAME: &str = "nishigaki-job";
const PAGE_BYTES: usize = 4096;
/// Bytes of a page that do not compress, so that the device has work.
const NOISE_BYTES: usize = 1024;
/// The largest share of references to another page: hotter pages are always resident, and would only cost
/// drawing.
const LEAVE_MAX: f64 = 2e-4;
/// Longest time of drawing a reference, in counts of the processor's clock: some ten microseconds.
const DRAWING_MAX: u64 = 30_000;
/// The group's use, as a fraction of its limit, at which pages are first returned: those idle for this many
/// of their job's windows …
const NEAR: f64 = 0.97;
const WINDOWS_FIRST: f64 = 4.0;
/// … and at which all pages outside a window are returned. Jobs cannot see each other's pages. This order
/// returns the pages first that are oldest relative to their own job's window.
const FULL: f64 = 0.995;
/// Below this fraction of the limit the group's use is read only once in this many sample points.
const FAR: f64 = 0.9;
const EASE: u32 = 15;
/// Pages that are checked at a sample point for idle ones.
const LOOKED_AT: usize = 1024;
const CALIBRATION: u64 = 20_000_000;

/// Runs the job given by the words and returns the line of figures.
///
/// # Errors
/// [`WorkError`] for invalid words, or without memory.
pub(super) fn job(words: &[String]) -> Result<String, WorkError> {
    let params = Params::parse(words)?;
    if params.word("program") == "calibration" {
        return calibrate(&params);
    }
    let mut job = Job::new(&params)?;
    // The parent moves this process into the cgroup before it answers.
    answered("ready");
    if params.word("program") == "king" {
        // Its pages are made beforehand. Otherwise a whole lap would make new pages without a page-in.
        (0..job.memory.pages.len()).for_each(|page| job.memory.touch(page));
    }
    answered("touched");
    job.run_to(params.number("warm_ticks")? as u64)?;
    job.drawing = 0;
    let before = (job.executed, usage());
    let (began, counter) = (Instant::now(), counter_now());
    job.run_to(job.executed + params.number("count_ticks")? as u64)?;
    let (wall, counted, after) = (began.elapsed(), counter_now() - counter, usage());
    let figures = json!({
        "ticks": job.executed - before.0, "wall_ns": wall.as_nanos() as u64,
        "drawing_ns": job.drawing as f64 * wall.as_nanos() as f64 / counted.max(1) as f64,
        "user_ns": after.user_ns - before.1.user_ns, "system_ns": after.system_ns - before.1.system_ns,
        "major_faults": after.major - before.1.major, "given_back_pages": job.given_back,
        "windows_mean": job.windows as f64 / job.samples.max(1) as f64,
    });
    println!("{figures}");
    let _ = std::io::stdout().flush();
    // It keeps its memory until it is killed, so that the other jobs do not get it while they are counted.
    job.run_to(u64::MAX)?;
    Ok(String::new())
}

/// Prints a word and waits for the answer. Ends this process if the parent is gone.
fn answered(word: &str) {
    println!("{word}");
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

/// Measures the time of a round of spinning, and of a fault when every page comes from the device.
fn calibrate(params: &Params) -> Result<String, WorkError> {
    let began = cpu_ns();
    spin(CALIBRATION);
    let round_ns = (cpu_ns() - began) as f64 / CALIBRATION as f64;
    let pages = params.number("pages")?;
    let mut memory = Memory::new(pages)?;
    answered("ready");
    answered("touched");
    (0..pages).for_each(|page| memory.touch(page));
    let (began, faults) = (cpu_ns(), usage().major);
    (0..pages).for_each(|page| memory.touch(page));
    let (took, faults) = (cpu_ns() - began, usage().major - faults);
    Ok(json!({ "round_ns": round_ns, "delay_ns": took as f64 / faults.max(1) as f64, "faults": faults })
        .to_string())
}

struct Job {
    programs: VecDeque<Program>,
    phase: usize,
    phases: u64,
    phase_left: u64,
    stretches: Stretches,
    memory: Memory,
    seed: u64,
    scale: u64,
    rounds_per_tick: f64,
    delta: u64,
    executed: u64,
    sample_at: u64,
    windows: u64,
    samples: u64,
    given_back: u64,
    /// Counts of the processor's clock spent on drawing references.
    drawing: u64,
    chooser: Option<Chooser>,
}

/// The choice of this job's window, and its inputs.
struct Chooser {
    criterion: Criterion,
    delay: f64,
    control: Control,
    ages: Ages,
    usage: File,
    /// The group's limit in bytes.
    limit: f64,
    /// Sample points at which the group's use is not read, since it was far below the limit.
    ease: u32,
}

enum Stretches {
    Stack(SlrumRuns),
    Walk { pages: u64, stay: u64, next: u64 },
}

impl Job {
    fn new(params: &Params) -> Result<Self, WorkError> {
        let (scale, delta) = (params.number("scale")? as u64, params.number("delta")? as u64);
        let programs = match params.word("program") {
            "king" => VecDeque::from([king_size_program(
                params.number("king_pages")? as u64,
                params.number("stay")? as u64,
            )]),
            _ => {
                let mut programs = VecDeque::from(benchmark_programs());
                programs.rotate_left(params.number("program")? % 4);
                programs
            }
        };
        let criterion = match params.word("windows") {
            "pe" => Some(Criterion::ProcessorEfficiency),
            "lt" => Some(Criterion::Lifetime),
            _ => None,
        };
        let chooser = criterion.map(|criterion| Chooser::new(params, criterion, delta)).transpose()?;
        let mut job = Self {
            programs,
            phase: 0,
            phases: 0,
            phase_left: 0,
            stretches: Stretches::Walk { pages: 1, stay: 1, next: 0 },
            memory: Memory::new(1)?,
            seed: params.number("seed")? as u64,
            scale,
            rounds_per_tick: params.number("rounds_per_mega_tick")? as f64 / 1e6,
            delta,
            executed: 0,
            sample_at: delta,
            windows: 0,
            samples: 0,
            given_back: 0,
            drawing: 0,
            chooser,
        };
        job.begin_phase()?;
        Ok(job)
    }

    fn run_to(&mut self, tick: u64) -> Result<(), WorkError> {
        while self.executed < tick {
            self.stretch()?;
        }
        Ok(())
    }

    /// References a page, and works on it.
    fn stretch(&mut self) -> Result<(), WorkError> {
        let drawn = counter_now();
        let (page, length) = self.stretches.next();
        let took = counter_now() - drawn;
        // A longer drawing was interrupted, and is not counted.
        self.drawing += if took < DRAWING_MAX { took } else { 0 };
        let length = length.min(self.phase_left);
        self.memory.touch(page as usize);
        if let Some(chooser) = &mut self.chooser {
            let told = self.memory.tell(page as usize, self.samples as u32);
            if told != self.samples as u32 {
                chooser.ages.reference(told, self.samples as u32);
            }
        }
        spin((length as f64 * self.rounds_per_tick) as u64);
        self.executed += length;
        self.phase_left -= length;
        if self.executed >= self.sample_at {
            self.sample_at = self.executed + self.delta;
            self.sample();
        }
        if self.phase_left == 0 {
            self.next_phase()?;
        }
        Ok(())
    }

    fn sample(&mut self) {
        let interval = self.samples as u32;
        self.samples += 1;
        let Some(chooser) = &mut self.chooser else { return };
        let window = chooser.control.observe(&chooser.ages.end_interval(interval));
        self.windows += u64::from(window.0);
        if let Some(windows) = chooser.windows_kept() {
            let kept = (f64::from(window.0) * windows).ceil() as u32;
            self.given_back += self.memory.give_back_idle(self.samples as u32, kept);
        }
    }

    fn next_phase(&mut self) -> Result<(), WorkError> {
        self.phase += 1;
        if self.phase == self.programs[0].phases.len() {
            self.phase = 0;
            self.programs.rotate_left(1);
        }
        // Pages of an ended phase are never referenced again. They are unmapped, and their records are reset.
        if let Some(chooser) = &mut self.chooser {
            chooser.begin_anew(self.delta, self.phase == 0);
        }
        self.begin_phase()
    }

    fn begin_phase(&mut self) -> Result<(), WorkError> {
        let phase = &self.programs[0].phases[self.phase];
        self.phases += 1;
        self.phase_left = phase.length.saturating_mul(self.scale);
        let (stretches, pages) = match &phase.behaviour {
            Behaviour::Walk { pages, stay } => {
                let pages = pages * self.scale;
                (Stretches::Walk { pages, stay: *stay, next: 0 }, pages)
            }
            Behaviour::Stack(program) => {
                let larger = enlarged(program, self.scale as usize);
                let pages = larger.pages() as u64;
                (Stretches::Stack(larger.runs(self.seed.wrapping_add(self.phases))), pages)
            }
        };
        self.stretches = stretches;
        self.memory = Memory::new(pages as usize)?;
        Ok(())
    }
}

impl Stretches {
    fn next(&mut self) -> (u64, u64) {
        match self {
            Self::Stack(runs) => runs.next().map_or((0, u64::MAX), |run| (run.page.0, run.length)),
            Self::Walk { pages, stay, next } => {
                let page = *next;
                *next = (page + 1) % *pages;
                (page, *stay)
            }
        }
    }
}

/// The same program with `scale` pages for each: depth d is exceeded as often as depth d / `scale` was.
fn enlarged(program: &Slrum, scale: usize) -> Slrum {
    let tails = program.tails();
    let large = (1..program.pages() * scale).map(|depth| {
        let (at, within) = (depth / scale, (depth % scale) as f64 / scale as f64);
        let (left, right) = (tail(tails, at), tail(tails, at + 1));
        (left.ln() + (right.ln() - left.ln()) * within).exp().min(LEAVE_MAX)
    });
    Slrum::from_tails(&large.collect::<Vec<_>>()).expect("tails that fall still fall between")
}

/// The tail at a depth, bounded so that it has a logarithm.
fn tail(tails: &[f64], depth: usize) -> f64 {
    tails.get(depth.saturating_sub(1)).or(tails.last()).copied().unwrap_or(LEAVE_MAX).max(1e-12)
}

impl Chooser {
    fn new(params: &Params, criterion: Criterion, delta: u64) -> Result<Self, WorkError> {
        let usage = File::open(params.word("usage")).map_err(|_| params.refused("usage"))?;
        let (delay, limit) = (params.number("delay")? as f64, params.number("limit")? as f64);
        let (control, ages) = (control(criterion, delay, delta), Ages::default());
        Ok(Self { criterion, delay, control, ages, usage, limit, ease: 0 })
    }

    /// The number of windows for which pages are kept at the group's present use; `None` while no pages need
    /// be returned.
    fn windows_kept(&mut self) -> Option<f64> {
        if self.ease > 0 {
            self.ease -= 1;
            return None;
        }
        let mut text = [0; 32];
        let read = self.usage.read_at(&mut text, 0).unwrap_or(0);
        let held = std::str::from_utf8(&text[..read]).ok().and_then(|text| text.trim().parse::<f64>().ok());
        let part = held.map_or(1.0, |held| held / self.limit);
        if part < FAR {
            self.ease = EASE;
        }
        let need = ((part - NEAR) / (FULL - NEAR)).min(1.0);
        (need >= 0.0).then_some(WINDOWS_FIRST + (1.0 - WINDOWS_FIRST) * need)
    }

    fn begin_anew(&mut self, delta: u64, program: bool) {
        self.ages = Ages::default();
        if program {
            self.control = control(self.criterion, self.delay, delta);
        }
    }
}

/// Windows in intervals: as long as in the simulator, whose intervals are half as long.
const WINDOW_START: Quanta = Quanta(5);
const WINDOW_MAX: Quanta = Quanta(20);
/// Number of ages that are distinguished.
const HORIZON: usize = WINDOW_MAX.0 as usize + 2;
/// A page that was never reported.
const NEVER: u32 = u32::MAX >> FLAGS;

fn control(criterion: Criterion, delay: f64, delta: u64) -> Control {
    Control::new(Ticks(delta), Demand::uncapped(criterion, delay), WINDOW_START, WINDOW_MAX)
}

/// The number of pages last referenced in each of the latest intervals, like `vellum_workset::Counters`.
/// Pages are numbered from 0 here, so that each needs only a place in a list ([`Memory::tell`]).
#[derive(Default)]
struct Ages {
    /// By interval, modulo the number of intervals.
    pages: [u64; HORIZON],
}

impl Ages {
    /// Moves a page from interval `told`, in which it was last reported, to this interval, which is a later
    /// one.
    #[inline]
    fn reference(&mut self, told: u32, interval: u32) {
        if told != NEVER && interval - told < HORIZON as u32 {
            self.pages[told as usize % HORIZON] -= 1;
        }
        self.pages[interval as usize % HORIZON] += 1;
    }

    /// At the end of this interval: returns the working sets of 1, 2, … intervals, and drops those past the
    /// horizon.
    fn end_interval(&mut self, interval: u32) -> [u64; HORIZON] {
        let mut sum = 0;
        let sets = std::array::from_fn(|age| {
            // There are no pages before the first interval.
            let at = interval.checked_sub(age as u32).map_or(0, |then| self.pages[then as usize % HORIZON]);
            sum += at;
            sum
        });
        self.pages[(interval as usize + 1) % HORIZON] = 0;
        sets
    }
}

/// Bits of a page's word below the interval.
const FLAGS: u32 = 2;
/// The page has contents.
const TOUCHED: u32 = 1;
/// The page was touched since it was last returned.
const RESIDENT: u32 = 2;

struct Memory {
    mapping: crate::area::Mapping,
    /// For each page, the interval in which it was last reported, above its flags. It is one word, so that an
    /// update costs about as much as a touch.
    pages: Vec<u32>,
    /// The next page to check for idleness.
    hand: usize,
    noise: Rng,
}

impl Memory {
    fn new(pages: usize) -> Result<Self, WorkError> {
        let mapping = crate::area::Mapping::of_base_pages(pages * PAGE_BYTES)?;
        Ok(Self { mapping, pages: vec![NEVER << FLAGS; pages], hand: 0, noise: Rng::new(1) })
    }

    #[inline]
    fn touch(&mut self, page: usize) {
        let start = self.mapping.start().wrapping_add(page * PAGE_BYTES);
        if self.pages[page] & TOUCHED != 0 {
            // SAFETY: the first byte of a page in the mapping, which has as many pages as `pages` has
            // entries.
            unsafe { start.write_volatile(1) };
        } else {
            for at in (0..NOISE_BYTES).step_by(8) {
                // SAFETY: within a page of the mapping, which has as many pages as `pages` has entries; pages
                // are aligned to eight bytes.
                unsafe { start.add(at).cast::<u64>().write_volatile(self.noise.next_u64()) };
            }
        }
        self.pages[page] |= TOUCHED | RESIDENT;
    }

    /// Records a reference in this interval; returns the interval of the last one, or [`NEVER`].
    #[inline]
    fn tell(&mut self, page: usize, interval: u32) -> u32 {
        let flags = self.pages[page] & ((1 << FLAGS) - 1);
        std::mem::replace(&mut self.pages[page], interval << FLAGS | flags) >> FLAGS
    }

    /// Checks the next [`LOOKED_AT`] pages and returns those to the kernel that were not reported in the last
    /// `kept` intervals up to `now`.
    fn give_back_idle(&mut self, now: u32, kept: u32) -> u64 {
        let (told, count) = (|page: usize| self.pages[page] >> FLAGS, self.pages.len());
        let idle = |page: &usize| told(*page) == NEVER || told(*page) + kept < now;
        let next = (self.hand..self.hand + LOOKED_AT.min(count)).map(|page| page % count);
        let pages: Vec<usize> = next.filter(idle).collect();
        self.hand = (self.hand + LOOKED_AT) % count;
        self.give_back(pages.into_iter())
    }

    /// Returns pages to the kernel, neighbours in one call, each once until it is touched again. Returns
    /// their number.
    fn give_back(&mut self, pages: impl Iterator<Item = usize>) -> u64 {
        let states = &mut self.pages;
        let mut left = |page: usize| {
            let was = states[page];
            states[page] = was & !RESIDENT;
            was & RESIDENT != 0
        };
        let mut pages: Vec<usize> = pages.filter(|page| left(*page)).collect();
        pages.sort_unstable();
        for run in pages.chunk_by(|left, right| left + 1 == *right) {
            let start = self.mapping.start().wrapping_add(run[0] * PAGE_BYTES);
            // SAFETY: the range lies in the mapping; the advice keeps the pages' contents.
            unsafe { libc::madvise(start.cast(), run.len() * PAGE_BYTES, libc::MADV_PAGEOUT) };
        }
        pages.len() as u64
    }
}

/// Work that the compiler does not remove.
#[inline(never)]
fn spin(rounds: u64) {
    let mut value = 1u64;
    for _ in 0..rounds {
        value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005));
    }
}

#[inline(always)]
fn counter_now() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

struct Usage {
    user_ns: u64,
    system_ns: u64,
    major: u64,
}

fn usage() -> Usage {
    // SAFETY: zero bytes are a value of this plain record, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime), major: usage.ru_majflt as u64 }
}

fn cpu_ns() -> u64 {
    crate::clock::cpu().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enlarged_program_exceeds_scaled_depths_as_often() {
        let tails: Vec<f64> = (1..10).map(|h| 1e-4 * 0.5f64.powi(h)).collect();
        let (small, large) =
            (Slrum::from_tails(&tails).unwrap(), enlarged(&Slrum::from_tails(&tails).unwrap(), 32));
        assert_eq!(large.pages(), small.pages() * 32);
        for depth in 1..9 {
            let (was, is) = (small.tail(depth), large.tail(depth * 32));
            assert!((is / was - 1.0).abs() < 1e-9, "beyond {depth}: {was} became {is}");
        }
    }

    #[test]
    fn returned_pages_keep_their_contents_and_are_returned_once() {
        let mut memory = Memory::new(8).unwrap();
        (0..8).for_each(|page| memory.touch(page));
        let at = |memory: &Memory, page: usize| {
            // SAFETY: the second byte of a page of the mapping, which is live.
            unsafe { memory.mapping.start().add(page * PAGE_BYTES + 1).read_volatile() }
        };
        let before: Vec<u8> = (0..8).map(|page| at(&memory, page)).collect();
        assert_eq!(memory.give_back([5, 1, 2, 2].into_iter()), 3);
        assert_eq!(memory.give_back([1, 2].into_iter()), 0);
        memory.touch(2);
        assert_eq!(memory.give_back([1, 2].into_iter()), 1);
        assert_eq!((0..8).map(|page| at(&memory, page)).collect::<Vec<u8>>(), before);
    }

    #[test]
    fn only_pages_without_recent_references_are_returned() {
        let mut memory = Memory::new(3 * LOOKED_AT).unwrap();
        (0..3 * LOOKED_AT).for_each(|page| memory.touch(page));
        (0..100).for_each(|page| assert_eq!(memory.tell(page, 20), NEVER));
        assert_eq!((memory.tell(7, 20), memory.tell(LOOKED_AT, 9)), (20, NEVER));
        // Page LOOKED_AT was reported eleven intervals ago, the first hundred in this one, the rest never.
        let given: Vec<u64> = (0..4).map(|_| memory.give_back_idle(20, 11)).collect();
        assert_eq!(given, [LOOKED_AT as u64 - 100, LOOKED_AT as u64 - 1, LOOKED_AT as u64, 0]);
        memory.give_back_idle(20, 10);
        let is_resident = |page: usize| memory.pages[page] & RESIDENT != 0;
        assert!(!is_resident(LOOKED_AT) && is_resident(50));
    }

    #[test]
    fn ages_match_the_counters() {
        use vellum_workset::{Counters, Page};
        const PAGES: u64 = 300;
        let mut counters = Counters::new(Quanta(HORIZON as u32));
        let (mut ages, mut memory, mut drawn) = (Ages::default(), Memory::new(PAGES as usize).unwrap(), 1u64);
        for interval in 0..500 {
            let mut referenced = Vec::new();
            // Many pages in every other interval, so that some become old.
            for _ in 0..(interval % 2) * 20 + 1 {
                drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let page = (drawn >> 33) % PAGES;
                referenced.push(Page(page));
                let told = memory.tell(page as usize, interval);
                if told != interval {
                    ages.reference(told, interval);
                }
            }
            counters.sample(Quanta(1), referenced);
            assert_eq!(ages.end_interval(interval)[..], counters.working_sets()[..], "interval {interval}");
        }
    }

    #[test]
    fn fewer_windows_are_kept_nearer_to_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let usage = place.path().join("usage");
        let words = [format!("usage={}", usage.display()), "limit=1000".into(), "delay=80000".into()];
        std::fs::write(&usage, "0").unwrap();
        let mut chooser = Chooser::new(&Params::parse(&words).unwrap(), Criterion::Lifetime, 100).unwrap();
        let mut kept = |held: &str| {
            std::fs::write(&usage, held).unwrap();
            chooser.ease = 0;
            chooser.windows_kept()
        };
        assert_eq!([kept("500\n"), kept("970\n"), kept("1000\n")], [None, Some(WINDOWS_FIRST), Some(1.0)]);
        assert!(kept("985").is_some_and(|windows| windows > 1.5 && windows < 3.0));
        assert_eq!(kept("what"), Some(1.0), "what cannot be read is taken for full");
    }

    #[test]
    fn invalid_words_are_refused() {
        for words in [&[][..], &["program=0"], &["program=0", "scale=x", "delta=1"], &["alone"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(job(&words).is_err(), "{words:?}");
        }
    }
}
