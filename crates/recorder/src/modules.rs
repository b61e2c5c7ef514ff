//! The modules (the executable and its libraries) that instructions lie in.
//!
//! glibc's `_dl_find_object` (2.35) names an address's module without a lock or an allocation. A module is
//! entered in the log when one of its instructions is first seen; the log's reader finds instructions'
//! modules by address and epoch.
//!
//! Invariants: entries are only added, under the loader's own rules (an address has one module at a time); an
//! entry is published by `end`, its last word.

use crate::known::Known;
use crate::next::Next;
use crate::{ask, process, python};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use vellum_sys::segment;
use vellum_unwind::{Rule, Tables};
use vellum_wire::cost::{Answer, EntryKind, MODULE_WORDS};
use vellum_wire::script::is_interpreter;

/// Modules that are known at a time; a program with more has the rest's instructions looked up each time.
const MODULES_MAX: usize = 1024;
/// The longest path, with its end.
const PATH_MAX: usize = 4096;

struct Module {
    start: AtomicU64,
    end: AtomicU64,
    epoch: AtomicU32,
    answer: AtomicU32,
    interprets: AtomicBool,
    logged_at: AtomicU64,
}

static MODULES: [Module; MODULES_MAX] = [const {
    Module {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        epoch: AtomicU32::new(0),
        answer: AtomicU32::new(0),
        interprets: AtomicBool::new(false),
        logged_at: AtomicU64::new(0),
    }
}; MODULES_MAX];

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct Found {
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

static FIND: Next = Next::of(c"_dl_find_object");

/// Looks for what will be needed. Not later: glibc before 2.35 does not have it, its `dlsym` frees the
/// message of the last failure, and would do so twice if a look-up were made within that very `free`.
pub(crate) fn prepare() {
    FIND.get();
}

/// Works out what there is to know of the instruction that returns to `pc`.
#[cold]
pub(crate) fn describe(pc: u64, epoch: u32) -> Known {
    process::keeping_errno(|| describe_now(pc, epoch))
}

fn describe_now(pc: u64, epoch: u32) -> Known {
    let Some(found) = find(pc - 1) else {
        return Known::new(false, false, None);
    };
    // SAFETY: the loader's record of a module that is mapped.
    let bias = unsafe { &*found.link }.bias;
    let module = module(&found, bias, epoch);
    let is_users = module.is_some_and(|module| {
        match Answer::from_u32(module.answer.load(Relaxed)) {
            Answer::WalkModule => return false,
            Answer::StopModule => return true,
            _ => {}
        }
        let answer = ask::ask(module.logged_at.load(Relaxed), pc - 1 - bias);
        if matches!(answer, Answer::WalkModule | Answer::StopModule) {
            module.answer.store(answer as u32, Relaxed);
        }
        // With nobody to ask, the program itself is as good a guess as any.
        matches!(answer, Answer::Stop | Answer::StopModule | Answer::None)
    });
    let interprets = module.is_some_and(|module| module.interprets.load(Relaxed));
    Known::new(is_users, interprets, rule(&found, pc - 1))
}

fn find(address: u64) -> Option<Found> {
    let function = FIND.get_known();
    if function.is_null() {
        return None;
    }
    let mut found = MaybeUninit::<Found>::zeroed();
    // SAFETY: the signature of glibc's function.
    let function =
        unsafe { transmute::<*const c_void, unsafe extern "C" fn(u64, *mut Found) -> c_int>(function) };
    // SAFETY: there is a place for the answer, which is all zeros or filled in.
    let found = unsafe { (function(address, found.as_mut_ptr()) == 0).then(|| found.assume_init()) }?;
    (!found.link.is_null()).then_some(found)
}

/// The entry of a module, made if there is none.
fn module(found: &Found, bias: u64, epoch: u32) -> Option<&'static Module> {
    if let Some(known) = known(found, epoch) {
        return Some(known);
    }
    // Before the lock is taken: the loader may be waiting for somebody who waits for it.
    let mut path = [0u8; PATH_MAX];
    let length = path_of(found, &mut path);
    let file = path[..length].rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let words: [u64; MODULE_WORDS] = [u64::from(epoch), found.start, found.end, bias];
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

fn known(found: &Found, epoch: u32) -> Option<&'static Module> {
    MODULES.iter().take_while(|module| module.end.load(Acquire) != 0).find(|module| {
        module.start.load(Relaxed) == found.start
            && module.end.load(Relaxed) == found.end
            && module.epoch.load(Relaxed) == epoch
    })
}

/// The path of a module's file, absolute if it can be; its length in `path`.
fn path_of(found: &Found, path: &mut [u8; PATH_MAX]) -> usize {
    // SAFETY: the loader's record and its string, both there as long as the module is mapped.
    let name = unsafe { CStr::from_ptr((*found.link).name) };
    let buffer = path.as_mut_ptr().cast::<c_char>();
    if name.is_empty() {
        // The executable.
        // SAFETY: the buffer is as long as said.
        let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), buffer, PATH_MAX) };
        return usize::try_from(length).unwrap_or(0);
    }
    if name.to_bytes().first() != Some(&b'/') {
        // SAFETY: a C string, and a buffer of PATH_MAX bytes as realpath wants.
        let real = unsafe { libc::realpath(name.as_ptr(), buffer) };
        if !real.is_null() {
            return path.iter().position(|&byte| byte == 0).unwrap_or(PATH_MAX);
        }
    }
    let bytes = &name.to_bytes()[..name.to_bytes().len().min(PATH_MAX)];
    path[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// How to leave the frame of the instruction at `pc`, by its module's tables as they are mapped.
fn rule(found: &Found, pc: u64) -> Option<Rule> {
    let index_at = found.unwind_index as u64;
    if index_at == 0 {
        return None;
    }
    let index = mapped_from(found, index_at)?;
    let entries_at = Tables::entries_of(index, index_at)?;
    Tables::new(index, index_at, mapped_from(found, entries_at)?, entries_at).rule_at(pc)
}

/// The bytes from `address` to the end of the part of the module that it lies in.
fn mapped_from(found: &Found, address: u64) -> Option<&'static [u8]> {
    // SAFETY: the loader's record of a module that is mapped.
    let bias = unsafe { &*found.link }.bias;
    // SAFETY: the loader says so, and nobody uses the bytes for longer than the module is mapped.
    unsafe { segment::mapped_from(found.start as usize, bias as usize, address as usize) }
}
