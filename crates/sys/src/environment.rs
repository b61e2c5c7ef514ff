//! Environment variables, ignored in a program that has more rights than its user.
//!
//! Such a program (set-user-ID, file capabilities) must not follow the user's variables: they could name
//! files for it to open and change. The kernel marks such a program (`AT_SECURE`).

use core::ffi::CStr;

/// True if the program has rights that its caller does not have.
pub fn is_secure() -> bool {
    // SAFETY: the call takes no pointers; the C library answers from the auxiliary vector of the kernel.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The value of the environment variable `name`, if there is one and it may be believed.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    if is_secure() {
        return None;
    }
    // SAFETY: `name` is a C string; the environment is only read, before the program can change it.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: getenv's answer is a C string of the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}
