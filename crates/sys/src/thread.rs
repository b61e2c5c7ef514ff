//! Starts threads without the C library. The page layer needs one background thread (the *helper*) that
//! returns memory while the program sleeps. Any call of `free` must be able to start it, in any program.
//! `pthread_create` allocates, takes the loader's locks, and ends the C library's single-threaded fast paths
//! for good. This file calls `clone`:
//!
//! * The thread has its own stack and thread control block, and all signals blocked. Its code makes only raw
//!   system calls and touches no thread-local storage.
//! * It ends with its process (`exit_group`, `exec`). A forked child starts another when it needs one.
//! * It has its own empty descriptor table: its files take no numbers of the program's, and it keeps none of
//!   the program's files open.
//!
//! When the program calls `setuid`, the C library changes its own threads, but not these. Their owner ends
//! them before the call ([`crate::lifecycle`]), or makes them repeat it ([`crate::credentials`]).

use crate::{arch, raw};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use rustix::fs::{Mode, OFlags};

/// Bytes of stack and control block a helper takes; the caller provides them.
pub const HELPER_BYTES: usize = 64 << 10;
/// Bytes at the top of that memory for the thread control block and static TLS, zero but for pointers.
const CONTROL_BYTES: usize = 8 << 10;

const FLAGS: libc::c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// Starts `entry` on a new thread, with `argument`. `tid` receives its id, and 0 with a wake at its end.
///
/// # Errors
/// The raw errno with which `clone` refused.
///
/// # Safety
/// `memory` is [`HELPER_BYTES`] of zeroed, writable, page-aligned memory that outlives the thread. `entry`
/// uses no thread-local storage (the C library's `errno` included) and never returns other than by [`exit`].
pub unsafe fn start(
    entry: extern "C" fn(usize) -> !,
    argument: usize,
    memory: *mut u8,
    tid: &'static AtomicU32,
) -> Result<(), rustix::io::Errno> {
    remember(tid);
    // SAFETY: the control block lies within the caller's memory, below its end.
    let control = unsafe { memory.add(HELPER_BYTES - CONTROL_BYTES / 2) }.cast::<usize>();
    // SAFETY: the control block has half of the control area, below its end.
    unsafe { arch::prepare_control(control) };
    // SAFETY: the stack is the memory below the control area, 16-byte aligned.
    let stack = unsafe { memory.add(HELPER_BYTES - CONTROL_BYTES) };
    let all: u64 = !0;
    let mut old: u64 = 0;
    let block = [libc::SIG_SETMASK as usize, &raw const all as usize, &raw mut old as usize, 8, 0, 0];
    // SAFETY: plain rt_sigprocmask with two 8-byte sets that live here. The child inherits the full mask.
    unsafe { raw::syscall(libc::SYS_rt_sigprocmask, block)? };
    let birth = arch::Birth { flags: FLAGS, stack, id: tid.as_ptr(), control, entry, argument };
    // SAFETY: the caller's memory and word outlive the thread.
    let result = unsafe { arch::clone(&birth) };
    let restore = [libc::SIG_SETMASK as usize, &raw const old as usize, 0, 8, 0, 0];
    // The thread is there, if it is, whatever becomes of this: its memory must not be taken away again.
    // SAFETY: as the first call; restores what the caller had.
    let _ = unsafe { raw::syscall(libc::SYS_rt_sigprocmask, restore) };
    if result < 0 {
        return Err(rustix::io::Errno::from_raw_os_error(-result as i32));
    }
    Ok(())
}

/// Words with the ids of helpers: those of the page layer, the pager and the collector's markers, and room
/// for as many again. A helper without a place counts as a thread of the program.
const HELPERS: usize = 128;
static IDS: [AtomicPtr<AtomicU32>; HELPERS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; HELPERS];

/// Has a helper's id be found at `tid`, now and whenever it is started again.
fn remember(tid: &'static AtomicU32) {
    let word = core::ptr::from_ref(tid).cast_mut();
    for place in &IDS {
        let taken = place.compare_exchange(core::ptr::null_mut(), word, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() || taken == Err(word) {
            return;
        }
    }
}

/// The calling thread's id.
pub fn own_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

fn is_a_helper(id: u32) -> bool {
    IDS.iter().any(|place| {
        // SAFETY: null, or a word that lives for ever.
        unsafe { place.load(Ordering::Acquire).as_ref() }.is_some_and(|tid| tid.load(Ordering::Relaxed) == id)
    })
}

/// True if the calling thread is a helper with separate descriptors.
pub fn is_helper() -> bool {
    is_a_helper(own_id())
}

/// True if the process has no thread but the calling one and helpers. False if that cannot be found out.
pub fn is_only_one() -> bool {
    let own = own_id();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(tasks) = rustix::fs::open(c"/proc/self/task", flags, Mode::empty()) else { return false };
    let mut buffer = [MaybeUninit::<u8>::uninit(); 1024];
    let mut entries = rustix::fs::RawDir::new(&tasks, &mut buffer);
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else { return false };
        let id = crate::text::number(entry.file_name().to_bytes());
        if id.is_some_and(|id| id != u64::from(own) && !is_a_helper(id as u32)) {
            return false;
        }
    }
    true
}

/// Empties the calling helper's own descriptor table: the first thing a helper does.
///
/// Messages by [`Line::write`](crate::Line::write) still go to the program's standard error.
pub fn close_inherited() {
    // SAFETY: the table is this thread's alone (`start` does not share it).
    let _ = unsafe { raw::syscall(libc::SYS_close_range, [0, u32::MAX as usize, 0, 0, 0, 0]) };
}

/// The calling thread's thread pointer, beside which the C library keeps its data; 0 if the kernel refuses.
pub fn pointer() -> usize {
    arch::thread_pointer()
}

/// Makes the calling thread prompt: its sleeps end on time, not up to 50 µs later, and the scheduler gives it
/// short slices, so that it runs soon after it wakes on a busy processor (Linux 6.12; refused before, at no
/// harm).
pub fn be_prompt() {
    // SAFETY: PR_SET_TIMERSLACK concerns this thread's timers only.
    let _ = unsafe { raw::syscall(libc::SYS_prctl, [libc::PR_SET_TIMERSLACK as usize, 1, 0, 0, 0, 0]) };
    // struct sched_attr of 48 bytes: size, policy 0, flags, nice and priority 0, then the wanted slice.
    let mut attributes = [0u64; 6];
    attributes[0] = 48;
    attributes[3] = SLICE_NS;
    // SAFETY: the kernel reads 48 bytes; a slice is no privilege.
    let _ = unsafe { raw::syscall(libc::SYS_sched_setattr, [0, attributes.as_ptr() as usize, 0, 0, 0, 0]) };
}

/// Words in a set of 1024 processors.
const SET_WORDS: usize = 16;

/// The number of processors that the calling thread may run on; 1 if the kernel refuses.
pub fn processors() -> u32 {
    let mut allowed = [0u64; SET_WORDS];
    let block = [0, size_of_val(&allowed), allowed.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most the bytes given to the set.
    if unsafe { raw::syscall(libc::SYS_sched_getaffinity, block) }.is_err() {
        return 1;
    }
    allowed.iter().map(|word| word.count_ones()).sum::<u32>().max(1)
}

/// Has the helper `tid` run on the processor where the caller runs. The caller's processor is awake, and its
/// timer interrupts it at once. Another may first have to be woken, and a virtual one to be given back by its
/// host, which takes up to milliseconds. The scheduler has no record that the two belong together.
pub fn bring_here(tid: u32) {
    let mut here = 0u32;
    // SAFETY: the kernel writes the processor's number, and is asked for nothing else.
    if unsafe { raw::syscall(libc::SYS_getcpu, [&raw mut here as usize, 0, 0, 0, 0, 0]) }.is_err() {
        return;
    }
    let mut only = [0u64; SET_WORDS];
    if let Some(word) = only.get_mut(here as usize / 64) {
        *word = 1 << (here % 64);
        run_on(tid, &only);
    }
}

/// Lets a helper that was just brought here begin before the caller goes on.
pub fn yield_now() {
    rustix::thread::sched_yield();
}

/// Lets the calling helper run wherever its process may.
pub fn roam() {
    let pid = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let mut allowed = [0u64; SET_WORDS];
    let block = [pid, size_of_val(&allowed), allowed.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most the bytes given to the set.
    if unsafe { raw::syscall(libc::SYS_sched_getaffinity, block) }.is_ok() {
        run_on(0, &allowed);
    }
}

/// A refusal leaves the thread where it is.
fn run_on(tid: u32, processors: &[u64; SET_WORDS]) {
    let block = [tid as usize, size_of_val(processors), processors.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads the set; where a helper runs is no concern of anybody's memory.
    let _ = unsafe { raw::syscall(libc::SYS_sched_setaffinity, block) };
}

/// The shortest slice the scheduler grants.
const SLICE_NS: u64 = 100_000;

/// Ends the calling helper thread (never a thread of the C library).
pub fn exit() -> ! {
    // SAFETY: `exit` of this thread alone; it holds nothing of the C library's.
    unsafe { arch::exit() }
}

/// The time within which threads that were asked to end must do so.
pub const END_NS: u64 = 10_000_000_000;
/// The time for an ended thread to leave its process: a traced one waits for its tracer.
const LEAVE_NS: u64 = 1_000_000_000;
/// Looks at a thread that is about to leave before the looker sleeps in between.
const POLLS: u32 = 100;
const PAUSE_NS: u64 = 100_000;

/// Waits until the thread that was started with `word`, and whose id is or was `id`, has left its process.
/// False if it did not end within `patience_ns`.
pub fn wait_until_gone(word: &AtomicU32, id: u32, patience_ns: u64) -> bool {
    let began = crate::clock::now_ns();
    loop {
        match word.load(Ordering::Acquire) {
            0 => break,
            _ if crate::clock::now_ns().wrapping_sub(began) > patience_ns => return false,
            alive => wait(word, alive, 1_000_000),
        }
    }
    // The kernel clears the word a little earlier than it removes the thread from the process.
    let began = crate::clock::now_ns();
    let pid = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let mut polls = 0;
    // SAFETY: signal 0 is none; the kernel only says whether there is such a thread.
    while unsafe { raw::syscall(libc::SYS_tgkill, [pid, id as usize, 0, 0, 0, 0]) }.is_ok() {
        polls += 1;
        if polls < POLLS {
            yield_now();
        } else if crate::clock::now_ns().wrapping_sub(began) > LEAVE_NS {
            break;
        } else {
            wait(&AtomicU32::new(0), 0, PAUSE_NS);
        }
    }
    true
}

/// Ends the process as `abort` would, from a thread that the C library did not start.
pub fn abort() -> ! {
    let default = [0usize; 4];
    let action = [libc::SIGABRT as usize, default.as_ptr() as usize, 0, 8, 0, 0];
    // SAFETY: a `sigaction` of zeros is the default action, which ends the process.
    let _ = unsafe { raw::syscall(libc::SYS_rt_sigaction, action) };
    let pid = rustix::process::getpid().as_raw_nonzero().get() as usize;
    // SAFETY: a signal to the own process.
    let _ = unsafe { raw::syscall(libc::SYS_kill, [pid, libc::SIGABRT as usize, 0, 0, 0, 0]) };
    // Another thread takes the signal; only if all of them hold it off is the end a plain one.
    let never = AtomicU32::new(0);
    wait(&never, 0, A_WHILE_NS);
    loop {
        // SAFETY: the end of the process has no conditions.
        let _ = unsafe { raw::syscall(libc::SYS_exit_group, [128 + libc::SIGABRT as usize, 0, 0, 0, 0, 0]) };
    }
}

/// The time that a thread of the program has to take a signal that ends it.
const A_WHILE_NS: u64 = 2_000_000_000;

/// Every signal held off from the calling thread; dropping it lets them through again.
#[derive(Debug)]
pub struct Undisturbed {
    before: u64,
}

impl Undisturbed {
    /// Holds signals off.
    pub fn new() -> Undisturbed {
        let (all, mut before) = (!0u64, 0u64);
        let (new, old) = (&raw const all as usize, &raw mut before as usize);
        // SAFETY: plain rt_sigprocmask with two 8-byte sets that live here.
        let _ = unsafe {
            raw::syscall(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, new, old, 8, 0, 0])
        };
        Undisturbed { before }
    }
}

impl Default for Undisturbed {
    fn default() -> Self {
        Undisturbed::new()
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        let set = &raw const self.before as usize;
        // SAFETY: as in `new`; restores what was.
        let _ =
            unsafe { raw::syscall(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, set, 0, 8, 0, 0]) };
    }
}

/// Sleeps until `word` is changed from `expected` and woken, or `ns` nanoseconds have passed.
pub fn wait(word: &AtomicU32, expected: u32, ns: u64) {
    let limit = rustix::thread::futex::Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    };
    let _ = rustix::thread::futex::wait(word, rustix::thread::futex::Flags::PRIVATE, expected, Some(&limit));
}

/// A bounded wait, of about a second, for an action of another thread that may never come.
///
/// At first the waiter yields, then it sleeps. A preempted thread may need long to get a processor.
#[derive(Debug)]
pub struct Patience(u32);

impl Patience {
    const GIVES_WAY: u32 = 200;
    const SLEEPS: u32 = 5_000;
    const SLEEP_NS: u64 = 200_000;

    /// All of it.
    pub const fn new() -> Patience {
        Patience(Patience::GIVES_WAY + Patience::SLEEPS)
    }

    /// Waits for a moment. False, at once, if there is no patience left.
    pub fn wait(&mut self) -> bool {
        let Some(left) = self.0.checked_sub(1) else { return false };
        self.0 = left;
        if left >= Patience::SLEEPS {
            yield_now();
        } else {
            wait(&AtomicU32::new(0), 0, Patience::SLEEP_NS);
        }
        true
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience::new()
    }
}

/// Wakes up to `most` waiters on `word`. A refused call is repeated: a lost wake would leave them waiting.
pub(crate) fn wake_some(word: &AtomicU32, most: u32) {
    /// A kernel that refuses this often is a filter that always does.
    const TRIES: u32 = 100;
    let refused = || rustix::thread::futex::wake(word, rustix::thread::futex::Flags::PRIVATE, most).is_err();
    let _ = (0..TRIES).take_while(|_| refused()).count();
}

/// Wakes the waiter on `word`, which has just been changed.
pub fn wake_all(word: &AtomicU32) {
    wake_some(word, i32::MAX as u32);
}

/// Changes `word` and wakes the waiter on it.
pub fn wake(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    wake_all(word);
}

#[cfg(test)]
mod tests {
    use super::*;
    /// Zeroed memory for a helper, leaked on purpose: the thread may use it until after its reported end.
    fn memory() -> *mut u8 {
        let layout = std::alloc::Layout::from_size_align(HELPER_BYTES, 4096).expect("a valid layout");
        // SAFETY: the layout is not empty.
        unsafe { std::alloc::alloc_zeroed(layout) }
    }

    static SPEAKER: AtomicU32 = AtomicU32::new(0);

    extern "C" fn speak(_argument: usize) -> ! {
        close_inherited();
        let mut line = crate::Line::new();
        line.text("a helper of ").decimal(u64::from(is_helper())).text("\n").write();
        if let Ok(file) = crate::stderr::reopen() {
            let _ = rustix::io::write(&file, b"anew\n");
        }
        exit()
    }

    /// In separate processes, with a file, a socket (which cannot be reopened) and a pipe as standard error.
    #[test]
    fn a_helper_is_heard() {
        use std::io::Read;
        use std::process::Stdio;
        const SAID: &str = "a helper of 1\n";
        if vellum_skip::role().is_some() {
            assert!(!is_helper());
            // SAFETY: zeroed memory of the right size that is never freed; `speak` touches no TLS.
            unsafe { start(speak, 0, memory(), &SPEAKER) }.expect("clone is allowed in tests");
            while SPEAKER.load(Ordering::Acquire) != 0 {
                std::thread::yield_now();
            }
            return;
        }
        // SAFETY: the name is a C string that lives across the call; the new descriptor has no other owner.
        let mut file: std::fs::File = unsafe {
            std::os::fd::FromRawFd::from_raw_fd(libc::memfd_create(c"heard".as_ptr(), libc::MFD_CLOEXEC))
        };
        let (mut here, there) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let (mut out, into) = std::io::pipe().expect("a pipe");
        let copy = file.try_clone().expect("a descriptor");
        for error in [Stdio::from(copy), Stdio::from(std::os::fd::OwnedFd::from(there)), Stdio::from(into)] {
            let mut run = vellum_skip::again(a_helper_is_heard, "starts one");
            assert!(run.stdout(Stdio::null()).stderr(error).status().expect("this test runs").success());
        }
        let mut heard = [String::new(), String::new(), String::new()];
        std::io::Seek::rewind(&mut file).expect("a file");
        file.read_to_string(&mut heard[0]).expect("text");
        here.read_to_string(&mut heard[1]).expect("text");
        out.read_to_string(&mut heard[2]).expect("text");
        assert!(heard.iter().all(|heard| heard.contains(SAID)), "{heard:?}");
        assert!([0, 2].into_iter().all(|which| heard[which].contains("anew")), "{heard:?}");
    }
}
