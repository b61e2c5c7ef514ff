//! Tests in which each of Vellum's own system calls in turn returns an error.
//!
//! The test program must end normally, or with a failed allocation, or with a message about the reason. It
//! must never crash by an invalid access, find wrong contents in memory, or hang.
//!
//! The program runs under a filter (`SECCOMP_RET_USER_NOTIF`) that reports every call of one kind to this
//! process. Only calls made from code of `libvellum.so` are counted. The `k`-th is refused, all others
//! continue. No privilege is needed. `VELLUM_INJECT_CALLS` sets how many calls of each kind are refused in
//! turn (by default a few); `VELLUM_INJECT_KIND` names the only kind to try.

use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use vellum_conformance::{compiled, library, settle, skip};

/// The longest time of a run: a hang is a failure.
const DEADLINE: Duration = Duration::from_secs(60);
/// The longest wait for the next call before the child is checked.
const LOOK_MS: i32 = 20;
/// Numbers of the refused calls of each kind, by default: the first ones, which start things, and some later
/// ones.
const USUAL: [u32; 6] = [1, 2, 3, 5, 9, 17];

const NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const NOTIF_SEND: libc::c_ulong = 0xc018_2101;
const FLAG_CONTINUE: u32 = 1;
const FILTER_NEW_LISTENER: libc::c_ulong = 1 << 3;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const RET_ALLOW: u32 = 0x7fff_0000;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Asked {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    arch: u32,
    instruction: u64,
    args: [u64; 6],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Asked>() == 80 && size_of::<Answer>() == 24);

/// Installs a filter that reports each call `number` through the returned descriptor. Makes system calls
/// only, since it runs in a forked child.
fn install(number: libc::c_long) -> std::io::Result<OwnedFd> {
    let code = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        code(0x20, 0, 0, 0),
        code(0x15, 0, 1, number as u32),
        code(0x06, 0, 0, RET_USER_NOTIF),
        code(0x06, 0, 0, RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter lives for the call, and the kernel copies it.
    let file = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            FILTER_NEW_LISTENER,
            &raw const program,
        )
    };
    if file < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made by the kernel and is owned by no other value.
    Ok(unsafe { OwnedFd::from_raw_fd(file as i32) })
}

/// A message of one byte, with space for a descriptor.
struct Parcel {
    control: [u64; 4],
    byte: u8,
}

impl Parcel {
    fn with<T>(&mut self, act: impl FnOnce(&mut libc::msghdr) -> T) -> T {
        let mut part = libc::iovec { iov_base: (&raw mut self.byte).cast(), iov_len: 1 };
        // SAFETY: all-zero bytes are a valid, empty `msghdr`.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = self.control.as_mut_ptr().cast();
        // SAFETY: `CMSG_SPACE` only computes a size.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as usize;
        act(&mut message)
    }
}

fn send(socket: i32, file: &OwnedFd) -> std::io::Result<()> {
    let sent = Parcel { control: [0; 4], byte: 1 }.with(|message| {
        // SAFETY: the control block has space for a header and a descriptor, so `CMSG_FIRSTHDR` is not null.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(file.as_raw_fd());
            libc::sendmsg(socket, message, 0)
        }
    });
    if sent == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn receive(socket: i32) -> Option<OwnedFd> {
    Parcel { control: [0; 4], byte: 0 }.with(|message| {
        // SAFETY: the control block has space for a header and a descriptor; a received descriptor is owned
        // by no other value.
        unsafe {
            if libc::recvmsg(socket, message, libc::MSG_DONTWAIT) != 1 {
                return None;
            }
            let header = libc::CMSG_FIRSTHDR(message);
            (!header.is_null())
                .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned()))
        }
    })
}

/// The address range of the library's code in process `pid`, once it is mapped.
fn code_of(pid: u32) -> Option<std::ops::Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let line = maps.lines().find(|line| line.contains("libvellum.so") && line.contains("r-xp"))?;
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    Some(u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?)
}

struct Run {
    status: Option<ExitStatus>,
    said: String,
    /// Number of calls that the library made, and whether one was refused.
    calls: u32,
    refused: bool,
}

/// Runs `command`; its `which`-th call `number` from the library returns `errno`. `None` if the kernel has no
/// such filter.
fn run(mut command: Command, number: libc::c_long, which: u32, errno: i32) -> Option<Run> {
    let mut pair = [0; 2];
    // SAFETY: the kernel writes two descriptors into the local array.
    if unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, pair.as_mut_ptr())
    } != 0
    {
        return None;
    }
    // SAFETY: both descriptors were just made and are owned by no other value.
    let pair = pair.map(|file| unsafe { OwnedFd::from_raw_fd(file) });
    let socket = pair[1].as_raw_fd();
    let output = tempfile::tempfile().expect("a file for the output");
    settle(&mut command);
    command.stdin(Stdio::null()).process_group(0).env("LD_PRELOAD", library());
    command
        .stdout(output.try_clone().expect("a descriptor"))
        .stderr(output.try_clone().expect("a descriptor"));
    let begin = move || {
        let listener = install(number)?;
        let sent = send(socket, &listener);
        // `exec` closes the listener. It must stay open until then; calls before `exec` would get no answer,
        // since this process waits for the child.
        std::mem::forget(listener);
        sent
    };
    // SAFETY: `begin` makes only system calls, which are allowed in a forked child.
    unsafe { command.pre_exec(begin) };
    let mut child = command.spawn().ok()?;
    let listener = receive(pair[0].as_raw_fd())?;
    let mut done = Run { status: None, said: String::new(), calls: 0, refused: false };
    done.status = supervise(&mut child, &listener, which, errno, &mut done);
    let mut text = String::new();
    let mut output = output;
    let _ = std::io::Seek::rewind(&mut output);
    let _ = output.read_to_string(&mut text);
    done.said = text;
    Some(done)
}

/// Answers calls until the child ends, or its time is over.
fn supervise(
    child: &mut Child,
    listener: &OwnedFd,
    which: u32,
    errno: i32,
    done: &mut Run,
) -> Option<ExitStatus> {
    let began = Instant::now();
    let mut code = None;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if began.elapsed() > DEADLINE {
            // SAFETY: the group is the child's own, and the child has not been waited for.
            unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
            let _ = child.wait();
            return None;
        }
        let mut ready = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` gets one valid entry.
        if unsafe { libc::poll(&raw mut ready, 1, LOOK_MS) } <= 0 || ready.revents & libc::POLLIN == 0 {
            if ready.revents != 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            continue;
        }
        let mut asked = Asked::default();
        // SAFETY: the kernel writes one structure of this size into a local variable.
        if unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_RECV, &raw mut asked) } != 0 {
            continue;
        }
        if code.is_none() {
            code = code_of(asked.pid);
        }
        let mut answer = Answer { id: asked.id, flags: FLAG_CONTINUE, ..Answer::default() };
        if code.as_ref().is_some_and(|code| code.contains(&asked.instruction)) {
            done.calls += 1;
            if done.calls == which {
                answer = Answer { id: asked.id, error: -errno, ..Answer::default() };
                done.refused = true;
            }
        }
        // SAFETY: the kernel reads one structure of this size. An error means that the calling thread has
        // ended.
        unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, &raw mut answer) };
    }
}

fn fault(run: &Run) -> Option<String> {
    let Some(status) = run.status else { return Some("hangs".into()) };
    let is_right = status.success() && run.said.ends_with("done\n");
    let is_stated =
        (status.signal() == Some(libc::SIGABRT) || status.code() == Some(5)) && run.said.contains("vellum:");
    // A forked child that cannot open its copy of the store ends, which the message announces.
    let is_childs = status.code() == Some(6) && run.said.contains("the child gets no paged memory");
    (!is_right && !is_stated && !is_childs).then(|| format!("{status}: {}", run.said))
}

const KINDS: &[(&str, libc::c_long)] = &[
    ("mmap", libc::SYS_mmap),
    ("munmap", libc::SYS_munmap),
    ("mremap", libc::SYS_mremap),
    ("mprotect", libc::SYS_mprotect),
    ("madvise", libc::SYS_madvise),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("ioctl", libc::SYS_ioctl),
    ("clone", libc::SYS_clone),
    ("futex", libc::SYS_futex),
    ("open", libc::SYS_open),
    ("openat", libc::SYS_openat),
    ("read", libc::SYS_read),
    ("close", libc::SYS_close),
    ("fallocate", libc::SYS_fallocate),
    ("fadvise64", libc::SYS_fadvise64),
    ("sync_file_range", libc::SYS_sync_file_range),
    // The number of `cachestat`, the same on every architecture.
    ("cachestat", 451),
    ("getrandom", libc::SYS_getrandom),
    ("mincore", libc::SYS_mincore),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("membarrier", libc::SYS_membarrier),
    ("poll", libc::SYS_poll),
    ("ppoll", libc::SYS_ppoll),
    ("pipe2", libc::SYS_pipe2),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
];

const ERRNOS: [i32; 5] = [libc::ENOMEM, libc::EPERM, libc::EINVAL, libc::EINTR, libc::EAGAIN];

/// Refuses calls of every kind, with one error after the other.
fn refuse_each(environment: &[(&str, &str)]) {
    let program = compiled("injected.c", &["-pthread"]);
    let all = std::env::var("VELLUM_INJECT_CALLS").ok().and_then(|count| count.parse::<u32>().ok());
    let which: Vec<u32> = all.map_or(USUAL.to_vec(), |count| (1..=count).collect());
    let mut faults = Vec::new();
    let only = std::env::var("VELLUM_INJECT_KIND").ok();
    for &(name, number) in KINDS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let mut refused = 0;
        for (index, errno) in ERRNOS.into_iter().enumerate() {
            for (at, &call) in which.iter().enumerate() {
                // By default each call gets only some of the errors, by turns.
                if all.is_none() && at > 1 && (at + index) % ERRNOS.len() != 0 {
                    continue;
                }
                let mut command = Command::new(&program);
                command.envs(environment.iter().copied());
                let Some(run) = run(command, number, call, errno) else {
                    return skip("no filter can be set here that asks a supervisor");
                };
                if let Some(fault) = fault(&run) {
                    eprintln!("{name} {call}, errno {errno}: {fault}");
                    faults.push(format!("{name} {call}, errno {errno}: {fault}"));
                }
                refused += u32::from(run.refused);
                if !run.refused {
                    break;
                }
            }
        }
        eprintln!("{name}: {refused} refused");
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn programs_survive_refused_system_calls() {
    refuse_each(&[]);
}

#[test]
fn paged_programs_survive_refused_system_calls() {
    refuse_each(&[("VELLUM_FRAMES", "1M")]);
}
