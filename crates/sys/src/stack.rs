//! The stack a thread is on: its alternate one for signals, and how far down another can be read.

use crate::PAGE;
use core::ops::Range;

/// Pages that one call of [`readable_from`] asks about.
const PAGES_AT_ONCE: usize = 32;

/// Bytes that the kernel keeps free of other mappings for the main thread's stack: the usual limit on stacks
/// (`mmap_base` in `arch/x86/mm/mmap.c`; where addresses are not random, 128 MiB).
const MAIN_GAP: usize = 8 << 20;

/// The calling thread's alternate stack for signals, if it is on it.
pub fn alternate() -> Option<Range<usize>> {
    let mut stack = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: nothing is set; the kernel writes the structure, which lives here.
    unsafe { crate::raw::syscall(libc::SYS_sigaltstack, [0, &raw mut stack as usize, 0, 0, 0, 0]) }.ok()?;
    let start = stack.ss_sp as usize;
    (stack.ss_flags & libc::SS_ONSTACK != 0).then(|| start..start + stack.ss_size)
}

/// Where the main thread's stack ends, if `sp` is on it and at most `MAIN_GAP` bytes below: everything
/// between the two can be read. The kernel puts the program's path at the end. A deeper stack is `None`.
pub fn main_end(sp: usize) -> Option<usize> {
    // SAFETY: the call reads the vector that the kernel gave the process at its start, which stays.
    let end = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    end.checked_sub(sp).filter(|&above| above < MAIN_GAP).map(|_| end)
}

/// The lowest address, a page's or `low`, from which on everything up to `high` can be read. Where the kernel
/// refuses to say, `low`.
pub fn readable_from(low: usize, high: usize) -> usize {
    let mut from = high;
    while from > low {
        // A byte of each page, going down.
        let last = (from - 1) & !(PAGE - 1);
        let count = ((last - last.min(low & !(PAGE - 1))) / PAGE + 1).min(PAGES_AT_ONCE);
        let Some(read) = readable_pages(count, |page| last - page * PAGE) else { return low };
        if read > 0 {
            from = (last - (read - 1) * PAGE).max(low);
        }
        if read < count {
            break;
        }
    }
    from
}

/// The highest address, a page's or `high`, up to which everything from `low` on can be read. Where the
/// kernel refuses to say, `high`.
pub fn readable_to(low: usize, high: usize) -> usize {
    let mut to = low;
    while to < high {
        // A byte of each page, going up.
        let first = to & !(PAGE - 1);
        let count = (high - first).div_ceil(PAGE).min(PAGES_AT_ONCE);
        let Some(read) = readable_pages(count, |page| first + page * PAGE) else { return high };
        if read > 0 {
            to = (first + read * PAGE).min(high);
        }
        if read < count {
            break;
        }
    }
    to
}

/// How many of `count` pages, the first of them, can be read; `None` where the kernel refuses to say.
fn readable_pages(count: usize, page: impl Fn(usize) -> usize) -> Option<usize> {
    let mut bytes = [0u8; PAGES_AT_ONCE];
    let mut remote = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 1 }; PAGES_AT_ONCE];
    for (index, part) in remote.iter_mut().enumerate().take(count) {
        part.iov_base = page(index) as *mut _;
    }
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let own = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let block = [own, &raw const local as usize, 1, remote.as_ptr() as usize, count, 0];
    // SAFETY: the kernel writes at most the length of `bytes` through `local`, and fails where it cannot
    // read.
    match unsafe { crate::raw::syscall(libc::SYS_process_vm_readv, block) } {
        Ok(read) => Some(read),
        Err(rustix::io::Errno::FAULT) => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;

    #[test]
    fn only_the_main_stack_has_its_end() {
        let line = std::fs::read_to_string("/proc/self/stat").unwrap();
        // Field 28, `startstack`: on the main thread's stack, as this test is not.
        let start = line.rsplit(')').next().unwrap().split_whitespace().nth(25).unwrap().parse().unwrap();
        let end = main_end(start).expect("the main stack");
        assert_eq!(readable_to(start, end), end);
        assert_eq!((main_end((&raw const line) as usize), main_end(end + 1)), (None, None));
    }

    #[test]
    fn what_can_be_read_ends_at_what_cannot() {
        const PAGES: usize = 100;
        for readable in [0, 1, 31, 32, 33, 64, 99, 100] {
            let private = rustix::mm::MapFlags::PRIVATE;
            // SAFETY: the kernel chooses the place, so nothing is replaced.
            let start = unsafe {
                rustix::mm::mmap_anonymous(
                    core::ptr::null_mut(),
                    PAGES * PAGE,
                    rustix::mm::ProtFlags::empty(),
                    private,
                )
            };
            let start = start.expect("address space") as usize;
            let (high, first) = (start + PAGES * PAGE, start + (PAGES - readable) * PAGE);
            if readable > 0 {
                // SAFETY: the range was reserved a moment ago.
                unsafe { map::make_writable(first, readable * PAGE) }.expect("pages");
            }
            assert_eq!(readable_from(start, high), first, "{readable} pages");
            // From within a page, and within what can be read.
            let within = first + if readable > 0 { PAGE / 2 } else { 0 };
            assert_eq!(readable_from(within, high), within, "{readable} pages");
            // Going up: beyond the last of the range nobody knows what there is.
            assert_eq!(readable_to(within, high), if readable > 0 { high } else { within });
            assert_eq!(readable_to(start, high), if readable == PAGES { high } else { start });
            // SAFETY: all of the range reserved above; nothing lies in it.
            unsafe { map::make_inaccessible(start, PAGES * PAGE) }.expect("pages");
            // SAFETY: as above.
            unsafe { map::make_writable(start, readable.max(1) * PAGE) }.expect("pages");
            assert_eq!(readable_to(start + 5, high), start + readable.max(1) * PAGE, "{readable} pages");
            // SAFETY: the range reserved above; nothing in it is used any more.
            unsafe { map::release(start, PAGES * PAGE) }.expect("release");
        }
    }
}
