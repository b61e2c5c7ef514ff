//! A program of fixed work, watched or not: what watching its working set costs it, and us.
//!
//! The worker forks. The child touches pages of its own at random, so many times; the parent waits, and with `watch=1` watches it meanwhile
//! with the settings that `vellum watch` has. `all_ns` is the CPU time of both: what the machine spent on the same work.
//!
//! Between two touches the child computes for [`STEPS`]. All of its pages are touched within the shortest window all the same, so a watch costs it
//! what it costs any job of that size; but most of its time does not hang on caches, which other processes take from it now and then.
//! The same work then takes the same time to a fraction of one percent, and so little can be seen.

use super::{Failure, Params};
use crate::Metrics;
use crate::meter::Meter;
use std::time::Duration;
use vellum_measure::Rng;
use vellum_probe::Pid;
use vellum_probe::reference::{Options, Target, Watcher};

const PAGE: usize = 4096;
/// Steps of arithmetic, each needing the one before, between two touches: some 80 ns.
const STEPS: u32 = 40;

/// `bytes` of memory, touched `touches` times.
pub(super) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (bytes, touches) = (params.size("bytes", 16 << 20), params.get("touches", 1 << 24));
    let seed = params.seed();
    let meter = Meter::start();
    // SAFETY: the child makes one mapping, touches it and ends without unwinding, locks or allocation.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => work(bytes, touches, seed),
        pid if pid < 0 => return Err(wrong("the child could not be forked")),
        _ => {}
    }
    let watched = (params.get("watch", 0) != 0).then(|| watch(Pid(pid)));
    let (job, ended_well) = wait(pid).ok_or_else(|| wrong("the child could not be waited for"))?;
    let mut metrics = meter.stop();
    if !ended_well {
        return Err(wrong("the child did not end well"));
    }
    metrics.set("job_ns", job);
    metrics.set("all_ns", job + metrics.get("cpu_ns").unwrap_or(0.0));
    if let Some(watched) = watched {
        let watcher = watched.map_err(|why| wrong(&why))?;
        let cost = watcher.cost();
        metrics.set("cycles", watcher.history().samples() as f64);
        metrics.set("said_share", cost.share);
        metrics.set("stall_ns", cost.longest_stall.as_nanos() as f64);
        let first = watcher.first_curve();
        metrics.set("first_curve_ns", first.map_or(f64::NAN, |first| first.as_nanos() as f64));
    }
    Ok(metrics)
}

fn wrong(what: &str) -> Failure {
    Failure::Wrong { workload: "watched", what: what.to_owned() }
}

/// The child: never returns.
fn work(bytes: usize, touches: u64, seed: u64) -> ! {
    let pages = bytes / PAGE;
    // SAFETY: a new mapping, touched only within its length; the process ends with it.
    unsafe {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let base = libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, -1, 0);
        if base == libc::MAP_FAILED {
            libc::_exit(1);
        }
        libc::madvise(base, pages * PAGE, libc::MADV_NOHUGEPAGE);
        let base = base.cast::<u8>();
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

/// The child's CPU time in nanoseconds, and whether it ended well.
fn wait(pid: libc::pid_t) -> Option<(f64, bool)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is valid; the call fills it and the status.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(pid, &raw mut status, 0, &raw mut usage) != pid {
            return None;
        }
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000).as_nanos() as f64;
    Some((time(usage.ru_utime) + time(usage.ru_stime), status == 0))
}
