//! System calls that give memory a lasting state: registrations, policies, seals, names, and devices'
//! references to its page frames.
//!
//! In the kernel such a state ends when the memory is unmapped. Vellum reuses freed memory without unmapping
//! it, so the state would reach the next owner. Memory with a state is therefore *tainted*: Vellum maps it
//! again before reuse, which ends the state. A sealed mapping is never reused.
//!
//! | call | seen (by name: the C library's function; by number: `syscall`) | effect on the memory |
//! | --- | --- | --- |
//! | `userfaultfd` | by number | Vellum serves no more mappings: their pages must be missing until they are touched |
//! | `ioctl`: `UFFDIO_REGISTER`, KVM's and VFIO's memory | by name, by number | tainted; zero pages in a registered range become missing again |
//! | `vmsplice` | by name, by number | tainted |
//! | `mbind`, `io_uring_register` of buffers | by number | tainted |
//! | `prctl(PR_SET_VMA)` | by name, by number | tainted |
//! | `mseal` | by number | never reused |

use crate::identity::{find, kernel};
use core::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::ptr::{null_mut, with_exposed_provenance};
use core::sync::atomic::AtomicPtr;
use libc::{iovec, ssize_t};
use vellum_malloc::mmap as served;
use vellum_sys::{Addr, Caps, Span, caps, map};

/// `<linux/userfaultfd.h>`: a range's start and length, and the modes.
const UFFDIO_REGISTER: u32 = 0xc020_aa00;
const REGISTER_MODE_MISSING: usize = 1;
/// `<linux/kvm.h>`: slot and flags in one word, the guest's address, the length, the process's address.
const KVM_SET_USER_MEMORY_REGION: u32 = 0x4020_ae46;
const KVM_SET_USER_MEMORY_REGION2: u32 = 0x40a0_ae49;
/// `<linux/vfio.h>`: size and flags in one word, the process's address, the device's, the length.
const VFIO_IOMMU_MAP_DMA: u32 = 0x3b71;
/// `<linux/io_uring.h>`.
const REGISTER_BUFFERS: usize = 0;
/// The kernel refuses more buffers than this.
const BUFFERS_MAX: usize = 1 << 14;

/// True if [`by_number`] handles this system call.
pub(crate) fn concerns(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_ioctl
            | libc::SYS_mbind
            | libc::SYS_vmsplice
            | libc::SYS_userfaultfd
            | libc::SYS_io_uring_register
            | libc::SYS_mseal
    )
}

/// The word at `index` of a structure that the kernel has read.
///
/// # Safety
/// The kernel has read at least that many words of `structure` for the calling thread.
unsafe fn word(structure: usize, index: usize) -> usize {
    // SAFETY: the kernel has just read this word, by the `# Safety` section.
    unsafe { with_exposed_provenance::<usize>(structure).add(index).read_unaligned() }
}

/// The first words of a structure that the kernel is about to read; zeros if they cannot be read. A filtered
/// process must not make one more system call, so the program's pointer is read directly.
fn peek(structure: usize) -> [usize; 3] {
    let mut words = [[0u8; size_of::<usize>()]; 3];
    if caps::has(Caps::HELPER) {
        map::copy_from(vellum_sys::Addr::new(structure), words.as_flattened_mut());
    } else if structure != 0 {
        // SAFETY: the program passes the address of a structure of at least three words.
        words =
            unsafe { with_exposed_provenance::<[[u8; size_of::<usize>()]; 3]>(structure).read_unaligned() };
    }
    words.map(usize::from_ne_bytes)
}

/// Taints the memory that a vector of the program names.
///
/// # Safety
/// The kernel has read the vector for the calling thread.
unsafe fn taint_parts(parts: usize, count: usize) {
    for index in 0..count.min(BUFFERS_MAX) {
        // SAFETY: the kernel has just read this element, by the `# Safety` section.
        let part = unsafe { with_exposed_provenance::<iovec>(parts).add(index).read_unaligned() };
        served::taint(Span::at(part.iov_base, part.iov_len));
    }
}

/// Handles `PR_SET_VMA`: a name (`operation` 0) stays with the address range.
pub(crate) fn named(operation: usize, start: usize, bytes: usize) {
    if operation == libc::PR_SET_VMA_ANON_NAME as usize {
        served::taint(Span::new(Addr::new(start), bytes));
    }
}

/// `ioctl`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: usize) -> c_int {
    // SAFETY: the arguments meet the conditions of the system call, by the `# Safety` section.
    unsafe { by_number(libc::SYS_ioctl, [file as usize, request as usize, argument, 0, 0, 0]) as c_int }
}

/// `vmsplice`, which gives pages to a pipe by reference.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmsplice(file: c_int, parts: *const iovec, count: usize, flags: c_uint) -> ssize_t {
    type Function = unsafe extern "C" fn(c_int, *const iovec, usize, c_uint) -> ssize_t;
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // The C library's function, which is a cancellation point.
    let Some(function) = find(c"vmsplice", &FOUND) else { return -1 };
    // SAFETY: the C library's function of this name has this signature.
    let function = unsafe { transmute::<*const c_void, Function>(function) };
    // SAFETY: the program makes this call; if it succeeded, the kernel has read the vector.
    unsafe {
        let given = function(file, parts, count, flags);
        if given != -1 {
            taint_parts(parts.addr(), count);
        }
        given
    }
}

/// Makes a call of one of these numbers. Memory that it names is read only after the call succeeded: the
/// kernel refuses bad pointers.
///
/// # Safety
/// The conditions of the system call apply.
pub(crate) unsafe fn by_number(number: c_long, args: [usize; 6]) -> isize {
    let [a, b, c, ..] = args;
    let request = b as u32;
    if number == libc::SYS_mseal {
        return served::answer(served::seal(args)).addr() as isize;
    }
    if number == libc::SYS_ioctl && request == UFFDIO_REGISTER {
        let [start, bytes, modes] = peek(c);
        let range = Span::new(Addr::new(start), bytes);
        served::taint(range);
        if modes & REGISTER_MODE_MISSING != 0 {
            // Before the call: after it, the kernel might report each page as removed, and wait for an
            // answer.
            // SAFETY: a program that writes there during this call cannot rely on an order.
            unsafe { served::flush_zeros(range) };
        }
    }
    // SAFETY: the program makes this call with these arguments, by the `# Safety` section.
    let result = unsafe { kernel(number, args) };
    if result == -1 {
        return result;
    }
    // SAFETY: the call succeeded, so the kernel has read the structure or vector that it names.
    unsafe {
        match (number, request) {
            (libc::SYS_ioctl, KVM_SET_USER_MEMORY_REGION | KVM_SET_USER_MEMORY_REGION2) => {
                served::taint(Span::new(Addr::new(word(c, 3)), word(c, 2)));
            }
            (libc::SYS_ioctl, VFIO_IOMMU_MAP_DMA) => {
                served::taint(Span::new(Addr::new(word(c, 1)), word(c, 3)));
            }
            (libc::SYS_mbind, _) => served::taint(Span::new(Addr::new(a), b)),
            (libc::SYS_vmsplice, _) => taint_parts(b, c),
            (libc::SYS_io_uring_register, _) if b == REGISTER_BUFFERS => taint_parts(c, args[3]),
            (libc::SYS_userfaultfd, _) => served::serve_mappings(false),
            _ => {}
        }
    }
    result
}
