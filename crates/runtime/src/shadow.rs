//! Arguments of system calls that lie in big blocks, put where the kernel can reach them.
//!
//! Two ways, by what an argument is ([`Kind`]):
//!
//! * *Shadowed*: the call is given a copy, and what the kernel wrote there is copied back. Both are done in
//!   user mode, where a fault waits for its page, so this is certain; and a call that does something before
//!   it stores its results (`waitpid`, `accept`, `epoll_wait`) does it once. It needs to be known how much is
//!   read and written.
//! * *Touched*: the pages are brought before the call, and the call is made again if it still says `EFAULT`,
//!   a limited number of times: for arguments whose address matters (futexes), whose length nobody knows
//!   (`ioctl`), or that must not be copied as the copy would be left behind (`execve` in a child that shares
//!   this memory).
//!
//! A shape has no pointers, so that tables of them need no relocation when the library is loaded.

use crate::arch;
use crate::bounce::Bounce;
use core::ffi::{c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use vellum_malloc::{paged, set_errno};
use vellum_sys::{PAGE, raw, round_down, round_up};

/// Added to the index of an argument that is a C `int` or `unsigned`: the lower half of its register.
pub(crate) const INT: u8 = 0x80;

/// What an argument of a call is. The first number of those that another argument measures is that one's
/// index.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// No pointer, or one that neither the kernel nor the C library follows in a system call.
    Plain,
    /// A C string that is read.
    Text,
    /// This many bytes, read.
    In(u16),
    /// This many bytes, read and written, or some of them.
    Out(u16),
    /// As many items as another argument says, of this many bytes each.
    InBy(u8, u16),
    OutBy(u8, u16),
    /// The same, of which as many are written as the result says, and none is read.
    Filled(u8, u16),
    /// As many bytes as stand where another argument points, which is an `Out(4)`.
    Sized(u8),
    /// A C string that is written, into as many bytes as another argument says.
    Name(u8),
    /// The same, into `PATH_MAX` bytes.
    Path,
    /// A set for `select`, of as many bits as the first argument says.
    Bits,
    /// A byte for each page of as many bytes as another argument says, written.
    PerPage(u8),
    /// A System V message, a number and as many bytes as another argument says: read.
    Letter(u8),
    /// The same, of which as many bytes are written as the result says.
    LetterBox(u8),
    /// Touched: what lies here, up to a page.
    Near,
    /// Touched: a C string.
    NearText,
    /// Touched: an array of C strings up to a null pointer.
    Strings,
}

/// What the arguments of a call are.
pub(crate) type Shape = [Kind; ARGS];
pub(crate) const ARGS: usize = 6;

/// A shape of as many arguments as are pointers or come before such.
pub(crate) const fn shape<const N: usize>(kinds: [Kind; N]) -> Shape {
    let mut shape = [Kind::Plain; ARGS];
    let mut index = 0;
    while index < N {
        shape[index] = kinds[index];
        index += 1;
    }
    shape
}

/// The call.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    /// A function of the C library that returns an integer or a pointer, -1 or null for errors.
    Function(*const c_void),
    /// The same, but that it returns the errno.
    Spawn(*const c_void),
    /// A system call.
    Number(usize),
}

/// Longer arguments are left to the kernel, which finds some other fault with them.
const LONGEST: usize = 1 << 30;
/// Arguments of up to this many bytes together are copied to the stack.
const SMALL: usize = 640;
/// Copies begin at multiples of this.
const ALIGN: usize = 16;
/// How often a call is made again whose pages were touched and are gone before the kernel sees them.
pub(crate) const TRIES: u32 = 100;
const PATH_MAX: usize = libc::PATH_MAX as usize;
/// Bytes of a message's number.
const NUMBER: usize = size_of::<libc::c_long>();

/// Whether the kernel may meet a missing page at `start`. A block that is paged is so from its first byte to
/// its last.
pub(crate) fn is_paged(start: usize) -> bool {
    paged::owns(start as *const u8)
}

/// The bytes of a C string and its end.
///
/// # Safety
/// There is one.
unsafe fn text_len(start: usize) -> usize {
    // SAFETY: by this function's condition.
    unsafe { libc::strlen(start as *const c_char) + 1 }
}

impl Kind {
    /// How many bytes are to be shadowed: 0 for none.
    ///
    /// # Safety
    /// The arguments are those of a call of this shape.
    unsafe fn len(self, index: usize, args: &[usize; ARGS]) -> usize {
        let items = |by: u8, size: u16| {
            let count = args[(by & !INT) as usize];
            let count = if by & INT == 0 { count } else { count as u32 as usize };
            count.saturating_mul(size.into())
        };
        if !is_paged(args[index]) {
            return 0;
        }
        let len = match self {
            Kind::Plain | Kind::Near | Kind::NearText | Kind::Strings => 0,
            // SAFETY: by this function's condition.
            Kind::Text => unsafe { text_len(args[index]) },
            Kind::In(len) | Kind::Out(len) => len.into(),
            Kind::InBy(by, size) | Kind::OutBy(by, size) | Kind::Filled(by, size) => items(by, size),
            Kind::Sized(by) => {
                let len = args[by as usize] as *const u32;
                // SAFETY: by this function's condition, if there is a length.
                unsafe { len.as_ref() }.map_or(0, |len| *len as usize)
            }
            Kind::Name(by) => items(by, 1),
            Kind::Path => PATH_MAX,
            Kind::Bits => {
                usize::try_from(args[0] as c_int).unwrap_or(0).div_ceil(u64::BITS as usize) * size_of::<u64>()
            }
            Kind::PerPage(by) => args[by as usize].div_ceil(PAGE),
            Kind::Letter(by) | Kind::LetterBox(by) => items(by, 1).saturating_add(NUMBER),
        };
        if len > LONGEST { 0 } else { len }
    }

    /// Whether what is there before is copied.
    fn is_read(self) -> bool {
        !matches!(self, Kind::Filled(..) | Kind::Name(_) | Kind::Path | Kind::LetterBox(_))
    }

    /// How many of the `len` bytes at `copy` are copied back after a call with this result.
    ///
    /// # Safety
    /// The call was given the copy.
    unsafe fn written(self, copy: *const u8, len: usize, result: usize) -> usize {
        // No call transfers more than a C `int` can say, and of such a result the upper half is nobody's.
        let items = usize::try_from(result as c_int).unwrap_or(0);
        match self {
            Kind::Out(_) | Kind::OutBy(..) | Kind::Sized(_) | Kind::Bits | Kind::PerPage(_) => len,
            Kind::Filled(_, size) => items.saturating_mul(size.into()).min(len),
            Kind::LetterBox(_) if result as c_int >= 0 => items.saturating_add(NUMBER).min(len),
            // SAFETY: a call that did not fail has written a string.
            Kind::Name(_) | Kind::Path if result != 0 => unsafe { text_len(copy as usize) }.min(len),
            _ => 0,
        }
    }
}

impl Call {
    /// Makes the call. The result is as the C library's.
    ///
    /// # Safety
    /// As for the call.
    unsafe fn make(self, args: [usize; ARGS]) -> usize {
        type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;
        match self {
            Call::Function(function) | Call::Spawn(function) => {
                // SAFETY: a function of at most six arguments, each an integer or a pointer, finds them in
                // six registers and looks at no others.
                let function = unsafe { transmute::<*const c_void, Function>(function) };
                let [a, b, c, d, e, f] = args;
                // SAFETY: by this function's condition.
                unsafe { function(a, b, c, d, e, f) }
            }
            Call::Number(number) => {
                // SAFETY: by this function's condition.
                unsafe { raw::syscall(number as libc::c_long, args) }.unwrap_or_else(|errno| {
                    set_errno(errno.raw_os_error());
                    usize::MAX
                })
            }
        }
    }

    /// Whether `result` says that the kernel could not reach something.
    fn is_fault(self, result: usize) -> bool {
        match self {
            Call::Spawn(_) => result as c_int == libc::EFAULT,
            // SAFETY: the C library's own function; it has no conditions.
            _ => result as c_int == -1 && unsafe { *libc::__errno_location() } == libc::EFAULT,
        }
    }
}

/// Makes a call whose arguments may lie in big blocks.
///
/// # Safety
/// As for the call; its arguments are of this shape.
pub(crate) unsafe fn run(call: Call, shape: &Shape, args: [usize; ARGS]) -> usize {
    let mut lens = [0; ARGS];
    let (mut total, mut is_near) = (0, false);
    for (index, kind) in shape.iter().enumerate() {
        // SAFETY: by this function's condition.
        lens[index] = unsafe { kind.len(index, &args) };
        total += round_up(lens[index], ALIGN);
        is_near |= matches!(kind, Kind::Near | Kind::NearText | Kind::Strings) && args[index] != 0;
    }
    // SAFETY: by this function's condition, for all three.
    unsafe {
        match (total, is_near) {
            (0, false) => call.make(args),
            (0, true) => touching(call, shape, args),
            _ => shadowing(call, shape, args, &lens, total),
        }
    }
}

/// A place for copies: on the stack, unless they are long or the stack lies in a big block itself.
#[repr(C, align(16))]
struct Small(MaybeUninit<[u8; SMALL]>);

/// Makes a call with copies of `total` bytes together.
///
/// # Safety
/// As [`run`]; `lens` are the arguments' lengths.
#[inline(never)]
unsafe fn shadowing(
    call: Call,
    shape: &Shape,
    args: [usize; ARGS],
    lens: &[usize; ARGS],
    total: usize,
) -> usize {
    let mut small = Small(MaybeUninit::uninit());
    let mut place = small.0.as_mut_ptr().cast::<u8>();
    let mut bounce = None;
    if total > SMALL || is_paged(place.addr()) {
        bounce = Bounce::new(total);
        let Some(bounce) = &bounce else {
            set_errno(libc::ENOMEM);
            return if let Call::Spawn(_) = call { libc::ENOMEM as usize } else { usize::MAX };
        };
        place = bounce.start();
    }
    let mut given = args;
    for index in (0..ARGS).filter(|index| lens[*index] > 0) {
        if shape[index].is_read() {
            // SAFETY: the caller's memory by its contract; the sum of the lengths is at most the place's.
            unsafe { place.copy_from_nonoverlapping(args[index] as *const u8, lens[index]) };
        }
        given[index] = place.addr();
        // SAFETY: as above.
        place = unsafe { place.add(round_up(lens[index], ALIGN)) };
    }
    // SAFETY: by this function's condition; the copies are as long as what they stand for.
    let mut result = unsafe { touching(call, shape, given) };
    for index in (0..ARGS).filter(|index| lens[*index] > 0) {
        let copy = given[index] as *const u8;
        // SAFETY: the call had the copy; what it wrote there it would have written to the caller's memory.
        unsafe {
            let len = shape[index].written(copy, lens[index], result);
            (args[index] as *mut u8).copy_from_nonoverlapping(copy, len);
        }
        // Such functions as `getcwd` return where they wrote.
        if result == given[index] {
            result = args[index];
        }
    }
    drop(bounce);
    result
}

/// Makes a call, after touching what must be touched, until it finds everything there.
///
/// # Safety
/// As [`run`].
unsafe fn touching(call: Call, shape: &Shape, args: [usize; ARGS]) -> usize {
    let mut tries = 0;
    loop {
        let mut is_any = false;
        for (kind, &arg) in shape.iter().zip(&args) {
            // SAFETY: by this function's condition.
            is_any |= unsafe { bring(*kind, arg) };
        }
        // SAFETY: by this function's condition.
        let result = unsafe { call.make(args) };
        tries += 1;
        if !is_any || tries == TRIES || !call.is_fault(result) {
            return result;
        }
    }
}

/// Touches what `arg` is of what must be touched. Whether it is paged.
///
/// # Safety
/// The argument is of that kind.
unsafe fn bring(kind: Kind, arg: usize) -> bool {
    match kind {
        Kind::Near => touch(arg, PAGE),
        // SAFETY: by this function's condition.
        Kind::NearText => is_paged(arg) && touch(arg, unsafe { text_len(arg) }),
        Kind::Strings if arg != 0 => {
            let array = arg as *const usize;
            let mut is_any = is_paged(arg);
            let mut index = 0;
            loop {
                // SAFETY: up to the null pointer the array can be read.
                let text = unsafe { *array.add(index) };
                index += 1;
                if text == 0 {
                    break;
                }
                // SAFETY: a string by this function's condition.
                is_any |= unsafe { bring(Kind::NearText, text) };
            }
            touch(arg, index * size_of::<usize>());
            is_any
        }
        _ => false,
    }
}

/// Has the pages of `len` bytes at `start` brought, as far as they are part of a paged block, for writing if
/// that is allowed. Whether there are any.
///
/// The kernel is asked first: it knows what the program may do there. A touch of what the program has
/// protected would end it.
pub(crate) fn touch(start: usize, len: usize) -> bool {
    if !is_paged(start) || len == 0 {
        return false;
    }
    let mut page = round_down(start, PAGE);
    while page < start.saturating_add(len) && paged::is_needed(page as *const u8) {
        if let Some(write) = missing(page) {
            let byte = page as *mut u8;
            // SAFETY: a page of a block that may be read, and written if so said; its contents stay as they
            // are.
            unsafe {
                if write {
                    arch::touch_to_write(byte);
                } else {
                    byte.read_volatile();
                }
            }
        }
        page += PAGE;
    }
    true
}

/// If the page at `page` is not there for the kernel: whether it may be written.
fn missing(page: usize) -> Option<bool> {
    /// `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE`, Linux 5.14.
    const ADVICE: [usize; 2] = [22, 23];
    let ask = |page: usize, advice: usize| {
        loop {
            // SAFETY: this advice changes no contents.
            match unsafe { raw::syscall(libc::SYS_madvise, [page, PAGE, advice, 0, 0, 0]) } {
                Ok(_) => return 0,
                Err(errno) if errno.raw_os_error() == libc::EINTR => {}
                Err(errno) => return errno.raw_os_error(),
            }
        }
    };
    for (advice, write) in [(ADVICE[1], true), (ADVICE[0], false)] {
        match ask(page, advice) {
            0 => return None,
            libc::EINVAL => {}
            _ => return Some(write),
        }
    }
    // Neither may be done, or the kernel does not know the advice.
    let here = 0u8;
    (ask(round_down((&raw const here).addr(), PAGE), ADVICE[0]) == libc::EINVAL).then_some(false)
}
