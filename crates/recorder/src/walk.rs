//! Finds the record of an operation, from the return address in its caller.
//!
//! ```text
//! return address ── has a record? ─────────────────────────────▶ record (the usual way: one probe)
//!        └─ is it the user's? ─ yes ─────────────── new record ─▶
//!                └─ no: step to the caller, and again ─▶ stack ─▶ record of the stack's hash
//!                        └─ an interpreter's: add the Python lines ─▶ stack ─▶ record of the stack's hash
//! ```
//!
//! Repeated stacks are not walked again: [`crate::memo`].
//!
//! A stack is walked to the first frame of the user's own source, or to its end if flame graphs are
//! requested; never further than [`FRAMES_MAX`]. A stack without a frame of the user's is recorded whole, and
//! the command chooses the frame to report.

use crate::asked::Asked;
use crate::record::{count, is_due};
use crate::spent::spending;
use crate::thread::{self, Thread};
use crate::{attach, memo, modules, process, python, table, timing};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_stacks::Known;
use vellum_unwind::{Cfa, Frame, SPREAD, mixed};
use vellum_wire::cost::{Due, Record, STACK_BIT};
use vellum_wire::log::{Entry, EntryKind, FRAMES_MAX, LINE_BIT, STACK_FRAMES_MAX};
use vellum_wire::operation::Operation;

/// The caller of an exported function: the stack address of the return address, and the frame pointer.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) frame: *const u64,
    pub(crate) bp: u64,
}

impl Caller {
    #[inline(always)]
    fn first(self) -> Frame {
        Frame { pc: self.pc(), sp: self.frame as u64 + 8, bp: self.bp }
    }

    #[inline(always)]
    fn pc(self) -> u64 {
        // SAFETY: `frame` is the stack pointer at entry, where the return address lies.
        unsafe { *self.frame }
    }
}

/// An operation in progress: its record, if it has one, and its start time, if it is timed.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Token {
    record: Option<&'static Record>,
    began: u64,
    entered: bool,
}

/// Blocks the recording of nested operations until [`leave`], or until a jump is found to have left the
/// operation. False if this call is itself nested, or cannot be recorded.
#[inline(always)]
fn enter(thread: &'static Thread, caller: Caller) -> bool {
    let at = caller.frame as usize;
    if thread.is_inside(at) {
        return false;
    }
    thread.close(at);
    thread.returns.set(caller.pc());
    if thread.word.get() != process::state().now() && !process::keeping_errno(|| attach::attach(thread)) {
        leave(thread);
        return false;
    }
    true
}

/// Ends the block that [`enter`] began.
#[inline(always)]
fn leave(thread: &Thread) {
    thread.open();
}

/// Counts an operation that needs only counting: it has a record, is not due to be timed, and is not
/// nested. Returns false, and does nothing, for all others.
#[inline(always)]
pub(crate) fn counted(asked: Asked, caller: Caller) -> bool {
    let thread = thread::this();
    if thread.now.get() != process::state().now() {
        return false;
    }
    let what = u64::from(asked.operation.bits()) | thread.epoch.get();
    table::find_near(thread, caller.pc(), what).is_some_and(|record| count_quickly(record, asked.bytes))
}

/// Like [`counted`], for a record that is not in its first slots. Try it after [`counted`]: in separate
/// functions each path saves fewer registers.
#[inline(always)]
pub(crate) fn counted_further(asked: Asked, caller: Caller) -> bool {
    let thread = thread::this();
    if thread.now.get() != process::state().now() {
        return false;
    }
    let what = u64::from(asked.operation.bits()) | thread.epoch.get();
    table::find(thread, caller.pc(), what).is_some_and(|record| count_quickly(record, asked.bytes))
}

/// Like [`counted`], for an operation of a library whose stack has a memo. Try it last.
#[inline(always)]
pub(crate) fn counted_by_stack(asked: Asked, caller: Caller) -> bool {
    let thread = thread::this();
    if thread.now.get() != process::state().now() {
        return false;
    }
    let what = u64::from(asked.operation.bits()) | thread.epoch.get();
    if let Some(record) = table::find(thread, caller.pc(), what)
        && let Some(record) = memo::recall(record, caller.frame)
    {
        return count_quickly(record, asked.bytes);
    }
    find_by_stack(thread, what, caller).is_some_and(|(_, record)| count_quickly(record, asked.bytes))
}

/// The place and the record of an operation whose stack has a record already. Apart from its callers, whose
/// shorter paths then save fewer registers.
#[inline(never)]
fn find_by_stack(thread: &Thread, what: u64, caller: Caller) -> Option<(u64, &'static Record)> {
    let place = place::<false>(caller, (what >> 32) as u32)?;
    Some((place, table::find(thread, place, what)?))
}

/// Counts the operation unless it is due to be timed.
#[inline(always)]
fn count_quickly(record: &Record, bytes: u64) -> bool {
    if is_due(record, record.count.load(Relaxed) + 1) {
        return false;
    }
    count(record, bytes);
    true
}

/// Counts an operation and begins to time it if due. Every token must be passed to [`end`].
#[inline(always)]
pub(crate) fn begin(asked: Asked, caller: Caller) -> Token {
    let thread = thread::this();
    if !enter(thread, caller) {
        return Token { record: None, began: 0, entered: false };
    }
    let Some(record) = locate(thread, asked.operation, caller) else {
        return Token { record: None, began: 0, entered: true };
    };
    count(record, asked.bytes);
    let began = if is_due(record, record.count.load(Relaxed)) { timing::begin() } else { 0 };
    Token { record: Some(record), began, entered: true }
}

#[inline(always)]
pub(crate) fn end(token: Token) {
    let thread = thread::this();
    if token.began != 0 {
        note(thread, token);
    }
    if token.entered {
        leave(thread);
    }
}

#[cold]
#[inline(never)]
fn note(thread: &Thread, token: Token) {
    let now = timing::end();
    if let Some(record) = token.record {
        timing::note(record, now.wrapping_sub(token.began), thread);
    }
}

/// An operation in progress whose kind depends on its result.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    likely: Option<&'static Record>,
    began: u64,
    entered: bool,
}

/// Begins an operation that is probably `likely`. It is timed when `likely` is due, or if `likely` is `None`.
#[inline(always)]
pub(crate) fn begin_pending(likely: Option<Operation>, caller: Caller) -> Pending {
    let thread = thread::this();
    if !enter(thread, caller) {
        return Pending { likely: None, began: 0, entered: false };
    }
    let likely = likely.and_then(|operation| locate(thread, operation, caller));
    let timed = likely.is_none_or(|record| is_due(record, record.count.load(Relaxed) + 1));
    Pending { likely, began: if timed { timing::begin() } else { 0 }, entered: true }
}

/// The end time of a pending operation, if it is timed.
#[inline(always)]
pub(crate) fn stop(pending: &Pending) -> u64 {
    if pending.began == 0 { 0 } else { timing::end() }
}

/// Ends a pending operation of `bytes` bytes. It was `operation`, or the likely one if that is `None`.
#[inline(always)]
pub(crate) fn end_pending(
    pending: Pending,
    ended: u64,
    operation: Option<Operation>,
    bytes: u64,
    caller: Caller,
) {
    if !pending.entered {
        return;
    }
    let thread = thread::this();
    let record = match operation {
        None => pending.likely,
        Some(operation) => locate(thread, operation, caller),
    };
    if let Some(record) = record {
        count(record, bytes);
        if pending.began != 0 {
            timing::note(record, ended.wrapping_sub(pending.began), thread);
        }
    }
    leave(thread);
}

/// The record of `operation` at `caller`. The thread must have a table.
#[inline(always)]
fn locate(thread: &'static Thread, operation: Operation, caller: Caller) -> Option<&'static Record> {
    let what = u64::from(operation.bits()) | thread.epoch.get();
    match table::find(thread, caller.pc(), what) {
        Some(record) if !memo::is_memo(record) => Some(record),
        _ => locate_by_stack(thread, what, caller),
    }
}

#[inline(never)]
fn locate_by_stack(thread: &'static Thread, what: u64, caller: Caller) -> Option<&'static Record> {
    let epoch = (what >> 32) as u32;
    let met = find_by_stack(thread, what, caller);
    let (place, record) = met.or_else(|| spending(|| meet(thread, what, caller)))?;
    if place & STACK_BIT != 0
        && let Some(steps) = steps(caller, epoch)
    {
        memo::remember(thread, caller.pc(), what, record, steps);
    }
    Some(record)
}

/// Determines the place of an operation that occurs for the first time, and makes its record.
#[cold]
fn meet(thread: &'static Thread, what: u64, caller: Caller) -> Option<(u64, &'static Record)> {
    let epoch = (what >> 32) as u32;
    let place = place::<true>(caller, epoch)?;
    let (record, is_new) = added(table::find_or_add(thread, place, what))?;
    if is_new && place & STACK_BIT != 0 {
        log_stack(place, epoch, caller);
    }
    Some((place, record))
}

/// The place of the operations of `caller`: the caller's address if it is the user's own, else the hash of
/// its stack. Facts that are missing are computed in time (`IN_TIME`), or else give `None`.
#[inline(always)]
fn place<const IN_TIME: bool>(caller: Caller, epoch: u32) -> Option<u64> {
    let mut hash = SPREAD ^ u64::from(epoch);
    let is_direct = climb::<IN_TIME>(caller, epoch, |word| hash = mixed(hash, word))?;
    Some(if is_direct { caller.pc() } else { hash | STACK_BIT })
}

/// Passes the words of the stack of `caller` to `take`: return addresses, and the keys of an interpreter's
/// lines. Returns whether the first address is the user's own. Facts are as of [`place`].
#[inline(always)]
fn climb<const IN_TIME: bool>(caller: Caller, epoch: u32, mut take: impl FnMut(u64)) -> Option<bool> {
    let whole = process::WHOLE_STACKS.load(Relaxed);
    let mut frame = caller.first();
    let mut has_lines = None;
    for depth in 0..FRAMES_MAX {
        let here = if IN_TIME { modules::of(frame.pc, epoch) } else { modules::known(frame.pc, epoch)? };
        if here.interprets() && has_lines.is_none() {
            has_lines =
                Some(if IN_TIME { python::all(whole, &mut take) } else { python::known(whole, &mut take)? });
        }
        let is_script = has_lines == Some(true);
        let is_last = (here.is_users() || is_script) && !whole;
        // An interpreter's instruction is excluded, as it may run other lines the next time.
        if is_last && depth == 0 && !here.interprets() {
            return Some(true);
        }
        take(frame.pc);
        if is_last {
            break;
        }
        let Some(above) = above(frame, here) else { break };
        frame = above;
    }
    Some(false)
}

/// The stack positions and values of the return addresses up to the user's own code. `None` if there are
/// too many, or if finding them needs more than the stack pointer.
fn steps(caller: Caller, epoch: u32) -> Option<[(u32, u64); memo::STEPS]> {
    if process::WHOLE_STACKS.load(Relaxed) {
        return None;
    }
    let mut steps = [(0, 0); memo::STEPS];
    let mut frame = caller.first();
    let mut known = modules::of(frame.pc, epoch);
    for step in &mut steps {
        // The same machine stack may run other lines of Python.
        if known.interprets() {
            return None;
        }
        if known.is_users() {
            break;
        }
        let Cfa::Sp(_) = known.rule()?.cfa else { return None };
        frame = above(frame, known)?;
        // The return address is the word below the caller's stack pointer.
        *step = (u32::try_from(frame.sp - 8 - caller.frame as u64).ok()?, frame.pc);
        known = modules::of(frame.pc, epoch);
    }
    (known.is_users() && !known.interprets()).then_some(steps)
}

#[inline(always)]
fn above(frame: Frame, known: Known) -> Option<Frame> {
    // SAFETY: a correct rule names words between the stack pointer and the end of the stack;
    // `Frame::caller` limits how far a wrong rule can reach.
    frame.caller(known.rule()?, |at| Some(unsafe { *(at as *const u64) }))
}

/// Enters a stack in the log: its hash, its return addresses, then the keys of its lines.
#[cold]
fn log_stack(place: u64, epoch: u32, caller: Caller) {
    let (mut words, mut lines) = ([place; 1 + STACK_FRAMES_MAX], [0; STACK_FRAMES_MAX]);
    let (mut length, mut count) = (1, 0);
    let take = |word| {
        let (list, used) =
            if word & LINE_BIT == 0 { (&mut words[..], &mut length) } else { (&mut lines[..], &mut count) };
        list[*used] = word;
        *used += 1;
    };
    climb::<true>(caller, epoch, take);
    words[length..][..count].copy_from_slice(&lines[..count]);
    process::log(&Entry { kind: EntryKind::Stack, words: &words[..length + count], texts: [&[]; 2] });
}

/// Counts an operation as lost if it found no room.
fn added<T>(found: Option<T>) -> Option<T> {
    if found.is_none()
        && let Some(ledger) = process::ledger()
    {
        ledger.head().lost.fetch_add(1, Relaxed);
    }
    found
}

/// Adds a record for `place` to the thread's table, without a check of that address.
pub(crate) fn adopt(thread: &Thread, place: u64, operation: Operation) {
    table::find_or_add(thread, place, u64::from(operation.bits()) | thread.epoch.get());
}

/// Makes the next operation of this kind at `place` due for timing.
pub(crate) fn make_due(thread: &Thread, place: u64, operation: Operation) {
    if let Some(record) = table::find(thread, place, u64::from(operation.bits()) | thread.epoch.get()) {
        let count = record.count.load(Relaxed);
        record.due.store(Due::new(count + 1, count).0, Relaxed);
    }
}

/// Must be called after a library was closed. If it was unmapped, another library may get its addresses.
pub(crate) fn note_unmapped() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let mut unmapped = 0u64;
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, into: *mut c_void) -> c_int {
        // SAFETY: `info` is the loader's record, and `into` the local variable passed below.
        unsafe { into.cast::<u64>().write((*info).dlpi_subs) };
        1
    }
    // SAFETY: `first` has the right signature, and `unmapped` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut unmapped).cast()) };
    if SEEN.swap(unmapped, Relaxed) != unmapped {
        process::begin_epoch();
    }
}
