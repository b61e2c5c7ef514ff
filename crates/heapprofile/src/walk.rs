//! The stack of a sampled block: frames, innermost first, without those of this library and of libgc's
//! interface over it.
//!
//! The way up is that of C++ exceptions, as in `vellum_malloc`'s `backtrace`. What leads from an
//! instruction's frame to its caller's is worked out once an instruction and then remembered, with the number
//! of its module. Modules come and go (`dlclose`): a memory of an instruction holds while its module is the
//! same by range, path and dynamic section, which is asked of the loader again for each stack.
//!
//! Code that was made at run time, and some of the compilers' own, has no tables: there the frame pointer is
//! followed, as far as it leads behind calls.
//!
//! Words of the stack are read after it was made sure that they can be read, some pages at a time: the tables
//! of hand-written code may be wrong, and coroutines have stacks that end anywhere. A process that filters
//! its system calls is not asked to make one more; there the tables are believed.

use super::part::Part;
use super::python::{Finder, Lines};
use core::cell::Cell;
use core::ffi::c_char;
use vellum_malloc::sampling;
use vellum_sys::loader::{self, Module};
use vellum_sys::{Addr, Caps, PAGE, Span, caps, map, stack};
use vellum_unwind::{Frame, Rule};
use vellum_wire::held::{NATIVE_FRAMES_MAX, NO_MODULE, STACK_FRAMES_MAX, frame as packed};

/// Instructions that are remembered.
const KNOWN: usize = 1 << 13;
/// Modules that are remembered; frames of further ones are addresses alone.
const MODULES_MAX: usize = 1 << 10;
/// Visits to a module from one that reads its tables to the one after which they go back.
const VISITS: u32 = 4;
/// Modules whose tables are to go back at a later visit.
const PENDING_MAX: usize = 4;
/// Frames that are left, those of this library among them.
const STEPS_MAX: usize = NATIVE_FRAMES_MAX + 16;
/// Bytes of the stack that are made sure of at a time, at most.
const WINDOW_MAX: usize = 16 * PAGE;
/// Bytes of a return address or saved register.
const WORD: u64 = 8;
/// The longest path of a module that is entered.
const PATH_MAX: usize = 4096;

/// What is known of an instruction.
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
    /// From the one that read its tables on; 0 if none are to go back: see [`Walker::leave`].
    visits: u32,
}

/// What is remembered. All zero: nothing.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Walker {
    known: [Known; KNOWN],
    modules: [Seen; MODULES_MAX],
    count: usize,
    /// Modules with `visits`.
    pending: usize,
    /// Whether tables of the module at hand were read.
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

    /// Ends a visit to a module. Its tables go back some visits after they were read: a look-up makes a few
    /// dozen of their pages resident, of megabytes in a compiler's, and the next few want much the same. So
    /// for a few modules at a time, as one may never be visited again; those of others go back at once.
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

/// Whether a module is a garbage collector's interface, over this library or not: who called it allocates.
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
    /// Whether the kernel may be asked.
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

    /// The caller's frame where no table says how to leave one.
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
