//! The C library's functions that hand the kernel small things by their address, seen on their way when big
//! blocks are guarded.
//!
//! One line a shape (`shadow`), with all functions whose arguments are of it, and all system calls (for
//! `by_number`). Functions that move more data than should be copied at once, or in other forms, are in
//! `transfers`. Those that only touch memory in user mode need not be here, nor those that hand the kernel
//! copies of their own (`sigaction`, `tcgetattr`, `statvfs` but for its path).
//!
//! A function for which glibc has two versions of different meaning is here the newer one for all programs;
//! on this architecture the older ones ended with glibc 2.3 (`realpath`, `sched_getaffinity`, `timer_create`)
//! and 2.15 (`posix_spawn`).

use crate::arch::numbers;
use crate::jump::{find, jump};
use crate::shadow::Kind::{
    Bits, Filled, In, InBy, Letter, LetterBox, Name, Near, NearText, Out, OutBy, Path, PerPage, Plain, Sized,
    Strings, Text,
};
use crate::shadow::{Call, INT, Shape, run, shape};
use crate::transfers;
use core::ffi::{CStr, c_long};

const fn name(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes) {
        Ok(name) => name,
        Err(_) => panic!("a name with a zero byte"),
    }
}

macro_rules! calls {
    ($($shape:tt $how:ident: $($name:ident)* | $($number:ident)*;)*) => {
        mod found {
            use core::ffi::c_void;
            use core::sync::atomic::AtomicPtr;
            $($(
                #[allow(non_upper_case_globals, reason = "named after its function")]
                pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            )*)*
        }
        mod look_up {
            use super::*;
            $($(
                pub(super) extern "C" fn $name() -> *const core::ffi::c_void {
                    find(const { name(concat!(stringify!($name), "\0").as_bytes()) }, &found::$name)
                }
            )*)*
        }
        mod guarded {
            use super::*;
            $($(
                pub(super) unsafe extern "C" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> usize {
                    // SAFETY: the program's own call, with its own arguments; what it did not pass is in no
                    // shape.
                    unsafe { run(Call::$how(look_up::$name()), &const { shape($shape) }, [a, b, c, d, e, f]) }
                }
            )*)*
        }
        $($( jump!($name, guarded::$name, found::$name, look_up::$name); )*)*

        /// The system calls whose arguments are known.
        static NUMBERS: &[(c_long, Shape)] = &[$($((numbers::$number, shape($shape)),)*)*];
    };
}

/// Bytes of what is said of a file, and of what happened to a descriptor: machines differ.
const STAT: u16 = size_of::<libc::stat>() as u16;
const EVENT: u16 = size_of::<libc::epoll_event>() as u16;

calls! {
    // Paths and other texts.
    [Text] Function: open open64 creat creat64 __open_2 __open64_2 access eaccess euidaccess chdir chmod lchmod chown lchown chroot rmdir unlink remove mkdir
        mknod mkfifo truncate truncate64 umount umount2 acct swapon swapoff memfd_create mq_unlink opendir pathconf statvfs statvfs64 canonicalize_file_name system
        | SYS_open SYS_creat SYS_access SYS_chdir SYS_chmod SYS_chown SYS_lchown SYS_chroot SYS_rmdir SYS_unlink SYS_mkdir SYS_mknod SYS_truncate SYS_umount2 SYS_acct
        SYS_swapon SYS_swapoff SYS_memfd_create SYS_mq_unlink;
    [Plain, Text] Function: openat openat64 __openat_2 __openat64_2 faccessat fchmodat fchownat mkdirat mknodat mkfifoat unlinkat inotify_add_watch fremovexattr
        | SYS_openat SYS_faccessat SYS_faccessat2 SYS_fchmodat SYS_fchownat SYS_mkdirat SYS_mknodat SYS_unlinkat SYS_inotify_add_watch SYS_fremovexattr;
    [Text, Text] Function: link rename symlink removexattr lremovexattr popen fopen fopen64 freopen freopen64
        | SYS_link SYS_rename SYS_symlink SYS_removexattr SYS_lremovexattr SYS_pivot_root;
    [Plain, Text, Plain, Text] Function: linkat renameat renameat2 | SYS_linkat SYS_renameat SYS_renameat2;
    [Text, Plain, Text] Function: symlinkat | SYS_symlinkat;
    [Text, Text, Text, Plain, Near] Function: mount | SYS_mount;
    [Plain, Plain, Plain, Plain, Text] Function: fanotify_mark | SYS_fanotify_mark;
    [Plain, Text, InBy(3, 1)] Function: | SYS_openat2;
    [InBy(1, 1)] Function: sethostname setdomainname | SYS_sethostname SYS_setdomainname;
    [Text, Filled(2, 1)] Function: readlink __readlink_chk listxattr llistxattr | SYS_readlink SYS_listxattr SYS_llistxattr;
    [Plain, Text, Filled(3, 1)] Function: readlinkat __readlinkat_chk fgetxattr | SYS_readlinkat SYS_fgetxattr;
    [Name(1)] Function: getcwd __getcwd_chk | ;
    [Filled(1, 1)] Function: | SYS_getcwd;
    [Text, Path] Function: realpath __realpath_chk | ;
    [Text, Text, InBy(3, 1)] Function: setxattr lsetxattr | SYS_setxattr SYS_lsetxattr;
    [Plain, Text, InBy(3, 1)] Function: fsetxattr | SYS_fsetxattr;
    [Text, Text, Filled(3, 1)] Function: getxattr lgetxattr | SYS_getxattr SYS_lgetxattr;

    // Files.
    [Text, Out(STAT)] Function: stat stat64 lstat lstat64 | SYS_stat SYS_lstat;
    [Plain, Out(STAT)] Function: fstat fstat64 | SYS_fstat;
    [Plain, Out(144)] Function: getrusage | SYS_getrusage;
    [Plain, Text, Out(STAT)] Function: fstatat fstatat64 __xstat __xstat64 __lxstat __lxstat64 | SYS_newfstatat;
    [Plain, Plain, Out(STAT)] Function: __fxstat __fxstat64 | ;
    [Plain, Plain, Text, Out(STAT)] Function: __fxstatat __fxstatat64 | ;
    [Plain, Text, Plain, Plain, Out(256)] Function: statx | SYS_statx;
    [Text, Out(120)] Function: statfs statfs64 | SYS_statfs;
    [Plain, Out(120)] Function: fstatfs fstatfs64 | SYS_fstatfs;
    [Text, In(16)] Function: utime | SYS_utime;
    [Text, In(32)] Function: utimes lutimes | SYS_utimes;
    [Plain, In(32)] Function: futimens futimes | ;
    [Plain, Text, In(32)] Function: utimensat futimesat | SYS_utimensat SYS_futimesat;
    [Plain, Filled(2, 1)] Function: getdents64 flistxattr | SYS_getdents SYS_getdents64 SYS_flistxattr SYS_syslog;
    [Plain, OutBy(2, 1)] Function: ttyname_r | ;
    [Plain, Plain, Near] Function: fcntl fcntl64 | SYS_ioctl SYS_fcntl;
    [Plain, Plain, Out(8)] Function: sendfile sendfile64 | SYS_sendfile;
    [Plain, Out(8), Plain, Out(8)] Function: splice copy_file_range | SYS_splice SYS_copy_file_range;
    [Plain, Text, Near, Out(4)] Function: name_to_handle_at | SYS_name_to_handle_at;
    [Plain, Near] Function: open_by_handle_at | SYS_open_by_handle_at;
    [Plain, Plain, PerPage(1)] Function: mincore | SYS_mincore;

    // Waiting for descriptors.
    [Out(8)] Function: pipe pipe2 eventfd_write | SYS_pipe SYS_pipe2 SYS_time;
    [Plain, Out(8)] Function: eventfd_read | ;
    [OutBy(1, 8)] Function: poll __poll_chk | SYS_poll;
    [OutBy(1, 8), Plain, In(16), In(128)] Function: ppoll __ppoll_chk | ;
    [OutBy(1, 8), Plain, Out(16), In(8)] Function: | SYS_ppoll;
    [Plain, Bits, Bits, Bits, Out(16)] Function: select | SYS_select;
    [Plain, Bits, Bits, Bits, In(16), In(128)] Function: pselect | ;
    [Plain, Bits, Bits, Bits, Out(16), Near] Function: | SYS_pselect6;
    [Plain, Plain, Plain, In(EVENT)] Function: epoll_ctl | SYS_epoll_ctl;
    [Plain, Filled(INT + 2, EVENT)] Function: epoll_wait | SYS_epoll_wait;
    [Plain, Filled(INT + 2, EVENT), Plain, Plain, In(128)] Function: epoll_pwait | ;
    [Plain, Filled(INT + 2, EVENT), Plain, Plain, In(8)] Function: | SYS_epoll_pwait;
    [Plain, Filled(INT + 2, EVENT), Plain, In(16), In(128)] Function: epoll_pwait2 | ;
    [Plain, Filled(INT + 2, EVENT), Plain, In(16), In(8)] Function: | SYS_epoll_pwait2;

    // Sockets.
    [Plain, Plain, Plain, Out(8)] Function: socketpair | SYS_socketpair;
    [Plain, InBy(INT + 2, 1)] Function: bind connect | SYS_bind SYS_connect;
    [Plain, Sized(2), Out(4)] Function: accept accept4 getsockname getpeername | SYS_accept SYS_accept4 SYS_getsockname SYS_getpeername;
    [Plain, Plain, Plain, Sized(4), Out(4)] Function: getsockopt | SYS_getsockopt;
    [Plain, Plain, Plain, InBy(INT + 4, 1)] Function: setsockopt | SYS_setsockopt;

    // Time.
    [Plain, Out(16)] Function: clock_gettime clock_getres sched_rr_get_interval getrlimit getrlimit64
        | SYS_clock_gettime SYS_clock_getres SYS_sched_rr_get_interval SYS_getrlimit;
    [Plain, In(16)] Function: clock_settime | SYS_clock_settime SYS_setrlimit;
    [In(16), Out(16)] Function: nanosleep | SYS_nanosleep;
    [Plain, Plain, In(16), Out(16)] Function: clock_nanosleep | SYS_clock_nanosleep;
    [Out(16), Out(8)] Function: | SYS_gettimeofday;
    [In(16), In(8)] Function: settimeofday | SYS_settimeofday;
    [Plain, Out(32)] Function: getitimer timer_gettime timerfd_gettime | SYS_getitimer SYS_timer_gettime SYS_timerfd_gettime;
    [Plain, In(32), Out(32)] Function: setitimer | SYS_setitimer SYS_rt_sigaction;
    [Plain, Plain, In(32), Out(32)] Function: timer_settime timerfd_settime | SYS_timer_settime SYS_timerfd_settime;
    [Plain, In(64), Out(8)] Function: timer_create | ;
    [Plain, In(64), Out(4)] Function: | SYS_timer_create;
    [Out(208)] Function: adjtimex ntp_adjtime | SYS_adjtimex;
    [Plain, Out(208)] Function: clock_adjtime | SYS_clock_adjtime;
    [Out(32)] Function: times | SYS_times;

    // Processes and what is said of them.
    [Out(4)] Function: wait | ;
    [Plain, Out(4)] Function: waitpid sched_getparam | SYS_sched_getparam;
    [Out(4), Plain, Out(144)] Function: wait3 | ;
    [Plain, Out(4), Plain, Out(144)] Function: wait4 | SYS_wait4;
    [Plain, Plain, Out(128)] Function: waitid | ;
    [Plain, Plain, Out(128), Plain, Out(144)] Function: | SYS_waitid;
    [NearText, Strings, Strings] Function: execve execvpe | SYS_execve;
    [NearText, Strings] Function: execv execvp | ;
    [Plain, Strings, Strings] Function: fexecve | ;
    [Plain, NearText, Strings, Strings] Function: execveat | SYS_execveat;
    [Plain, NearText, Plain, Plain, Strings, Strings] Spawn: posix_spawn posix_spawnp | ;
    [Out(390)] Function: uname | SYS_uname;
    [Out(112)] Function: sysinfo | SYS_sysinfo;
    [Plain, Filled(INT, 4)] Function: getgroups | SYS_getgroups;
    [Plain, InBy(0, 4)] Function: | SYS_setgroups;
    [Out(4), Out(4), Out(4)] Function: getresuid getresgid | SYS_getresuid SYS_getresgid;
    [Out(4), Out(4)] Function: | SYS_getcpu;
    [Out(8), Out(24)] Function: capget | SYS_capget SYS_capset;
    [Plain, Plain, OutBy(1, 1)] Function: sched_getaffinity pthread_getaffinity_np | SYS_sched_getaffinity;
    [Plain, Plain, InBy(1, 1)] Function: sched_setaffinity pthread_setaffinity_np | SYS_sched_setaffinity;
    [Plain, In(4)] Function: sched_setparam | SYS_sched_setparam;
    [Plain, Plain, In(4)] Function: sched_setscheduler | SYS_sched_setscheduler;
    [Plain, OutBy(INT + 2, 1)] Function: | SYS_sched_getattr;
    [Plain, Plain, In(16), Out(16)] Function: | SYS_prlimit64;
    [OutBy(1, 1)] Function: getentropy | ;

    // Signals. The C library's sets are longer than the kernel's.
    [Plain, In(128), Out(128)] Function: sigprocmask pthread_sigmask | ;
    [Plain, In(8), Out(8)] Function: | SYS_rt_sigprocmask;
    [Out(128)] Function: sigpending | ;
    [Out(8)] Function: | SYS_rt_sigpending;
    [In(128)] Function: sigsuspend | ;
    [In(8)] Function: | SYS_rt_sigsuspend;
    [In(128), Out(4)] Function: sigwait | ;
    [In(128), Out(128)] Function: sigwaitinfo | ;
    [In(128), Out(128), In(16)] Function: sigtimedwait | ;
    [In(8), Out(128), In(16)] Function: | SYS_rt_sigtimedwait;
    [Plain, In(128)] Function: signalfd | ;
    [Plain, In(8)] Function: | SYS_signalfd SYS_signalfd4;
    [Plain, Plain, In(128)] Function: | SYS_rt_sigqueueinfo;
    [In(24), Out(24)] Function: | SYS_sigaltstack;

    // Queues and semaphores.
    [Text, Plain, Plain, Near] Function: mq_open | SYS_mq_open;
    [Plain, InBy(2, 1)] Function: mq_send | ;
    [Plain, InBy(2, 1), Plain, Plain, In(16)] Function: mq_timedsend | SYS_mq_timedsend;
    [Plain, Filled(2, 1), Plain, Out(4)] Function: mq_receive | ;
    [Plain, Filled(2, 1), Plain, Out(4), In(16)] Function: mq_timedreceive | SYS_mq_timedreceive;
    [Plain, Out(64)] Function: mq_getattr | ;
    [Plain, In(64), Out(64)] Function: mq_setattr | SYS_mq_getsetattr;
    [Plain, Letter(2)] Function: msgsnd | SYS_msgsnd;
    [Plain, LetterBox(2)] Function: msgrcv | SYS_msgrcv;
    [Plain, Plain, Near] Function: msgctl shmctl | SYS_msgctl SYS_shmctl;
    [Plain, InBy(2, 6)] Function: semop | SYS_semop;
    [Plain, InBy(2, 6), Plain, In(16)] Function: semtimedop | SYS_semtimedop;
    [Plain, Plain, Plain, Near] Function: semctl | SYS_semctl;
}

/// A system call by its number, with arguments that may lie in big blocks. An unknown call has its arguments
/// touched.
///
/// # Safety
/// As for the system call, which returns once and leaves the stack where it is.
pub(crate) unsafe extern "C" fn with_paged(number: usize, args: &[usize; 6]) -> usize {
    // SAFETY: by this function's condition.
    if let Some(result) = unsafe { transfers::by_number(number, args) } {
        return result;
    }
    let known = NUMBERS.iter().find(|(known, _)| *known as usize == number);
    // SAFETY: by this function's condition; whatever the arguments are, those that point into big blocks can
    // be touched.
    unsafe { run(Call::Number(number), known.map_or(&[Near; 6], |(_, shape)| shape), *args) }
}
