//! Facts about an instruction: whether it belongs to the user's source, and how to leave its frame.
//!
//! They are computed once for each instruction, from its module's unwinding tables and the command's answer.
//! A module (program or library) is entered in the log when one of its instructions is first seen. The log's
//! reader finds an instruction's module by address and epoch (the number of earlier unmappings of modules).

use crate::next::first;
use crate::{ask, process, python};
use vellum_stacks::{Facts, Known, PATH_MAX, key, path_of, rule_of};
use vellum_sys::PAGE;
use vellum_sys::loader::{self, Module};
use vellum_wire::cost::Answer;
use vellum_wire::log::{Entry, EntryKind};
use vellum_wire::script::is_interpreter;

/// By the key of an instruction: a [`Known`].
static INSTRUCTIONS: Facts<{ 1 << 17 }> = Facts::new();
/// By the key of a module's range: the command's [`Answer`] about the whole module, [`INTERPRETS`],
/// and the offset of its entry in the log.
static MODULES: Facts<{ 1 << 11 }> = Facts::new();
const ANSWER: u64 = (1 << 3) - 1;
const INTERPRETS: u64 = 1 << 3;
const OFFSET_SHIFT: u32 = 4;

/// Makes all look-ups that will be needed, at start. A later look-up could run inside a `free`: `dlsym` of
/// glibc before 2.35 frees the message of the last failure there, and would free it twice.
pub(crate) fn prepare() {
    loader::find_by(first(loader::FIND));
}

/// The facts about the instruction that returns to `pc`, computed now if they are missing.
pub(crate) fn of(pc: u64, epoch: u32) -> Known {
    Known(INSTRUCTIONS.of(key(pc, epoch), || process::keeping_errno(|| describe(pc, epoch)).0))
}

/// The facts about the instruction that returns to `pc`, if they are in the table.
#[inline(always)]
pub(crate) fn known(pc: u64, epoch: u32) -> Option<Known> {
    INSTRUCTIONS.known(key(pc, epoch)).map(Known)
}

#[cold]
fn describe(pc: u64, epoch: u32) -> Known {
    let Some(found) = loader::module(pc - 1) else {
        return Known::new(false, false, None);
    };
    // The length as well: a library that the C library unloads by itself makes room for another in the same
    // epoch.
    let module_key = key(found.start ^ ((found.end - found.start) / PAGE as u64), epoch);
    let module = MODULES.of(module_key, || log_module(&found, epoch));
    let answer = match Answer::from_u32((module & ANSWER) as u32) {
        // Without an entry in the log, the command cannot be asked.
        Answer::None if module == 0 => Answer::WalkModule,
        Answer::None => {
            let answer = ask::ask(module >> OFFSET_SHIFT, pc - 1 - found.bias);
            if matches!(answer, Answer::WalkModule | Answer::StopModule) {
                MODULES.set(module_key, module | answer as u64);
            }
            answer
        }
        known => known,
    };
    // Without an answer, instructions of the program itself count as the user's.
    let is_users = matches!(answer, Answer::Stop | Answer::StopModule | Answer::None);
    Known::new(is_users, module & INTERPRETS != 0, rule_of(&found, pc - 1))
}

/// Enters a module in the log; 0 without room.
fn log_module(module: &Module, epoch: u32) -> u64 {
    let mut buffer = [0; PATH_MAX];
    let path = path_of(module, &mut buffer, true);
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let interprets = if python::is_there() && is_interpreter(file) { INTERPRETS } else { 0 };
    let words = [u64::from(epoch), module.start, module.end, module.bias];
    let entry = Entry { kind: EntryKind::Module, words: &words, texts: [path, &[]] };
    process::log(&entry).map_or(0, |at| at << OFFSET_SHIFT | interprets)
}
