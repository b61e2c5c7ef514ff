//! The stack of a sampled block: frames, innermost first, without those of this library and of libgc's
//! interface over it.
//!
//! - Frames are left as by C++ exceptions. The rule from an instruction's frame to its caller's is computed
//!   once for an instruction, and stored with the number of its module.
//! - Modules come and go (`dlclose`): a stored rule is valid while its module has the same range, path and
//!   dynamic section, which the loader reports again for each stack.
//! - Code made at run time, and some code of compilers, has no tables: there the frame pointer is followed,
//!   while it leads to instructions behind calls.
//! - Words of the stack are read after a check that they are readable, some pages at a time: tables of
//!   hand-written code may be wrong, and the stack of a coroutine can end anywhere. A process that filters
//!   its system calls has no such check, and relies on the tables.

use super::part::Part;
use super::python::{Finder, Lines};
use core::cell::Cell;
use core::ffi::c_char;
use vellum_malloc::sampling;
use vellum_sys::loader::{self, Module};
use vellum_sys::{Addr, Caps, PAGE, Span, caps, map, stack};
use vellum_unwind::{Frame, Rule};
use vellum_wire::held::{NATIVE_FRAMES_MAX, NO_MODULE, STACK_FRAMES_MAX, frame as packed};

/// Places for rules of instructions.
const KNOWN: usize = 1 << 13;
/// Modules with a number; frames of further modules are addresses alone.
const MODULES_MAX: usize = 1 << 10;
/// Visits to a module after which the pages of its tables are returned, from the visit that read them on.
const VISITS: u32 = 4;
/// Modules whose tables are returned at a later visit.
const PENDING_MAX: usize = 4;
/// Steps from a frame to its caller, also in this library.
const STEPS_MAX: usize = NATIVE_FRAMES_MAX + 16;
/// The most bytes of the stack that are checked at a time.
const WINDOW_MAX: usize = 16 * PAGE;
const WORD: u64 = 8;
const PATH_MAX: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Known {
    pc: u64,
    /// The rule's bits, or 0: its frame cannot be left.
    rule: u64,
    module: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    start: u64,
    end: u64,
    dynamic: u64,
    name: u64,
    /// Visits since its tables were read; 0 if no pages are to be returned: see [`Walker::leave`].
    visits: u32,
}

/// The stored rules and modules. All zero: none.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Walker {
    known: [Known; KNOWN],
    modules: [Seen; MODULES_MAX],
    count: usize,
    /// Modules with `visits`.
    pending: usize,
    /// True if tables of the current module were read.
    has_read: bool,
    lines: Lines,
    /// The executable's path: too long for the stack of the thread that allocates.
    real: [u8; PATH_MAX],
}

/// A recorded stack.
pub(super) struct Stack {
    pub(super) frames: [u64; STACK_FRAMES_MAX],
    pub(super) length: usize,
    pub(super) hash: u64,
}

impl Walker {
    /// The calling thread's stack.
    #[inline(never)]
    pub(super) fn walk(&mut self, part: &mut Part, python: &Finder) -> Stack {
        let mut stack = Stack { frames: [0; STACK_FRAMES_MAX], length: 0, hash: SPREAD };
        self.climb(&mut stack, part);
        self.lines.add(&mut stack, part, python);
        stack
    }

    /// Adds the frames of machine code.
    #[inline(always)]
    fn climb(&mut self, stack: &mut Stack, part: &mut Part) {
        let mut frame = sampling::here();
        let Some(mut module) = loader::module(frame.pc) else { return };
        let own = module.start;
        let mut number = self.number(&module, part);
        let readable = Window::new(frame.sp);
        let mut is_inside = true;
        for _ in 0..STEPS_MAX {
            let pc = frame.pc - 1;
            if !(module.start..module.end).contains(&pc) {
                let Some(found) = loader::module(pc) else {
                    // Code that was made at run time.
                    stack.push(packed(NO_MODULE, frame.pc));
                    is_inside = false;
                    let Some(caller) = readable.caller_by_pointer(frame) else { break };
                    if stack.length == NATIVE_FRAMES_MAX {
                        break;
                    }
                    frame = caller;
                    continue;
                };
                self.leave(&module, number);
                module = found;
                number = self.number(&module, part);
            }
            is_inside = is_inside && (module.start == own || is_collector(&module));
            if !is_inside {
                let at = if number == NO_MODULE { frame.pc } else { frame.pc.wrapping_sub(module.bias) };
                stack.push(packed(number, at));
            }
            let rule = self.rule(&module, number, frame.pc);
            let caller = match rule {
                Some(rule) => frame.caller(rule, |at| readable.word(at)),
                None => readable.caller_by_pointer(frame),
            };
            let Some(caller) = caller else { break };
            if stack.length == NATIVE_FRAMES_MAX {
                break;
            }
            frame = caller;
        }
        self.leave(&module, number);
    }

    /// Ends a visit to a module. A look-up makes a few dozen pages of its tables resident, of megabytes in a
    /// compiler's, and the next look-ups read many of the same pages. The pages are therefore returned some
    /// visits later. This holds for a few modules at a time, as a module may never be visited again; for
    /// others they are returned at once.
    fn leave(&mut self, module: &Module, number: u64) {
        let has_read = core::mem::take(&mut self.has_read);
        let seen = self.modules[..self.count].get_mut(number as usize);
        let visits = seen.as_ref().map_or(0, |seen| seen.visits);
        if !has_read && visits == 0 {
            return;
        }
        let next = match seen {
            Some(seen) if visits > 0 || self.pending < PENDING_MAX => {
                seen.visits = (visits + 1) % VISITS;
                seen.visits
            }
            _ => 0,
        };
        self.pending += usize::from(visits == 0 && next > 0);
        self.pending -= usize::from(visits > 0 && next == 0);
        if next == 0 && caps::has(Caps::HELPER) {
            // SAFETY: an instruction of it is on the stack.
            unsafe { module.put_back_tables() };
        }
    }

    fn rule(&mut self, module: &Module, number: u64, pc: u64) -> Option<Rule> {
        let known = &mut self.known[(pc.wrapping_mul(SPREAD) >> 40) as usize % KNOWN];
        if known.pc != pc || known.module != number || number == NO_MODULE {
            let rule = sampling::rule(module, pc - 1).map_or(0, Rule::bits);
            *known = Known { pc, rule, module: number };
            self.has_read = true;
        }
        Rule::from_bits(known.rule)
    }

    /// The number of a module, which is entered in the part if it is new.
    fn number(&mut self, module: &Module, part: &mut Part) -> u64 {
        let path = module.name().to_bytes();
        let (words, rest) = path.as_chunks();
        let name = words.iter().fold(SPREAD, |hash, &word| mixed(hash, u64::from_ne_bytes(word)));
        let name = rest.iter().fold(name, |hash, &byte| mixed(hash, u64::from(byte)));
        let (start, end, dynamic) = (module.start, module.end, module.dynamic);
        let is_it = |seen: &Seen| {
            seen.start == start && seen.end == end && seen.dynamic == dynamic && seen.name == name
        };
        if let Some(number) = self.modules[..self.count].iter().position(is_it) {
            return number as u64;
        }
        if self.count == MODULES_MAX {
            return NO_MODULE;
        }
        if !part.add_module([start, end, module.bias], path_of(path, &mut self.real)) {
            return NO_MODULE;
        }
        self.modules[self.count] = Seen { start, end, dynamic, name, visits: 0 };
        self.count += 1;
        (self.count - 1) as u64
    }
}

/// True if a module is a garbage collector's interface, over this library or not: its caller allocates.
fn is_collector(module: &Module) -> bool {
    let path = module.name().to_bytes();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    file.starts_with(b"libgc.so") || file.starts_with(b"libgccpp.so")
}

/// The path of a module's file: the executable's, if the loader has no name for it.
fn path_of<'a>(name: &'a [u8], buffer: &'a mut [u8; PATH_MAX]) -> &'a [u8] {
    if !name.is_empty() {
        return &name[..name.len().min(PATH_MAX)];
    }
    let into = buffer.as_mut_ptr().cast::<c_char>();
    // SAFETY: the buffer is as long as said.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), into, PATH_MAX) };
    &buffer[..usize::try_from(length).unwrap_or(0)]
}

pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

pub(super) fn mixed(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(SPREAD).rotate_left(29)
}

impl Stack {
    pub(super) fn push(&mut self, frame: u64) {
        if self.length < STACK_FRAMES_MAX {
            self.frames[self.length] = frame;
            self.length += 1;
            self.hash = mixed(self.hash, frame);
        }
    }

    pub(super) fn frames(&self) -> &[u64] {
        &self.frames[..self.length]
    }
}

/// The part of the stack that can be read.
struct Window {
    from: usize,
    to: Cell<usize>,
    /// True if system calls may check the stack.
    asks: bool,
}

impl Window {
    fn new(sp: u64) -> Window {
        let from = sp as usize;
        // The page that the stack pointer is on can be read: the return address was pushed there, or above.
        let sp = Addr::new(from);
        let to = stack::main_end(sp).unwrap_or_else(|| Span::unit_of(sp, PAGE).end());
        Window { from, to: Cell::new(to.get()), asks: caps::has(Caps::HELPER) }
    }

    /// The caller's frame where no table has a rule.
    fn caller_by_pointer(&self, frame: Frame) -> Option<Frame> {
        let code = |pc: u64| {
            let mut bytes = [0; 8];
            let from = (pc as usize).checked_sub(bytes.len())?;
            (map::copy_from(Addr::new(from), &mut bytes) == bytes.len()).then_some(bytes)
        };
        self.asks.then(|| frame.caller_by_pointer(|at| self.word(at), code))?
    }

    /// The word at an address of the stack, if it can be read.
    fn word(&self, at: u64) -> Option<u64> {
        let end = (at + WORD) as usize;
        while end > self.to.get() && self.asks {
            let from = self.to.get();
            // Twice as much as is known: most stacks end soon, and each page that is asked for costs.
            let more = 2 * (from - vellum_sys::round_down(self.from, PAGE));
            let to = stack::readable_to(Span::new(Addr::new(from), more.min(WINDOW_MAX))).get();
            if to == from {
                return None;
            }
            self.to.set(to);
        }
        // SAFETY: between the stack pointer and what can be read above it, or, where nobody can be asked,
        // where the tables of the running code say that a frame has it.
        (at as usize >= self.from).then(|| unsafe { (at as *const u64).read_unaligned() })
    }
}
