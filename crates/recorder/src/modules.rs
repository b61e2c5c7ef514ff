//! The modules (the executable and its libraries) that instructions lie in.
//!
//! A module is entered in the log when one of its instructions is first seen. The log's reader finds the
//! module of an instruction by address and epoch.
//!
//! Invariants: entries are only added, under the loader's own rules (an address has one module at a time).
//! An entry is published by `end`, its last word.

use crate::known::Known;
use crate::next::first;
use crate::{ask, process, python};
use core::ffi::c_char;
use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use vellum_sys::loader::{self, Module};
use vellum_unwind::{Rule, Tables};
use vellum_wire::cost::{Answer, EntryKind, MODULE_WORDS};
use vellum_wire::script::is_interpreter;

/// The most modules in the list. In a program with more, instructions of the rest are looked up each time.
const MODULES_MAX: usize = 1024;
const PATH_MAX: usize = 4096;

struct Entry {
    start: AtomicU64,
    end: AtomicU64,
    epoch: AtomicU32,
    answer: AtomicU32,
    interprets: AtomicBool,
    logged_at: AtomicU64,
}

static MODULES: [Entry; MODULES_MAX] = [const {
    Entry {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        epoch: AtomicU32::new(0),
        answer: AtomicU32::new(0),
        interprets: AtomicBool::new(false),
        logged_at: AtomicU64::new(0),
    }
}; MODULES_MAX];

/// Makes all look-ups that will be needed, at start. A later look-up could run inside a `free`: `dlsym` of
/// glibc before 2.35 frees the message of the last failure there, and would free it twice.
pub(crate) fn prepare() {
    loader::find_by(first(loader::FIND));
}

/// Computes the facts about the instruction that returns to `pc`.
#[cold]
pub(crate) fn describe(pc: u64, epoch: u32) -> Known {
    process::keeping_errno(|| describe_now(pc, epoch))
}

fn describe_now(pc: u64, epoch: u32) -> Known {
    let Some(found) = loader::module(pc - 1) else {
        return Known::new(false, false, None);
    };
    let module = entry(&found, epoch);
    let is_users = module.is_some_and(|module| {
        match Answer::from_u32(module.answer.load(Relaxed)) {
            Answer::WalkModule => return false,
            Answer::StopModule => return true,
            _ => {}
        }
        let answer = ask::ask(module.logged_at.load(Relaxed), pc - 1 - found.bias);
        if matches!(answer, Answer::WalkModule | Answer::StopModule) {
            module.answer.store(answer as u32, Relaxed);
        }
        // Without an answer, instructions of the program itself count as the user's.
        matches!(answer, Answer::Stop | Answer::StopModule | Answer::None)
    });
    let interprets = module.is_some_and(|module| module.interprets.load(Relaxed));
    Known::new(is_users, interprets, rule(&found, pc - 1))
}

/// The log entry of a module, made if it is missing.
fn entry(found: &Module, epoch: u32) -> Option<&'static Entry> {
    if let Some(known) = known(found, epoch) {
        return Some(known);
    }
    // Computed before the lock is taken: the loader's lock may be held by a thread that waits for ours.
    let mut path = [0u8; PATH_MAX];
    let length = path_of(found, &mut path);
    let file = path[..length].rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let words: [u64; MODULE_WORDS] = [u64::from(epoch), found.start, found.end, found.bias];
    let logged_at = process::log(EntryKind::Module, &words, &path[..length])?;
    let adding = &process::state().adding;
    adding.lock();
    let slot = known(found, epoch).or_else(|| {
        let free = MODULES.iter().find(|module| module.end.load(Relaxed) == 0)?;
        free.start.store(found.start, Relaxed);
        free.epoch.store(epoch, Relaxed);
        free.logged_at.store(logged_at, Relaxed);
        free.interprets.store(python::is_there() && is_interpreter(file), Relaxed);
        free.end.store(found.end, Release);
        Some(free)
    });
    adding.unlock();
    slot
}

fn known(found: &Module, epoch: u32) -> Option<&'static Entry> {
    MODULES.iter().take_while(|module| module.end.load(Acquire) != 0).find(|module| {
        module.start.load(Relaxed) == found.start
            && module.end.load(Relaxed) == found.end
            && module.epoch.load(Relaxed) == epoch
    })
}

/// Writes the path of a module's file to `path`, absolute if possible; returns its length.
fn path_of(found: &Module, path: &mut [u8; PATH_MAX]) -> usize {
    let name = found.name();
    let buffer = path.as_mut_ptr().cast::<c_char>();
    if name.is_empty() {
        // The executable.
        // SAFETY: the buffer has `PATH_MAX` bytes.
        let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), buffer, PATH_MAX) };
        return usize::try_from(length).unwrap_or(0);
    }
    if name.to_bytes().first() != Some(&b'/') {
        // SAFETY: `name` is a C string, and the buffer has `PATH_MAX` bytes, as `realpath` requires.
        let real = unsafe { libc::realpath(name.as_ptr(), buffer) };
        if !real.is_null() {
            return path.iter().position(|&byte| byte == 0).unwrap_or(PATH_MAX);
        }
    }
    let bytes = &name.to_bytes()[..name.to_bytes().len().min(PATH_MAX)];
    path[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// The rule for leaving the frame of the instruction at `pc`, from its module's mapped tables.
fn rule(found: &Module, pc: u64) -> Option<Rule> {
    // SAFETY: the bytes are used only during this call, while the calling frame keeps the module mapped.
    Tables::rule_in(found.unwind_index, pc, |address| unsafe { found.mapped_from(address) })
}
