//! The stack that led to a misuse, a line a frame, without allocating.
//!
//! ```text
//!   at libfoo.so+0x1234
//!   at program+0x5678
//! ```
//!
//! `addr2line -e FILE 0x1234` gives function and line. The way up is that of C++ exceptions (`.eh_frame`, by
//! [`vellum_unwind`]), so no frame pointers are needed. Modules are found by glibc's `_dl_find_object`
//! (2.35), which takes no lock; where the C library has none, there is no stack. Frames of this library at
//! the top are left out: the first line is the program's call.
//!
//! Every word is checked to be readable first, as the stack may be what was overwritten.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_sys::{Line, stack};
use vellum_unwind::{Frame, Rule, Tables};

/// Frames that are shown.
const SHOWN_MAX: u32 = 16;
/// Steps that are taken: frames of this library come on top.
const STEPS_MAX: u32 = 48;
/// Bytes of a return address or saved register.
const WORD: u64 = 8;

/// glibc's `_dl_find_object`, if it has one.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct Module {
    flags: u64,
    start: u64,
    end: u64,
    link: *const LinkMap,
    unwind_index: *const u8,
    reserved: [u64; 7],
}

/// The public head of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
}

/// Looks for what will be needed, while the loader's lock can be taken.
pub(crate) fn prepare() {
    // SAFETY: plain call with a C string.
    FIND.store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }, Relaxed);
}

/// Writes the calling thread's stack to standard error.
#[cold]
#[inline(never)]
pub(crate) fn write() {
    let mut frame = here();
    let own = module(frame.pc).map_or(0, |module| module.start);
    let (mut shown, mut inside) = (0, true);
    for _ in 0..STEPS_MAX {
        let Some(module) = module(frame.pc - 1) else { return };
        inside &= module.start == own;
        if !inside {
            describe(&module, frame.pc);
            shown += 1;
        }
        let Some(caller) = rule(&module, frame.pc - 1).and_then(|rule| frame.caller(rule, word)) else {
            return;
        };
        if shown == SHOWN_MAX {
            return;
        }
        frame = caller;
    }
}

/// The frame of the function this is inlined into.
#[inline(always)]
fn here() -> Frame {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        core::arch::asm!(
            "lea {pc}, [rip + 1]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            pc = out(reg) pc,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    Frame { pc, sp, bp }
}

/// The word at an address of the stack, if it can be read.
fn word(at: u64) -> Option<u64> {
    let (low, high) = (at as usize, (at + WORD) as usize);
    // SAFETY: the kernel has read that page a moment ago, and the stack is this thread's.
    (stack::readable_from(low, high) == low).then(|| unsafe { (at as *const u64).read_unaligned() })
}

fn module(pc: u64) -> Option<Module> {
    let function = FIND.load(Relaxed);
    if function.is_null() {
        return None;
    }
    // SAFETY: the signature of glibc's function.
    let function =
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(u64, *mut Module) -> c_int>(function) };
    let mut module = MaybeUninit::<Module>::zeroed();
    // SAFETY: there is a place for the answer, which is all zeros or filled in.
    let module = unsafe { (function(pc, module.as_mut_ptr()) == 0).then(|| module.assume_init()) }?;
    (!module.link.is_null()).then_some(module)
}

/// One line: the module's file name, and the instruction's address in it.
fn describe(module: &Module, pc: u64) {
    // SAFETY: the loader's record and its string, both there as long as the module is mapped.
    let (bias, name) = unsafe { ((*module.link).bias, CStr::from_ptr((*module.link).name)) };
    let mut line = Line::new();
    line.text("  at ");
    let name = name.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if name.is_empty() {
        line.raw(program_name());
    } else {
        line.raw(name);
    }
    line.text("+0x").hex((pc - bias) as usize).text("\n").write();
}

/// The file name that the program was started by.
fn program_name() -> &'static [u8] {
    // SAFETY: plain call.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if path.is_null() {
        return b"program";
    }
    // SAFETY: a C string that the kernel put on the first stack.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// How to leave the frame of the instruction at `pc`, by its module's tables as they are mapped.
fn rule(module: &Module, pc: u64) -> Option<Rule> {
    let index_at = module.unwind_index as u64;
    if index_at == 0 {
        return None;
    }
    let index = mapped_from(module, index_at)?;
    let entries_at = Tables::entries_of(index, index_at)?;
    Tables::new(index, index_at, mapped_from(module, entries_at)?, entries_at).rule_at(pc)
}

/// The bytes from `address` to the end of the segment it lies in.
fn mapped_from(module: &Module, address: u64) -> Option<&'static [u8]> {
    // SAFETY: the loader's record of a module that is mapped.
    let bias = unsafe { &*module.link }.bias;
    // SAFETY: a module begins with its file's head, which is mapped with its first segment.
    let head = unsafe { &*(module.start as *const libc::Elf64_Ehdr) };
    if head.e_ident[..4] != *b"\x7fELF" || usize::from(head.e_phentsize) != size_of::<libc::Elf64_Phdr>() {
        return None;
    }
    // SAFETY: the loader has read the program headers from here.
    let segments = unsafe {
        slice::from_raw_parts(
            (module.start + head.e_phoff) as *const libc::Elf64_Phdr,
            usize::from(head.e_phnum),
        )
    };
    let holds = |segment: &&libc::Elf64_Phdr| {
        segment.p_type == libc::PT_LOAD && address.wrapping_sub(bias + segment.p_vaddr) < segment.p_filesz
    };
    let segment = segments.iter().find(holds)?;
    let length = bias + segment.p_vaddr + segment.p_filesz - address;
    // SAFETY: within a segment that is mapped, of a module that is.
    Some(unsafe { slice::from_raw_parts(address as *const u8, length as usize) })
}
