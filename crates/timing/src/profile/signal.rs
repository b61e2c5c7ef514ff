//! Sampling by a timer's signal, used if the kernel gives no events.
//!
//! A timer on the thread's (or process's) CPU clock sends `SIGPROF`. The handler stores the interrupted
//! address in memory that is already there. These timers expire at the kernel's ticks at the earliest.
//! Further expirations before the signal arrives are reported as overruns, and count as samples.
//!
//! Invariants:
//! - one region at a time, because the signal belongs to the process;
//! - the handler makes no call and touches only its own statics;
//! - when sampling ends, the signal is ignored before its old disposition is restored. This discards a
//!   pending signal, which could otherwise end the process.

use super::{ProfileError, Sample, Scope, Taken};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release, Ordering::SeqCst,
};

/// Samples kept: at a tick of a thousandth of a second, a quarter of an hour.
const SAMPLES_MAX: usize = 1 << 20;

static BUSY: AtomicBool = AtomicBool::new(false);
/// Pairs of address and weight; null while nobody samples.
static PLACES: AtomicPtr<[u64; 2]> = AtomicPtr::new(null_mut());
/// Pairs handed out, also beyond the last.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Handlers that have begun and not ended.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

pub(super) struct Sampling {
    places: Box<[[u64; 2]]>,
    timer: libc::timer_t,
    period_ns: i64,
    before: libc::sigaction,
    mask_before: libc::sigset_t,
}

impl Sampling {
    /// Everything but the start.
    pub(super) fn prepare(scope: Scope, hz: u32) -> Result<Sampling, ProfileError> {
        if BUSY.swap(true, Acquire) {
            return Err(ProfileError::Busy);
        }
        let prepared = Self::prepare_alone(scope, hz);
        if prepared.is_err() {
            BUSY.store(false, Release);
        }
        prepared
    }

    fn prepare_alone(scope: Scope, hz: u32) -> Result<Sampling, ProfileError> {
        let failed = |call| ProfileError::Timer { call, source: io::Error::last_os_error() };
        let clock = match scope {
            Scope::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
            Scope::Process => libc::CLOCK_PROCESS_CPUTIME_ID,
        };
        // Written, so that the handler meets no fresh page.
        let places = vec![[1u64, 1]; SAMPLES_MAX].into_boxed_slice();
        // SAFETY: plain data, for which zero is valid; the fields that matter are set before use. The handler
        // is an extern "C" function of the three arguments that SA_SIGINFO promises. Everything written lives
        // across the calls.
        unsafe {
            let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
            event.sigev_signo = libc::SIGPROF;
            event.sigev_notify = match scope {
                Scope::Thread => libc::SIGEV_THREAD_ID,
                Scope::Process => libc::SIGEV_SIGNAL,
            };
            event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
            let mut timer: libc::timer_t = null_mut();
            if libc::timer_create(clock, &raw mut event, &raw mut timer) != 0 {
                return Err(failed("timer_create"));
            }
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = sample;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            let mut before: libc::sigaction = MaybeUninit::zeroed().assume_init();
            if libc::sigaction(libc::SIGPROF, &raw const action, &raw mut before) != 0 {
                let error = failed("sigaction");
                libc::timer_delete(timer);
                return Err(error);
            }
            let mut only: libc::sigset_t = MaybeUninit::zeroed().assume_init();
            let mut mask_before = only;
            libc::sigemptyset(&raw mut only);
            libc::sigaddset(&raw mut only, libc::SIGPROF);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, &raw mut mask_before);
            let period_ns = 1_000_000_000 / i64::from(hz);
            Ok(Sampling { places, timer, period_ns, before, mask_before })
        }
    }

    pub(super) fn start(&mut self) -> Result<(), ProfileError> {
        NEXT.store(0, Relaxed);
        PLACES.store(self.places.as_mut_ptr(), Release);
        self.arm(self.period_ns).map_err(|source| ProfileError::Timer { call: "timer_settime", source })
    }

    pub(super) fn stop(mut self) -> Taken {
        self.end();
        let next = NEXT.load(Acquire);
        let kept = next.min(SAMPLES_MAX);
        let sample = |&[address, weight]: &[u64; 2]| Sample { address, in_kernel: false, weight };
        Taken { samples: self.places[..kept].iter().map(sample).collect(), lost: (next - kept) as u64 }
    }

    /// Expires every `period_ns` from now on; never, if 0.
    fn arm(&self, period_ns: i64) -> io::Result<()> {
        let time = libc::timespec { tv_sec: period_ns / 1_000_000_000, tv_nsec: period_ns % 1_000_000_000 };
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: a timer of this process; the setting is only read.
        let armed = unsafe { libc::timer_settime(self.timer, 0, &raw const setting, null_mut()) };
        if armed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn end(&mut self) {
        // A timer that cannot be disarmed is deleted all the same.
        let _ = self.arm(0);
        // SAFETY: ignoring the signal throws away a pending one; then everything is as it was found.
        unsafe {
            libc::signal(libc::SIGPROF, libc::SIG_IGN);
            libc::sigaction(libc::SIGPROF, &raw const self.before, null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask_before, null_mut());
        }
        PLACES.store(null_mut(), SeqCst);
        // A handler on another thread may have found the places just before: it is through in some
        // instructions.
        while IN_FLIGHT.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end();
        // SAFETY: the timer was made by us and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
        BUSY.store(false, Release);
    }
}

/// Notes where the signal interrupted. Async-signal-safe: atomics and memory that is there.
extern "C" fn sample(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    IN_FLIGHT.fetch_add(1, SeqCst);
    let places = PLACES.load(SeqCst);
    if !places.is_null() {
        let index = NEXT.fetch_add(1, AcqRel);
        if index < SAMPLES_MAX {
            // SAFETY: the kernel hands over both; the place is within the allocation, which is not freed
            // while anybody is in flight, and nobody else's.
            unsafe {
                let overrun = overruns(info);
                places.add(index).write([address(context), 1 + overrun]);
            }
        }
    }
    IN_FLIGHT.fetch_sub(1, SeqCst);
}

/// Expirations of the timer that were not told one by one.
///
/// # Safety
/// `info` is what a handler of a timer's signal was given.
unsafe fn overruns(info: *mut libc::siginfo_t) -> u64 {
    /// The part of the structure that a timer's signal fills.
    #[repr(C)]
    struct Timer {
        head: [libc::c_int; 3],
        _pad: libc::c_int,
        timer: libc::c_int,
        overrun: libc::c_int,
    }
    // SAFETY: the caller vouches; the structure is larger than this part of it.
    let timer = unsafe { &*info.cast::<Timer>() };
    u64::try_from(timer.overrun).unwrap_or(0)
}

/// The instruction that was interrupted.
///
/// # Safety
/// `context` is what a signal's handler was given.
unsafe fn address(context: *mut libc::c_void) -> u64 {
    // SAFETY: the caller vouches.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    return context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    #[cfg(target_arch = "aarch64")]
    return context.uc_mcontext.pc;
}
