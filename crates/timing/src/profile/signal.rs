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

/// The most samples: enough for a quarter of an hour at a tick of one millisecond.
const SAMPLES_MAX: usize = 1 << 20;

static BUSY: AtomicBool = AtomicBool::new(false);
/// Pairs of address and weight; null while no sampling runs.
static PLACES: AtomicPtr<[u64; 2]> = AtomicPtr::new(null_mut());
/// The number of pairs handed out, also beyond the last.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// The number of handlers that are running.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

pub(super) struct Sampling {
    places: Box<[[u64; 2]]>,
    timer: libc::timer_t,
    period_ns: i64,
    before: libc::sigaction,
    mask_before: libc::sigset_t,
}

impl Sampling {
    /// Prepares everything; sampling does not start yet.
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
        // The pages are written, so that the handler causes no page faults.
        let places = vec![[1u64, 1]; SAMPLES_MAX].into_boxed_slice();
        // SAFETY: all structures are plain data, for which zero is valid, and their used fields are set
        // before use. The handler is an extern "C" function with the three arguments of SA_SIGINFO. All
        // pointers are to locals or fields that outlive the calls.
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

    /// Makes the timer expire every `period_ns` from now on; never, if 0.
    fn arm(&self, period_ns: i64) -> io::Result<()> {
        let time = libc::timespec { tv_sec: period_ns / 1_000_000_000, tv_nsec: period_ns % 1_000_000_000 };
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: `self.timer` is a live timer of this process, and the call only reads `setting`, a local.
        let armed = unsafe { libc::timer_settime(self.timer, 0, &raw const setting, null_mut()) };
        if armed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn end(&mut self) {
        // If disarming fails, the timer is still deleted.
        let _ = self.arm(0);
        // SAFETY: SIG_IGN discards a pending signal; `before` and `mask_before` were filled by the kernel in
        // `prepare`.
        unsafe {
            libc::signal(libc::SIGPROF, libc::SIG_IGN);
            libc::sigaction(libc::SIGPROF, &raw const self.before, null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask_before, null_mut());
        }
        PLACES.store(null_mut(), SeqCst);
        // A handler on another thread may have loaded the pointer just before; it ends after a few
        // instructions.
        while IN_FLIGHT.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end();
        // SAFETY: `self.timer` was created in `prepare`, and only this `drop` deletes it.
        unsafe { libc::timer_delete(self.timer) };
        BUSY.store(false, Release);
    }
}

/// Stores the interrupted address. Async-signal-safe: uses only atomics and memory that is already there.
extern "C" fn sample(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    IN_FLIGHT.fetch_add(1, SeqCst);
    let places = PLACES.load(SeqCst);
    if !places.is_null() {
        let index = NEXT.fetch_add(1, AcqRel);
        if index < SAMPLES_MAX {
            // SAFETY: the kernel passes `info` and `context` to a handler with SA_SIGINFO. `index` is below
            // SAMPLES_MAX and unique, and the places are freed only after `end` has waited for IN_FLIGHT 0.
            unsafe {
                let overrun = overruns(info);
                places.add(index).write([address(context), 1 + overrun]);
            }
        }
    }
    IN_FLIGHT.fetch_sub(1, SeqCst);
}

/// The expirations of the timer that were not signalled separately.
///
/// # Safety
/// `info` is the argument of a handler of a timer's signal.
unsafe fn overruns(info: *mut libc::siginfo_t) -> u64 {
    /// The part of the structure that a timer's signal fills.
    #[repr(C)]
    struct Timer {
        head: [libc::c_int; 3],
        _pad: libc::c_int,
        timer: libc::c_int,
        overrun: libc::c_int,
    }
    // SAFETY: by `# Safety`, `info` points to a siginfo_t, which is larger than `Timer` and begins with its
    // fields.
    let timer = unsafe { &*info.cast::<Timer>() };
    u64::try_from(timer.overrun).unwrap_or(0)
}

/// The instruction that was interrupted.
///
/// # Safety
/// `context` is the argument of a signal handler.
unsafe fn address(context: *mut libc::c_void) -> u64 {
    // SAFETY: by `# Safety`, the kernel passed `context` to a handler, so it points to a ucontext_t.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    return context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    #[cfg(target_arch = "aarch64")]
    return context.uc_mcontext.pc;
}
