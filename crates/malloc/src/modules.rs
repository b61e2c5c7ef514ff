//! Finds the unwind rule of an instruction, in the mapped tables of its module (the program or a library).
//! With these rules, `backtrace` walks the stack of the thread that misused memory.

use vellum_sys::loader::{self, Module};
use vellum_unwind::{Rule, Tables};

/// Looks for what will be needed, while the loader's lock can be taken.
pub(crate) fn prepare() {
    // SAFETY: a C string, and a handle that `dlsym` takes.
    loader::find_by(unsafe { libc::dlsym(libc::RTLD_DEFAULT, loader::FIND.as_ptr()) });
}

/// How to leave the frame of the instruction at `pc`, in `module`.
pub(crate) fn rule(module: &Module, pc: u64) -> Option<Rule> {
    // SAFETY: nobody uses the bytes for longer than the module is mapped, whose instruction is on the stack.
    Tables::rule_in(module.unwind_index, pc, |address| unsafe { module.mapped_from(address) })
}
