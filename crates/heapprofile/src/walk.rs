//! Walks the stack of a sampled block: its frames, innermost first, without those of this library and of
//! `libgc`.
//!
//! - Frames are walked as by C++ exceptions. The rule that leads from an instruction's frame to the caller's
//!   frame is computed once, and stored with the number of the instruction's module.
//! - Modules (the program and its libraries) may be unloaded (`dlclose`). A stored rule is valid while its
//!   module has the same range, path and dynamic section, which the loader reports anew for each stack.
//! - Code made at run time, and some code of compilers, has no tables. There the walk follows the frame
//!   pointer, as long as this leads to return addresses (instructions behind calls).
//! - Words of the stack are read after a check that they are readable, some pages at a time. Tables of
//!   hand-written code may be wrong, and the stack of a coroutine can end anywhere. A process that filters
//!   its system calls has no such check, and relies on the tables.

use super::part::Part;
use super::python::Lines;
use core::cell::Cell;
use vellum_malloc::sampling;
use vellum_stacks::{Facts, Known, PATH_MAX, key, path_of, rule_of};
use vellum_sys::loader::{self, Module};
use vellum_sys::{Addr, Caps, PAGE, Span, caps, map, stack};
use vellum_unwind::{Frame, Rule, SPREAD, mixed};
use vellum_wire::held::{NO_MODULE, STACK_WORDS, frame as packed};
use vellum_wire::log::{Entry, EntryKind, FRAMES_MAX, STACK_FRAMES_MAX};

/// Modules with a number; frames of further modules are addresses alone.
const MODULES_MAX: usize = 1 << 10;
/// Visits to a module from one that reads its tables to the one after which they go back.
const VISITS: u8 = 4;
/// Modules whose tables are returned at a later visit.
const PENDING_MAX: usize = 4;
/// Frames that are left, those of this library among them.
const STEPS_MAX: usize = FRAMES_MAX + 16;
/// The most bytes of the stack that are checked at a time.
const WINDOW_MAX: usize = 16 * PAGE;
const WORD: u64 = 8;
/// Words before a stack's frames: those of its entry but for the head, which is added as it is entered.
const OWN_WORDS: usize = STACK_WORDS - 1;

/// The stored rules and modules. All zero: nothing is stored.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Walker {
    /// By instruction and module: a [`Known`].
    instructions: Facts<{ 1 << 14 }>,
    /// By a hash of range, path and dynamic section: a module's number, plus one.
    modules: Facts<{ 2 * MODULES_MAX }>,
    pub(super) lines: Lines,
    /// Of modules, from the one that read its tables on; 0 if none are to go back: see [`Walker::leave`].
    visits: [u8; MODULES_MAX],
    count: usize,
    /// Modules with `visits`.
    pending: usize,
    /// True if tables of the current module were read.
    has_read: bool,
    /// The executable's path: too long for the stack of the thread that allocates.
    real: [u8; PATH_MAX],
}

/// A recorded stack.
pub(super) struct Stack {
    words: [u64; OWN_WORDS + STACK_FRAMES_MAX],
    length: usize,
}

impl Walker {
    /// The machine code on the calling thread's stack.
    #[inline(never)]
    pub(super) fn walk(&mut self, part: &mut Part) -> Stack {
        let mut stack = Stack { words: [0; OWN_WORDS + STACK_FRAMES_MAX], length: 0 };
        stack.words[0] = SPREAD;
        let mut frame = sampling::here();
        let readable = Window::new(frame.sp);
        let (mut module, mut number) = (None::<Module>, NO_MODULE);
        let (mut own, mut is_inside) = (None, true);
        for _ in 0..STEPS_MAX {
            let pc = frame.pc - 1;
            if !module.as_ref().is_some_and(|module| (module.start..module.end).contains(&pc)) {
                self.leave(module.as_ref(), number);
                // Code that was made at run time has no module.
                module = loader::module(pc);
                number = module.as_ref().map_or(NO_MODULE, |module| self.number(module, part));
            }
            is_inside = is_inside
                && module.as_ref().is_some_and(|module| {
                    *own.get_or_insert(module.start) == module.start || is_collector(module)
                });
            if !is_inside {
                let bias = module.as_ref().filter(|_| number != NO_MODULE).map_or(0, |module| module.bias);
                stack.push(packed(number, frame.pc.wrapping_sub(bias)));
            }
            let rule = module.as_ref().and_then(|module| self.rule(module, number, frame.pc));
            let caller = match rule {
                Some(rule) => frame.caller(rule, |at| readable.word(at)),
                None => readable.caller_by_pointer(frame),
            };
            let Some(caller) = caller.filter(|_| stack.length < FRAMES_MAX) else { break };
            frame = caller;
        }
        self.leave(module.as_ref(), number);
        stack
    }

    /// Ends a visit to a module. Its tables go back some visits after they were read: a look-up makes a few
    /// dozen of their pages resident, of megabytes in a compiler's, and the next few want much the same. So
    /// for a few modules at a time, as one may never be visited again; those of others go back at once.
    fn leave(&mut self, module: Option<&Module>, number: u64) {
        let has_read = core::mem::take(&mut self.has_read);
        let seen = self.visits[..self.count].get_mut(number as usize);
        let visits = seen.as_ref().map_or(0, |visits| **visits);
        if !has_read && visits == 0 {
            return;
        }
        let next = match seen {
            Some(seen) if visits > 0 || self.pending < PENDING_MAX => {
                *seen = (visits + 1) % VISITS;
                *seen
            }
            _ => 0,
        };
        self.pending += usize::from(visits == 0 && next > 0);
        self.pending -= usize::from(visits > 0 && next == 0);
        if let Some(module) = module.filter(|_| next == 0 && caps::has(Caps::HELPER)) {
            // SAFETY: an instruction of it is on the stack.
            unsafe { module.put_back_tables() };
        }
    }

    fn rule(&mut self, module: &Module, number: u64, pc: u64) -> Option<Rule> {
        let mut read = || {
            self.has_read = true;
            Known::new(false, false, rule_of(module, pc - 1)).0
        };
        let known =
            if number == NO_MODULE { read() } else { self.instructions.of_own(key(pc, number as u32), read) };
        Known(known).rule()
    }

    /// The number of a module, which is entered in the part if it is new.
    fn number(&mut self, module: &Module, part: &mut Part) -> u64 {
        let (words, rest) = module.name().to_bytes().as_chunks();
        let name = words.iter().map(|&word| u64::from_ne_bytes(word));
        let name = name.chain(rest.iter().map(|&byte| byte.into()));
        let hash = name.chain([module.start, module.end, module.dynamic]).fold(SPREAD, mixed);
        let number = self.modules.of(hash | 1, || {
            let words = [0, module.start, module.end, module.bias];
            let path = path_of(module, &mut self.real, false);
            let entry = Entry { kind: EntryKind::Module, words: &words, texts: [path, &[]] };
            if self.count == MODULES_MAX || part.add(&entry).is_none() {
                return 0;
            }
            self.count += 1;
            self.count as u64
        });
        number.checked_sub(1).unwrap_or(NO_MODULE)
    }
}

/// True if a module is a garbage collector's interface, over this library or not: its caller allocates.
fn is_collector(module: &Module) -> bool {
    let path = module.name().to_bytes();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    file.starts_with(b"libgc.so") || file.starts_with(b"libgccpp.so")
}

impl Stack {
    pub(super) fn push(&mut self, frame: u64) {
        if self.length < STACK_FRAMES_MAX {
            self.words[OWN_WORDS + self.length] = frame;
            self.length += 1;
            self.words[0] = mixed(self.words[0], frame);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.words[0]
    }

    /// Its entry, with nothing held.
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry { kind: EntryKind::Stack, words: &self.words[..OWN_WORDS + self.length], texts: [&[]; 2] }
    }
}

/// The readable part of the stack.
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
