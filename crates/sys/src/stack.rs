//! Facts about a thread's stack: whether it is the alternate one for signals, and how far it can be read.

use crate::{Addr, PAGE, Span, map};

/// Pages that one system call of [`readable_from`] covers.
const PAGES_AT_ONCE: usize = 32;

/// Bytes that the kernel keeps free of other mappings for the main thread's stack: the usual limit on stacks
/// (`mmap_base` in `arch/x86/mm/mmap.c`; 128 MiB where addresses are not random).
const MAIN_GAP: usize = 8 << 20;

/// The calling thread's alternate stack for signals, if it is on it.
pub fn alternate() -> Option<Span> {
    let mut stack = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: nothing is set; the kernel writes the structure, which lives here.
    unsafe { crate::raw::syscall(libc::SYS_sigaltstack, [0, &raw mut stack as usize, 0, 0, 0, 0]) }.ok()?;
    (stack.ss_flags & libc::SS_ONSTACK != 0).then(|| Span::new(Addr::of(stack.ss_sp), stack.ss_size))
}

/// The end of the main thread's stack, if `sp` is on it and at most `MAIN_GAP` bytes below: all memory
/// between the two can be read. The kernel puts the program's path at the end. A deeper stack is `None`.
pub fn main_end(sp: Addr) -> Option<Addr> {
    // SAFETY: the call reads the vector that the kernel gave the process at its start, which stays.
    let end = Addr::new(unsafe { libc::getauxval(libc::AT_EXECFN) } as usize);
    (end.since(sp) < MAIN_GAP).then_some(end)
}

/// The lowest address, a page's or the start of `span`, from which on everything up to the end of `span` can
/// be read. Returns the start if the kernel refuses the call.
pub fn readable_from(span: Span) -> Addr {
    let (low, mut from) = (span.start, span.end());
    while from > low {
        // A byte of each page, going down.
        let last = (from - 1).round_down(PAGE);
        let count = ((last - low.round_down(PAGE)) / PAGE + 1).min(PAGES_AT_ONCE);
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

/// The highest address, a page's or the end of `span`, up to which everything from the start of `span` on can
/// be read. Returns the end if the kernel refuses the call.
pub fn readable_to(span: Span) -> Addr {
    let (mut to, high) = (span.start, span.end());
    while to < high {
        // A byte of each page, going up.
        let first = to.round_down(PAGE);
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

/// Counts the readable pages of `count`, up to an unreadable one; `None` if the kernel refuses.
fn readable_pages(count: usize, page: impl Fn(usize) -> Addr) -> Option<usize> {
    let mut bytes = [0u8; PAGES_AT_ONCE];
    let mut remote = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 1 }; PAGES_AT_ONCE];
    for (index, part) in remote.iter_mut().enumerate().take(count) {
        part.iov_base = page(index).ptr();
    }
    match map::read_own(&remote[..count], &mut bytes) {
        Ok(read) => Some(read),
        Err(rustix::io::Errno::FAULT) => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_main_stack_has_its_end() {
        let line = std::fs::read_to_string("/proc/self/stat").unwrap();
        // Field 28, `startstack`: on the main thread's stack, as this test is not.
        let start = line.rsplit(')').next().unwrap().split_whitespace().nth(25).unwrap().parse().unwrap();
        let start = Addr::new(start);
        let end = main_end(start).expect("the main stack");
        assert_eq!(readable_to(Span::between(start, end)), end);
        assert_eq!((main_end(Addr::of(&raw const line)), main_end(end + 1)), (None, None));
    }

    #[test]
    fn what_can_be_read_ends_at_what_cannot() {
        const PAGES: usize = 100;
        for readable in [0, 1, 31, 32, 33, 64, 99, 100] {
            let span = map::reserve_inaccessible(PAGES * PAGE).expect("address space");
            let (start, high) = (span.start, span.end());
            let [_, last] = span.split_at((PAGES - readable) * PAGE);
            if readable > 0 {
                // SAFETY: the span was reserved by this test.
                unsafe { map::make_writable(last) }.expect("pages");
            }
            assert_eq!(readable_from(span), last.start, "{readable} pages");
            // From within a page, and within what can be read.
            let within = span.from(last.start + if readable > 0 { PAGE / 2 } else { 0 });
            assert_eq!(readable_from(within), within.start, "{readable} pages");
            // Going up: beyond the last of the span there may be anything.
            assert_eq!(readable_to(within), if readable > 0 { high } else { within.start });
            assert_eq!(readable_to(span), if readable == PAGES { high } else { start });
            let [first, _] = span.split_at(readable.max(1) * PAGE);
            // SAFETY: all of it is in the span that this test reserved, and nothing lies there.
            unsafe { map::make_inaccessible(span).and_then(|()| map::make_writable(first)) }.expect("pages");
            assert_eq!(readable_to(span.from(start + 5)), first.end(), "{readable} pages");
            // SAFETY: reserved by this test, which is done with it.
            unsafe { map::release(span) }.expect("release");
        }
    }
}
