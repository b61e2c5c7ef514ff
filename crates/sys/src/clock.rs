//! Clocks for decisions, not for measurements. The coarse monotonic one takes some nanoseconds to read.
//!
//! Clocks are read through the C library, which found its fast path when the process began. A later look-up
//! would need system calls that a filter may forbid by then. A successful read does not change `errno`.

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// Milliseconds since boot, as fresh as the kernel's last tick (1 to 10 ms).
#[inline]
pub fn now_ms() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC_COARSE);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn now_ns() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of CPU time, user and system, that the calling thread has used: a system call.
pub fn thread_cpu_ns() -> u64 {
    let time = read(libc::CLOCK_THREAD_CPUTIME_ID);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of CPU time, user and system, that the calling process has used: a system call.
pub fn own_cpu_ns() -> u64 {
    let time = read(libc::CLOCK_PROCESS_CPUTIME_ID);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of CPU time, user and system, that a process has used; `None` if there is no such process.
///
/// The kernel answers for any visible process, of any owner.
pub fn process_cpu_ns(pid: i32) -> Option<u64> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: writes one clock id.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    // SAFETY: writes one timespec; the process may have ended meanwhile, which is an error and no write.
    let got = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (got == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
