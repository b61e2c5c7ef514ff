//! A job of the experiment `real`: a process that references its pages like a simulated program.
//!
//! ```text
//! arguments ─▶ make the program ─▶ enter the cgroup ─▶ King Size Program: touch all pages ─▶ print "ready"
//!              └─▶ read "go" ─▶ warm up ─▶ count ─▶ print the figures ─▶ go on, uncounted, until killed
//! ```
//!
//! When the program goes to another page, the job touches it, and then keeps the processor busy for as
//! long as the program stays there. Only this work is virtual time. In runs with windows, the job itself
//! records its references. At each sample point it chooses its window, and returns pages outside it
//! (MADV_PAGEOUT) if the cgroup is near its limit. All of this counts as the job's own time. The time to
//! draw random references belongs to the experiment; it is measured and subtracted.

use super::{DELTA, SCALE};
use crate::area::Mapping;
use crate::clock;
use crate::model::Slrum;
use crate::model::estimators::{Control, Quanta};
use crate::model::published::DELAY;
use crate::model::sim::{
    Behaviour, KING_PAGES, KING_STAY, Program, Stretches, benchmark_programs, king_size_program,
};
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::PAGE;
use vellum_campaign::worker::meter::Meter;
use vellum_campaign::worker::{Params, WorkError};
use vellum_kernel::{Cgroup, Control as GroupFile, Pid};
use vellum_measure::Rng;
use vellum_workset::{Criterion, Demand, Page, Ticks};

/// The name of this work.
pub const JOB: &str = "nishigaki-job";
/// Bytes of a page that do not compress, so that the device has work.
const NOISE_BYTES: usize = 1024;
/// The largest share of references to another page: hotter pages are always resident, and would only cost
/// drawing.
const LEAVE_MAX: f64 = 2e-4;
/// References that are drawn at a time.
const BATCH: usize = 1024;
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
const CHECKED: usize = 1024;
const CALIBRATION: u64 = 20_000_000;
/// Windows in intervals: as long as in the simulator, whose intervals are half as long.
const WINDOW_START: Quanta = Quanta(5);
const WINDOW_MAX: Quanta = Quanta(20);
/// Number of ages that are distinguished.
const HORIZON: usize = WINDOW_MAX.0 as usize + 2;

/// Runs the job given by the words. Returns the line of figures of a calibration; other jobs print theirs and
/// run until they are killed.
///
/// # Errors
/// [`WorkError`] for invalid words, or without memory.
pub fn job(words: &[String]) -> Result<String, WorkError> {
    let params = Params::parse(words)?;
    if params.word("program") == "calibration" {
        return Ok(line(&calibrate(&params)?));
    }
    let (warm, count) = (params.number("warm_ticks")? as u64, params.number("count_ticks")? as u64);
    let mut job = Job::new(&params)?;
    enter(&params)?;
    if params.number("program")? == 0 {
        // Its pages are made beforehand. Otherwise a whole lap would make new pages without a page-in.
        job.memory.touch_all();
    }
    wait_for_go();
    job.run_to(warm)?;
    let (executed, faults, meter) = (job.executed, major_faults(), Meter::start());
    job.drawing = Duration::ZERO;
    job.run_to(executed + count)?;
    let mut figures = meter.stop();
    figures.set("ticks", (job.executed - executed) as f64);
    figures.set("drawing_ns", job.drawing.as_nanos() as f64);
    figures.set("major_faults", major_faults() - faults);
    figures.set("windows_mean", job.windows as f64 / f64::from(job.samples.max(1)));
    println!("{}", line(&figures));
    let _ = std::io::stdout().flush();
    // It keeps its memory until it is killed, so that the other jobs do not get it while they are counted.
    job.run_to(u64::MAX)?;
    Ok(String::new())
}

fn line(figures: &Metrics) -> String {
    serde_json::to_string(figures).expect("a map of finite numbers is JSON")
}

/// Moves this process into the group and onto the last allowed processor, since interrupts prefer the first.
/// The kernel kills it when its parent ends.
fn enter(params: &Params) -> Result<(), WorkError> {
    // SAFETY: zero bytes are a value of these plain records, which live across the calls; `CPU_SETSIZE`
    // bounds the processors.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let (mut one, mut allowed): (libc::cpu_set_t, libc::cpu_set_t) = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed);
        let last = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed));
        libc::CPU_SET(last.unwrap_or(0), &mut one);
        libc::sched_setaffinity(0, size_of_val(&one), &raw const one);
    }
    let processes = group(params).control(GroupFile::Processes);
    std::fs::write(processes, std::process::id().to_string()).map_err(|_| params.refused("group"))
}

fn group(params: &Params) -> Cgroup {
    Cgroup::at(params.word("group"))
}

/// Reports that this job is prepared, and waits for the answer. Ends this process if the parent is gone.
fn wait_for_go() {
    println!("ready");
    let _ = std::io::stdout().flush();
    if !std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {
        std::process::exit(1);
    }
}

/// Measures the time of a round of spinning, and of a fault when every page comes from the device.
fn calibrate(params: &Params) -> Result<Metrics, WorkError> {
    let mut memory = Memory::new(params.number("pages")?)?;
    enter(params)?;
    wait_for_go();
    let began = clock::cpu();
    spin(CALIBRATION);
    let round = clock::cpu() - began;
    memory.touch_all();
    let (began, faults) = (clock::cpu(), major_faults());
    memory.touch_all();
    let (took, faults) = (clock::cpu() - began, major_faults() - faults);
    let mut figures = Metrics::new();
    figures.set("round_ns", round.as_nanos() as f64 / CALIBRATION as f64);
    figures.set("delay_ns", took.as_nanos() as f64 / faults);
    Ok(figures)
}

/// A phase of a program that is [`SCALE`] times as large.
struct Phase {
    behaviour: Behaviour,
    pages: u64,
    length: u64,
    begins_program: bool,
}

struct Job {
    phases: Vec<Phase>,
    phases_begun: u64,
    phase_left: u64,
    stretches: Stretches,
    /// The references drawn from `stretches`.
    drawn: std::vec::IntoIter<(Page, u64)>,
    /// CPU time spent on drawing references.
    drawing: Duration,
    memory: Memory,
    seed: u64,
    rounds_per_tick: f64,
    executed: u64,
    sample_at: u64,
    samples: u32,
    /// The sum of the windows of all samples.
    windows: u64,
    chooser: Option<Chooser>,
}

impl Job {
    fn new(params: &Params) -> Result<Self, WorkError> {
        let criterion = match params.word("windows") {
            "pe" => Some(Criterion::ProcessorEfficiency),
            "lt" => Some(Criterion::Lifetime),
            _ => None,
        };
        let mut job = Self {
            phases: phases(params.number("program")?),
            phases_begun: 0,
            phase_left: 0,
            stretches: Stretches::Walk { pages: 1, stay: 1, next: 0 },
            drawn: Vec::new().into_iter(),
            drawing: Duration::ZERO,
            memory: Memory::new(1)?,
            seed: params.number("seed")? as u64,
            rounds_per_tick: params.number("rounds_per_mega_tick")? as f64 / 1e6,
            executed: 0,
            sample_at: DELTA,
            samples: 0,
            windows: 0,
            chooser: criterion.map(|criterion| Chooser::new(params, criterion)).transpose()?,
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
        let Some((page, length)) = self.drawn.next() else {
            let began = clock::cpu();
            self.drawn = self.stretches.by_ref().take(BATCH).collect::<Vec<_>>().into_iter();
            self.drawing += clock::cpu() - began;
            return Ok(());
        };
        let length = length.min(self.phase_left);
        let before = self.memory.touch(page.0 as usize, self.samples);
        if let Some(chooser) = &mut self.chooser
            && before != self.samples
        {
            chooser.ages.reference(before, self.samples);
        }
        spin((length as f64 * self.rounds_per_tick) as u64);
        self.executed += length;
        self.phase_left -= length;
        if self.executed >= self.sample_at {
            self.sample_at = self.executed + DELTA;
            self.sample();
        }
        if self.phase_left == 0 { self.begin_phase() } else { Ok(()) }
    }

    fn sample(&mut self) {
        let interval = self.samples;
        self.samples += 1;
        let Some(chooser) = &mut self.chooser else { return };
        let window = chooser.control.observe(&chooser.ages.end_interval(interval));
        self.windows += u64::from(window.0);
        if let Some(windows) = chooser.windows_kept() {
            self.memory.return_idle(self.samples, (f64::from(window.0) * windows).ceil() as u32);
        }
    }

    fn begin_phase(&mut self) -> Result<(), WorkError> {
        let phase = &self.phases[self.phases_begun as usize % self.phases.len()];
        self.phases_begun += 1;
        self.phase_left = phase.length;
        self.stretches = phase.behaviour.stretches(self.seed.wrapping_add(self.phases_begun));
        self.drawn = Vec::new().into_iter();
        // Pages of an ended phase are never referenced again. They are unmapped, and their records are reset.
        self.memory = Memory::new(phase.pages as usize)?;
        if let Some(chooser) = &mut self.chooser {
            chooser.ages = Ages::default();
            if phase.begins_program {
                chooser.control = control(chooser.demand);
            }
        }
        Ok(())
    }
}

/// The phases of the King's program for 0, and of all others from a different one on for each number.
fn phases(number: usize) -> Vec<Phase> {
    let programs = if number == 0 {
        vec![king_size_program(KING_PAGES, KING_STAY)]
    } else {
        let mut programs = benchmark_programs();
        let first = (number - 1) % programs.len();
        programs.rotate_left(first);
        programs
    };
    let of_program = |program: Program| {
        program.phases.into_iter().enumerate().map(|(at, phase)| {
            let (behaviour, pages) = match phase.behaviour {
                Behaviour::Walk { pages, stay } => {
                    (Behaviour::Walk { pages: pages * SCALE, stay }, pages * SCALE)
                }
                Behaviour::Stack(program) => {
                    let large = enlarged(&program);
                    let pages = large.pages() as u64;
                    (Behaviour::Stack(large), pages)
                }
            };
            let length = phase.length.saturating_mul(SCALE);
            Phase { behaviour, pages, length, begins_program: at == 0 }
        })
    };
    programs.into_iter().flat_map(of_program).collect()
}

/// Makes a program with [`SCALE`] pages for each of this one: it exceeds depth d as often as this one exceeds
/// d / `SCALE`.
fn enlarged(program: &Slrum) -> Slrum {
    let (tails, scale) = (program.tails(), SCALE as usize);
    // Bounded, so that it has a logarithm.
    let tail = |depth: usize| {
        tails.get(depth.saturating_sub(1)).or(tails.last()).copied().unwrap_or(LEAVE_MAX).max(1e-12).ln()
    };
    let large = (1..program.pages() * scale).map(|depth| {
        let (at, within) = (depth / scale, (depth % scale) as f64 / scale as f64);
        (tail(at) + (tail(at + 1) - tail(at)) * within).exp().min(LEAVE_MAX)
    });
    Slrum::from_tails(&large.collect::<Vec<_>>()).expect("tails that fall still fall between")
}

/// The choice of this job's window, and its inputs.
struct Chooser {
    demand: Demand,
    control: Control,
    ages: Ages,
    /// The file with the group's use.
    charged: File,
    /// The group's limit in bytes.
    limit: f64,
    /// Sample points at which the group's use is not read, since it was far below the limit.
    ease: u32,
}

impl Chooser {
    fn new(params: &Params, criterion: Criterion) -> Result<Self, WorkError> {
        let group = group(params);
        let charged = File::open(group.control(GroupFile::Charged)).map_err(|_| params.refused("group"))?;
        let limit = group.limit().ok_or_else(|| params.refused("group"))?.0 as f64;
        let demand = Demand::uncapped(criterion, DELAY);
        Ok(Self { demand, control: control(demand), ages: Ages::default(), charged, limit, ease: 0 })
    }

    /// The number of windows for which pages are kept at the group's present use; `None` while no pages need
    /// be returned.
    fn windows_kept(&mut self) -> Option<f64> {
        if self.ease > 0 {
            self.ease -= 1;
            return None;
        }
        let mut text = [0; 32];
        let read = self.charged.read_at(&mut text, 0).unwrap_or(0);
        let bytes = std::str::from_utf8(&text[..read]).ok().and_then(|text| text.trim().parse::<f64>().ok());
        let part = bytes.map_or(1.0, |bytes| bytes / self.limit);
        if part < FAR {
            self.ease = EASE;
        }
        let need = ((part - NEAR) / (FULL - NEAR)).min(1.0);
        (need >= 0.0).then_some(WINDOWS_FIRST + (1.0 - WINDOWS_FIRST) * need)
    }
}

fn control(demand: Demand) -> Control {
    Control::new(Ticks(DELTA), demand, WINDOW_START, WINDOW_MAX)
}

/// The number of pages last referenced in each of the latest intervals, like
/// [`Counters`](crate::model::estimators::Counters). Pages are numbered from 0 here, so that each needs only
/// a place in a list ([`Memory::touch`]).
#[derive(Default)]
struct Ages {
    /// By interval, modulo the number of intervals.
    pages: [u64; HORIZON],
}

impl Ages {
    /// Moves a page from interval `before`, in which it was last referenced, to this later one.
    #[inline]
    fn reference(&mut self, before: u32, interval: u32) {
        if before != NEVER && interval - before < HORIZON as u32 {
            self.pages[before as usize % HORIZON] -= 1;
        }
        self.pages[interval as usize % HORIZON] += 1;
    }

    /// At the end of this interval: returns the working sets of 1, 2, … intervals, and drops those past the
    /// horizon.
    fn end_interval(&mut self, interval: u32) -> [u64; HORIZON] {
        let mut sum = 0;
        let sets = std::array::from_fn(|age| {
            // There are no pages before the first interval.
            sum += interval.checked_sub(age as u32).map_or(0, |then| self.pages[then as usize % HORIZON]);
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
/// The interval of a page that was never referenced.
const NEVER: u32 = u32::MAX >> FLAGS;

struct Memory {
    mapping: Mapping,
    /// For each page, the interval of its last reference, above its flags: one word, so that an update costs
    /// about as much as a touch.
    pages: Vec<u32>,
    /// The next page to check for idleness.
    hand: usize,
    noise: Rng,
}

impl Memory {
    fn new(pages: usize) -> Result<Self, WorkError> {
        let mapping = Mapping::of_base_pages(pages * PAGE)?;
        Ok(Self { mapping, pages: vec![NEVER << FLAGS; pages], hand: 0, noise: Rng::new(1) })
    }

    /// References a page in this interval; returns the interval of the last reference, or [`NEVER`].
    #[inline]
    fn touch(&mut self, page: usize, interval: u32) -> u32 {
        let start = self.mapping.start().wrapping_add(page * PAGE);
        let before = std::mem::replace(&mut self.pages[page], interval << FLAGS | TOUCHED | RESIDENT);
        if before & TOUCHED != 0 {
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
        before >> FLAGS
    }

    /// Touches all pages, without a reference.
    fn touch_all(&mut self) {
        (0..self.pages.len()).for_each(|page| {
            self.touch(page, NEVER);
        });
    }

    /// Checks the next [`CHECKED`] pages. Returns those to the kernel that were not referenced in the last
    /// `kept` intervals up to `now`, neighbours in one call. Each is returned once until it is touched again.
    /// The result is their number.
    fn return_idle(&mut self, now: u32, kept: u32) -> usize {
        let (count, hand) = (self.pages.len(), self.hand);
        self.hand = (hand + CHECKED) % count;
        let is_idle = |page: &usize| {
            let (interval, flags) = (self.pages[*page] >> FLAGS, self.pages[*page]);
            flags & RESIDENT != 0 && (interval == NEVER || interval + kept < now)
        };
        let next = (hand..hand + CHECKED.min(count)).map(|page| page % count);
        let idle: Vec<usize> = next.filter(is_idle).collect();
        for run in idle.chunk_by(|left, right| left + 1 == *right) {
            run.iter().for_each(|page| self.pages[*page] &= !RESIDENT);
            let start = self.mapping.start().wrapping_add(run[0] * PAGE);
            // SAFETY: the range lies in the mapping; the advice keeps the pages' contents.
            unsafe { libc::madvise(start.cast(), run.len() * PAGE, libc::MADV_PAGEOUT) };
        }
        idle.len()
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

fn major_faults() -> f64 {
    Pid::me().stat().map_or(0.0, |stat| stat.own.major_faults as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimators::Counters;

    #[test]
    fn an_enlarged_program_exceeds_scaled_depths_as_often() {
        let tails: Vec<f64> = (1..10).map(|h| 1e-4 * 0.5f64.powi(h)).collect();
        let small = Slrum::from_tails(&tails).unwrap();
        let (large, scale) = (enlarged(&small), SCALE as usize);
        assert_eq!(large.pages(), small.pages() * scale);
        for depth in 1..9 {
            let (was, is) = (small.tail(depth), large.tail(depth * scale));
            assert!((is / was - 1.0).abs() < 1e-9, "beyond {depth}: {was} became {is}");
        }
    }

    #[test]
    fn idle_pages_keep_their_contents_and_are_returned_once() {
        let mut memory = Memory::new(3 * CHECKED).unwrap();
        memory.touch_all();
        let contents = |memory: &Memory| -> Vec<u8> {
            // SAFETY: the second byte of each page of the mapping, which is live.
            let byte = |page| unsafe { memory.mapping.start().add(page * PAGE + 1).read_volatile() };
            (0..3 * CHECKED).map(byte).collect()
        };
        let before = contents(&memory);
        (0..100).for_each(|page| assert_eq!(memory.touch(page, 20), NEVER));
        assert_eq!((memory.touch(7, 20), memory.touch(CHECKED, 9)), (20, NEVER));
        // Page CHECKED was referenced eleven intervals ago, the first hundred in this one, the rest never.
        let mut returned = |kept| (0..3).map(|_| memory.return_idle(20, kept)).collect::<Vec<_>>();
        assert_eq!(returned(11), [CHECKED - 100, CHECKED - 1, CHECKED]);
        assert_eq!((returned(10), returned(10)), (vec![0, 1, 0], vec![0; 3]));
        assert_eq!((contents(&memory), memory.touch(CHECKED, 20)), (before, 9));
    }

    #[test]
    fn ages_match_the_counters() {
        const PAGES: usize = 300;
        let mut counters = Counters::new(Quanta(HORIZON as u32));
        let (mut ages, mut memory, mut random) = (Ages::default(), Memory::new(PAGES).unwrap(), Rng::new(1));
        for interval in 0..500 {
            let mut referenced = Vec::new();
            // Many pages in every other interval, so that some become old.
            for _ in 0..(interval % 2) * 20 + 1 {
                let page = random.index(PAGES);
                referenced.push(Page(page as u64));
                let before = memory.touch(page, interval);
                if before != interval {
                    ages.reference(before, interval);
                }
            }
            counters.sample(referenced);
            assert_eq!(ages.end_interval(interval)[..], counters.working_sets()[..], "interval {interval}");
        }
    }

    #[test]
    fn fewer_windows_are_kept_nearer_to_the_limit() {
        let group = tempfile::tempdir().unwrap();
        let write = |file, text| std::fs::write(group.path().join(file), text).unwrap();
        write("memory.max", "1000\n");
        write("memory.current", "0\n");
        let params = Params::parse(&[format!("group={}", group.path().display())]).unwrap();
        let mut chooser = Chooser::new(&params, Criterion::Lifetime).unwrap();
        let mut kept = |charged| {
            write("memory.current", charged);
            chooser.ease = 0;
            chooser.windows_kept()
        };
        assert_eq!([kept("500\n"), kept("970\n"), kept("1000\n")], [None, Some(WINDOWS_FIRST), Some(1.0)]);
        assert!(kept("985").is_some_and(|windows| windows > 1.5 && windows < 3.0));
        assert_eq!(kept("no number"), Some(1.0), "a file that cannot be read counts as full");
    }

    #[test]
    fn invalid_words_are_refused() {
        for words in [&[][..], &["program=0"], &["warm_ticks=1", "count_ticks=1", "program=x"], &["alone"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(job(&words).is_err(), "{words:?}");
        }
    }
}
