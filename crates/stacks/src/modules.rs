//! Finds the path of a module's file and its mapped unwinding tables. A module is the program or a library.

use core::ffi::c_char;
use vellum_sys::loader::Module;
use vellum_unwind::{Rule, Tables};

/// The longest path of a module.
pub const PATH_MAX: usize = 4096;

/// The path of a module's file: the executable's, if the loader has no name for the module. `resolves`: a
/// relative path is made absolute, which may allocate.
pub fn path_of<'a>(module: &'a Module, buffer: &'a mut [u8; PATH_MAX], resolves: bool) -> &'a [u8] {
    let name = module.name();
    let into = buffer.as_mut_ptr().cast::<c_char>();
    let length = if name.is_empty() {
        // SAFETY: the buffer has `PATH_MAX` bytes.
        let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), into, PATH_MAX) };
        usize::try_from(length).unwrap_or(0)
    } else {
        let is_relative = name.to_bytes().first() != Some(&b'/');
        // SAFETY: `name` is a C string, and the buffer has `PATH_MAX` bytes, as `realpath` requires.
        if !(resolves && is_relative && unsafe { !libc::realpath(name.as_ptr(), into).is_null() }) {
            return &name.to_bytes()[..name.to_bytes().len().min(PATH_MAX)];
        }
        buffer.iter().position(|&byte| byte == 0).unwrap_or(PATH_MAX)
    };
    &buffer[..length]
}

/// The rule for leaving the frame of the instruction at `pc`, from its module's mapped tables.
pub fn rule_of(module: &Module, pc: u64) -> Option<Rule> {
    // SAFETY: the bytes are used only during this call, while the calling frame keeps the module mapped.
    Tables::rule_in(module.unwind_index, pc, |address| unsafe { module.mapped_from(address) })
}
