//! A workload of fixed work, watched or not, to measure the cost of watching a working set.
//!
//! The worker forks two children of the same work. Each touches its own pages at random, a given number of
//! times, and computes for [`STEPS`] between two touches. With `watch=1` the worker watches the first
//! child with the settings of `vellum watch`; with `govern=1` it governs that child ([`super::govern`]).
//! The second child is left alone.
//!
//! ```text
//! ratio = (CPU time of the first child + of the worker) / CPU time of the second child
//! ```
//!
//! Both run on one processor, by turns of a few milliseconds. Disturbances from outside (other users of
//! the caches and of the memory bus, a host that runs another guest) then slow both alike. The ratio is
//! exact to a hundredth even if the times themselves vary by a tenth from run to run. Both children touch
//! all of their memory before either begins, so that the host need not provide any during the measurement.

use super::govern::govern;
use crate::Metrics;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};
use vellum_campaign::worker::meter::Meter;
use vellum_campaign::worker::{Params, WorkError};
use vellum_kernel::Pid;
use vellum_measure::Rng;
use vellum_reference::{Options, Target, Watcher};

const PAGE: usize = 4096;
/// Steps of arithmetic between two touches, each dependent on the step before: some 80 ns.
const STEPS: u32 = 40;
/// Time between two checks for each other by the worker and its children, and the longest wait.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const COME_WITHIN: Duration = Duration::from_secs(60);

/// Runs two children with `bytes` of memory each, which they touch `touches` times.
pub(super) fn run(params: &Params) -> Result<Metrics, WorkError> {
    let (bytes, touches) = (params.size("bytes", 16 << 20), params.get("touches", 1 << 24));
    let seed = params.seed();
    let processor = processor().ok_or_else(|| wrong("no processor to run on was found"))?;
    let gate = Gate::new().ok_or_else(|| wrong("no memory for the children to meet in"))?;
    let fork = || -> Result<libc::pid_t, WorkError> {
        // SAFETY: the child sets its processor, makes one mapping, touches it and ends without unwinding,
        // locks or allocation.
        match unsafe { libc::fork() } {
            0 => work(bytes, touches, seed, &processor, gate),
            pid if pid < 0 => Err(wrong("a child could not be forked")),
            pid => Ok(pid),
        }
    };
    let first = fork()?;
    let second = fork();
    if second.is_ok() {
        gate.wait_for(2);
    }
    let meter = Meter::start();
    gate.open();
    let watched = (second.is_ok() && params.get("watch", 0) != 0).then(|| watch(Pid(first)));
    let governed = (second.is_ok() && params.get("govern", 0) != 0).then(|| govern(Pid(first)));
    let of_first = wait(first).ok_or_else(|| wrong("a child could not be waited for"))?;
    let of_second = wait(*second.as_ref().map_err(|_| wrong("a child could not be forked"))?)
        .ok_or_else(|| wrong("a child could not be waited for"))?;
    let mut metrics = meter.stop();
    if !of_first || !of_second {
        return Err(wrong("a child did not end well"));
    }
    let (of_first, of_second) = (gate.time_of(first), gate.time_of(second?));
    let ours = metrics.get("cpu_ns").unwrap_or(0.0);
    metrics.set("job_ns", of_first);
    metrics.set("beside_ns", of_second);
    metrics.set("job_ratio", of_first / of_second);
    metrics.set("ratio", (of_first + ours) / of_second);
    if let Some(governed) = governed {
        let governed = governed.map_err(|why| wrong(&why))?;
        let hours = governed.wall.as_secs_f64() / 3600.0;
        metrics.set("governor_hour_ns", ours / hours);
        metrics.set("decisions", governed.decisions as f64);
    }
    if let Some(watched) = watched {
        let watcher = watched.map_err(|why| wrong(&why))?;
        let cost = watcher.cost();
        metrics.set("cycles", watcher.history().samples() as f64);
        metrics.set("said_share", cost.share);
        metrics.set("stall_ns", cost.longest_stall_ns as f64);
        let first = watcher.first_curve();
        metrics.set("first_curve_ns", first.map_or(f64::NAN, |first| first.as_nanos() as f64));
    }
    Ok(metrics)
}

/// The last of the processors that this process may use, as a set.
fn processor() -> Option<libc::cpu_set_t> {
    // SAFETY: a set is plain bits, for which zero is valid; the calls read and write sets that live here, of
    // the size given.
    unsafe {
        let (mut all, mut one): (libc::cpu_set_t, libc::cpu_set_t) = (std::mem::zeroed(), std::mem::zeroed());
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut all) != 0 {
            return None;
        }
        let last = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &all))?;
        libc::CPU_SET(last, &mut one);
        Some(one)
    }
}

fn wrong(what: &str) -> WorkError {
    WorkError::Wrong { workload: "watched", what: what.to_owned() }
}

/// The work of a child, which never returns.
fn work(bytes: usize, touches: u64, seed: u64, processor: &libc::cpu_set_t, gate: &Gate) -> ! {
    let pages = bytes / PAGE;
    // SAFETY: the set lives through the call; the new mapping is touched only within its length, and the
    // process ends with it.
    unsafe {
        // The kernel kills the child if the worker ends, since nothing would open the gate then.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), processor) != 0 {
            libc::_exit(1);
        }
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let base = libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, -1, 0);
        if base == libc::MAP_FAILED {
            libc::_exit(1);
        }
        libc::madvise(base, pages * PAGE, libc::MADV_NOHUGEPAGE);
        let base = base.cast::<u8>();
        for page in 0..pages {
            base.add(page * PAGE).write_volatile(1);
        }
        gate.pass();
        let began = cpu_ns();
        let mut random = Rng::new(seed);
        let mut chain = seed | 1;
        for _ in 0..touches {
            for _ in 0..STEPS {
                chain ^= chain << 13;
                chain ^= chain >> 7;
                chain ^= chain << 17;
            }
            let at = base.add(random.below(pages as u64) as usize * PAGE);
            at.write_volatile(at.read_volatile().wrapping_add(1));
        }
        gate.took(cpu_ns() - began);
        libc::_exit(i32::from(std::hint::black_box(chain) == 0))
    }
}

fn watch(pid: Pid) -> Result<Watcher, String> {
    let mut watcher =
        Watcher::new(Target::Processes(vec![pid]), Options::default()).map_err(|why| why.to_string())?;
    while let Some(wait) = watcher.step().map_err(|why| why.to_string())?.wait {
        std::thread::sleep(wait);
    }
    Ok(watcher)
}

/// Whether the child ended with status 0.
fn wait(pid: libc::pid_t) -> Option<bool> {
    let mut status = 0;
    // SAFETY: the call fills the status, which lives here.
    (unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid).then_some(status == 0)
}

/// Memory shared by the worker and its children: the number of children that are ready, whether they may
/// continue, and the time that each took.
struct Gate {
    come: AtomicU32,
    open: AtomicU32,
    /// A process, and its CPU time in nanoseconds.
    times: [(AtomicU32, AtomicU64); 2],
}

impl Gate {
    /// Makes a gate in its own mapping, which stays until the process ends.
    fn new() -> Option<&'static Gate> {
        // SAFETY: a new mapping of zeroed bytes, which are valid for a gate, aligned to a page and never
        // unmapped.
        unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            let at = libc::mmap(std::ptr::null_mut(), size_of::<Gate>(), protection, flags, -1, 0);
            (at != libc::MAP_FAILED).then(|| &*at.cast::<Gate>())
        }
    }

    /// Waits until this number of children is ready, or for the longest wait.
    fn wait_for(&self, children: u32) {
        let began = Instant::now();
        while self.come.load(Acquire) < children && began.elapsed() < COME_WITHIN {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn open(&self) {
        self.open.store(1, Release);
    }

    /// In a child: reports that it is ready, and waits until it may continue.
    fn pass(&self) {
        self.come.fetch_add(1, Release);
        while self.open.load(Acquire) == 0 {
            // SAFETY: the call only sleeps.
            unsafe { libc::usleep(LOOK_EVERY.subsec_micros()) };
        }
    }

    /// In a child: records its time.
    fn took(&self, nanos: u64) {
        // SAFETY: the call only returns a number.
        let own = unsafe { libc::getpid() } as u32;
        let place = self.times.iter().find(|(pid, _)| pid.compare_exchange(0, own, Acquire, Acquire).is_ok());
        if let Some((_, time)) = place {
            time.store(nanos, Release);
        }
    }

    fn time_of(&self, pid: libc::pid_t) -> f64 {
        let of = self.times.iter().find(|(own, _)| own.load(Acquire) == pid as u32);
        of.map_or(f64::NAN, |(_, time)| time.load(Acquire) as f64)
    }
}

fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the time, which lives here.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
