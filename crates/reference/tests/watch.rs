//! Tests of the watcher with a process whose references are known.
//!
//! The *walker* is this test program, started again. It touches each of its sets of n pages once in a period
//! of its own user CPU time, evenly. In any window of length T it therefore touches z(T) pages:
//!
//! ```text
//! z(T) = Σ n · min(1, T / period)
//! ```
//!
//! The true curve does not depend on when a cycle begins, or on the load or speed of the machine; nor does
//! the test.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vellum_kernel::Pid;
use vellum_reference::{Availability, Event, Grain, Options, SourceKind, Target, Watcher};
use vellum_skip::Group;
use vellum_workset::Curve;

const PAGE: usize = 4096;
/// Pages, and milliseconds in which they are all touched once.
const SETS: [(usize, u64); 3] = [(3000, 20), (3000, 400), (4000, 2000)];
/// The walker looks at its clock this often.
const TURN: Duration = Duration::from_micros(500);
/// And in between at another, after this many turns of a loop: some microseconds.
const PAUSE: u32 = 5000;
/// What the command and its libraries keep touching, beside the sets.
const BESIDE_PAGES: f64 = 60.0;
/// How far from the truth a curve may be.
const WITHIN: f64 = 0.02;
/// In an emulated machine (`.ci/vm`) user time is less exact: clock ticks come late.
const EMULATED_WITHIN: f64 = 0.06;
/// Where translations outlive a clearing, short windows miss up to this many pages, a TLB's entries, and have
/// a caveat;
const TLB_PAGES: f64 = 3072.0;
/// from this window on a thread has been switched away often enough.
const LONG_NS: f64 = 390e6;
/// After this the walker ends: the test has died.
const HANG: Duration = Duration::from_secs(300);

/// One walker at a time: each wants a processor, and its watcher another.
static ONE: Mutex<()> = Mutex::new(());

/// Not a test: what the others watch.
#[test]
#[ignore = "the process that is watched, started by the tests"]
fn walker() {
    let huge = std::env::var_os("WALKER_HUGE").is_some();
    let mut sets: Vec<(Region, u64, u64)> =
        SETS.iter().map(|(pages, period)| (Region::new(*pages, huge), *period * 1_000_000, 0)).collect();
    println!("ready");
    let began = Instant::now();
    let start = cpu_ns();
    while began.elapsed() < HANG {
        let turn = Instant::now();
        while turn.elapsed() < TURN {
            // Looking at a clock is a system call on some machines, and system time is no virtual time.
            for step in 0..PAUSE {
                std::hint::black_box(step);
            }
        }
        let now = cpu_ns() - start;
        for (region, period, touched) in &mut sets {
            let due = (u128::from(now) * region.pages as u128 / u128::from(*period)) as u64;
            // A stretch in which it did not run is not caught up with twice.
            *touched = (*touched).max(due.saturating_sub(region.pages as u64));
            while *touched < due {
                region.touch((*touched % region.pages as u64) as usize);
                *touched += 1;
            }
        }
    }
}

fn cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Pages of a set, in base pages or in huge ones.
struct Region {
    base: *mut u8,
    pages: usize,
}

impl Region {
    fn new(pages: usize, huge: bool) -> Region {
        const HUGE: usize = 2 << 20;
        let bytes = (pages * PAGE).next_multiple_of(HUGE) + HUGE;
        let (prot, flags) =
            (rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE, rustix::mm::MapFlags::PRIVATE);
        // SAFETY: a new mapping, never unmapped: the process ends with it.
        let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, prot, flags) }.unwrap();
        let base = (base as usize).next_multiple_of(HUGE) as *mut u8;
        let advice =
            if huge { rustix::mm::Advice::LinuxHugepage } else { rustix::mm::Advice::LinuxNoHugepage };
        // SAFETY: within the mapping; kernels without huge pages refuse, which is as good.
        let _ = unsafe { rustix::mm::madvise(base.cast(), pages * PAGE, advice) };
        let mut region = Region { base, pages };
        (0..pages).for_each(|page| region.touch(page));
        region
    }

    fn touch(&mut self, page: usize) {
        // SAFETY: within the mapping.
        unsafe { self.base.add(page * PAGE).write_volatile(1) };
    }
}

/// A walker that has started, ended when dropped.
struct Walker {
    child: Child,
    /// Held open: a test runner ends if it cannot write that its test takes long.
    _lines: Lines<BufReader<ChildStdout>>,
    _one: MutexGuard<'static, ()>,
}

impl Walker {
    fn start(huge: bool) -> Walker {
        Walker::start_in(None, huge)
    }

    /// In a control group from its first page on.
    fn start_in(group: Option<&Group>, huge: bool) -> Walker {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(&program);
        if let Some(group) = group {
            group.confine(&mut command);
        }
        command.args(["--exact", "walker", "--ignored", "--nocapture"]).stdout(Stdio::piped());
        if huge {
            command.env("WALKER_HUGE", "1");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().any(|line| line.unwrap().ends_with("ready")), "the walker did not start");
        Walker { child, _lines: lines, _one: one }
    }

    fn pid(&self) -> Pid {
        Pid(self.child.id() as i32)
    }
}

impl Drop for Walker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn accessed_bits() -> bool {
    let here = SourceKind::AccessedBits.availability();
    if here != Availability::Usable {
        vellum_skip::skip(format_args!("accessed bits cannot be read here: {here:?}"));
    }
    here == Availability::Usable
}

/// Cycles without a pause: the tests are about the answer, not about the cost.
fn eager() -> Options {
    Options { budget: 1.0, ..Options::default() }
}

/// The same by one source.
fn eagerly_by(kind: SourceKind) -> Options {
    Options { source: Some(kind), ..eager() }
}

fn watch_until(watcher: &mut Watcher, mut enough: impl FnMut(&Watcher, &[Event]) -> bool) {
    let began = Instant::now();
    loop {
        let step = watcher.step().unwrap();
        let done = enough(watcher, &step.events);
        let Some(wait) = step.wait else { break };
        if done {
            break;
        }
        assert!(began.elapsed() < HANG, "no answer in {HANG:?}");
        std::thread::sleep(wait);
    }
}

/// What of a process's CPU time was user time: windows are of that, and the walker's clock is of all.
struct UserPart {
    pid: Pid,
    before: (f64, f64),
}

impl UserPart {
    fn from_now(pid: Pid) -> UserPart {
        UserPart { pid, before: UserPart::used(pid) }
    }

    /// User and all CPU time.
    fn used(pid: Pid) -> (f64, f64) {
        let own = pid.stat().unwrap().own;
        (own.user.as_secs_f64(), own.cpu.as_secs_f64())
    }

    fn so_far(&self) -> f64 {
        let now = UserPart::used(self.pid);
        (now.0 - self.before.0) / (now.1 - self.before.1)
    }
}

fn truth(window_ns: f64) -> f64 {
    SETS.iter().map(|(pages, ms)| *pages as f64 * (window_ns / (*ms as f64 * 1e6)).min(1.0)).sum()
}

/// How far the curve is off; `stale` if translations outlive a clearing here, `user` the part of the walker's
/// time that was user time.
fn worst(curve: &Curve, until_ns: f64, stale: bool, user: f64) -> f64 {
    eprintln!("{:.1} % user time", user * 100.0);
    let points = curve.points().iter().filter(|point| point.window <= until_ns);
    points
        .map(|point| {
            let truth = truth(point.window / user);
            let off = (point.pages - truth - BESIDE_PAGES / 2.0).abs() - BESIDE_PAGES / 2.0;
            eprintln!(
                "T {:7.1} ms  z {:8.1}  truth {truth:8.1}  {:+.2} %",
                point.window / 1e6,
                point.pages,
                (point.pages / truth - 1.0) * 100.0
            );
            if stale && point.window < LONG_NS && point.pages < truth && point.pages > truth - TLB_PAGES {
                return 0.0;
            }
            off.max(0.0) / truth
        })
        .fold(0.0, f64::max)
}

#[test]
fn alone_the_curve_of_a_live_process_is_within_two_percent() {
    if accessed_bits() {
        the_curve_is_within_two_percent_by(SourceKind::AccessedBits);
    }
}

#[test]
fn alone_the_curve_read_out_of_page_tables_is_within_two_percent() {
    match SourceKind::PageTables.availability() {
        Availability::Usable => the_curve_is_within_two_percent_by(SourceKind::PageTables),
        why => vellum_skip::skip(format_args!("page tables cannot be read here: {why:?}")),
    }
}

#[test]
fn alone_the_curve_by_generations_of_a_control_group_is_within_two_percent() {
    match SourceKind::Generations.availability() {
        Availability::Usable => {}
        why => return vellum_skip::skip(format_args!("no generations can be read here: {why:?}")),
    }
    let group = match Group::of_groups() {
        Ok(group) if group.path().join("memory.reclaim").exists() => group,
        _ => return vellum_skip::skip("no control group of version 2 with memory can be made here"),
    };
    let walker = Walker::start_in(Some(&group), false);
    let target = Target::cgroup(group.path()).unwrap();
    the_curve_is_within(&walker, &target, SourceKind::Generations);
    // The group is the walker's own, which may as well be named itself.
    let process = Watcher::new(Target::process(walker.pid()).unwrap(), eagerly_by(SourceKind::Generations));
    assert_eq!(process.unwrap().source(), SourceKind::Generations);
    drop(walker);
}

fn the_curve_is_within_two_percent_by(kind: SourceKind) {
    let walker = Walker::start(false);
    the_curve_is_within(&walker, &Target::process(walker.pid()).unwrap(), kind);
}

fn the_curve_is_within(walker: &Walker, target: &Target, kind: SourceKind) {
    let user = UserPart::from_now(walker.pid());
    let mut watcher = Watcher::new(target.clone(), eagerly_by(kind)).unwrap();
    assert_eq!(watcher.source(), kind);
    let far = |curve: Curve| curve.last().window >= 1.5e9;
    watch_until(&mut watcher, |watcher, _| watcher.curve().is_some_and(far));
    watcher.finish();
    let curve = watcher.curve().expect("a curve");
    assert!(curve.last().window >= 1.5e9, "windows up to {:.1} s", curve.last().window / 1e9);
    let off = worst(&curve, 2e9, watcher.caveat().is_some(), user.so_far());
    let within = if std::env::var_os("VELLUM_VM").is_some() { EMULATED_WITHIN } else { WITHIN };
    assert!(off <= within, "off by {:.1} %", off * 100.0);
    assert_eq!(watcher.grain(), Grain::Base);
    assert!(watcher.first_curve().is_some());
    let clears = matches!(kind, SourceKind::AccessedBits | SourceKind::PageTables);
    assert!(watcher.cost().cpu_ns > 0 && (watcher.cost().longest_stall_ns > 0) == clears);
    eprintln!("{:?}", watcher.cost());
}

#[test]
fn huge_pages_are_counted_whole_and_said() {
    let policy = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !accessed_bits() || policy.is_empty() || policy.contains("[never]") {
        vellum_skip::skip("no huge pages here");
        return;
    }
    let walker = Walker::start(true);
    let mut watcher = Watcher::new(Target::process(walker.pid()).unwrap(), eager()).unwrap();
    watch_until(&mut watcher, |watcher, _| watcher.history().samples() >= 1);
    let huge = watcher.latest().huge.0 as f64 / watcher.latest().resident.0 as f64;
    if huge < 0.5 {
        vellum_skip::skip(format_args!("the kernel had no huge pages to give ({huge:.2})"));
        return;
    }
    assert!(matches!(watcher.grain(), Grain::Huge { .. }));
    // Touching some of a huge page counts it whole.
    let curve = watcher.curve().unwrap();
    let (pages, base) = (curve.last().pages, truth(curve.last().window));
    assert!(pages > base, "{pages} pages in the longest window, in base pages the truth is {base}");
}

#[test]
fn a_job_that_is_killed_midway_has_ended_and_its_curve_stays() {
    let usable = |kind: &SourceKind| kind.availability() == Availability::Usable;
    for kind in [SourceKind::AccessedBits, SourceKind::PageTables].into_iter().filter(usable) {
        let mut walker = Walker::start(false);
        let target = Target::process(walker.pid()).unwrap();
        let mut watcher = Watcher::new(target, eagerly_by(kind)).unwrap();
        // After two looks of the first cycle there is a curve, and the cycle still runs.
        watch_until(&mut watcher, |watcher, _| watcher.curve().is_some());
        walker.child.kill().unwrap();
        walker.child.wait().unwrap();
        let mut seen = Vec::new();
        watch_until(&mut watcher, |_, events| {
            seen.extend(events.to_vec());
            false
        });
        assert!(seen.iter().any(|event| matches!(event, Event::Left { .. })), "{kind}: {seen:?}");
        assert!(!seen.iter().any(|event| matches!(event, Event::Lost { .. })), "{kind}: {seen:?}");
        assert_eq!(seen.last(), Some(&Event::Ended), "{kind}");
        assert!(watcher.curve().is_some(), "{kind}: the curve is kept");
    }
}

#[test]
fn a_job_that_forks_executes_and_ends_is_followed() {
    if !accessed_bits() {
        return;
    }
    // Each half goes on until the watcher has seen it, or this test has ended and its directory has gone.
    let halves = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|half| halves.path().join(half));
    std::fs::write(&first, "").unwrap();
    std::fs::write(&second, "").unwrap();
    let busy = |half: &Path| format!("while [ -e {} ]; do :; done", half.display());
    let (forks, executes) = (busy(&first), busy(&second));
    let script = format!("sh -c '{forks}' & {forks}; wait; exec sh -c '{executes}'");
    let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let target = Target::process(Pid(child.id() as i32)).unwrap();
    let mut watcher = Watcher::new(target, eager()).unwrap();
    let mut seen = Vec::new();
    watch_until(&mut watcher, |watcher, events| {
        seen.extend(events.to_vec());
        let count = |what: fn(&Event) -> bool| seen.iter().filter(|event| what(event)).count();
        let clock = watcher.clock() > Duration::from_millis(50);
        if clock && count(|event| matches!(event, Event::Joined { .. })) >= 2 {
            let _ = std::fs::remove_file(&first);
        }
        if count(|event| matches!(event, Event::Executed { .. } | Event::Restarted)) >= 2 {
            let _ = std::fs::remove_file(&second);
        }
        false
    });
    child.wait().unwrap();
    let has = |what: fn(&Event) -> bool| seen.iter().any(what);
    assert!(has(|event| matches!(event, Event::Executed { .. })), "{seen:?}");
    assert!(has(|event| matches!(event, Event::Restarted)), "{seen:?}");
    assert_eq!(seen.last(), Some(&Event::Ended));
    assert!(watcher.clock() > Duration::from_millis(50));
    assert!(watcher.step().unwrap().wait.is_none(), "over is over");
}

#[test]
fn memory_that_an_idle_process_does_not_touch_is_told_by_age_without_a_curve() {
    if !accessed_bits() {
        return;
    }
    let mut child = Command::new("sleep").arg("300").spawn().unwrap();
    let target = Target::process(Pid(child.id() as i32)).unwrap();
    let mut watcher = Watcher::new(target, Options::default()).unwrap();
    // An age that a look comes too late for is not known; then it is the next one.
    watch_until(&mut watcher, |watcher, _| watcher.untouched().count() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(watcher.curve().is_none(), "it has used no CPU time");
    let frame = watcher.frame(None);
    assert!(frame.ages.windows(2).all(|pair| pair[0].untouched_ns < pair[1].untouched_ns), "{frame:?}");
    // How much of its text others have mapped too changes as they come and go.
    let resident = watcher.latest().resident.0;
    assert!(frame.ages.iter().all(|age| age.bytes > 0 && age.bytes <= resident), "{frame:?}");
    assert!(frame.curve_in.is_some());
    let minute = frame.ages.iter().any(|age| age.untouched_ns >= 60_000_000_000);
    assert_eq!(frame.give_by_age.is_some(), minute, "ten seconds are too few to advise by");
}
