//! The last error of each thread as a text and a code, since C has no exceptions.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// What a function that was given no object says.
const NO_OBJECT: &str =
    "a null pointer was given where an object is needed; did the function that makes it fail?";

/// Remembers `why`; -1.
pub(crate) fn failed(why: impl Display) -> c_int {
    // A NUL cannot be said in C; none of the messages has one unless a name given by the caller does.
    let message = CString::new(why.to_string().replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = message);
    -1
}

/// Remembers `why`; null.
pub(crate) fn none<T>(why: impl Display) -> *mut T {
    failed(why);
    std::ptr::null_mut()
}

/// The object at `pointer`; or null is remembered as the error.
///
/// # Safety
/// `pointer` is null or an object of this type that is not used elsewhere meanwhile.
pub(crate) unsafe fn object<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: the caller vouches for it.
    let found = unsafe { pointer.as_mut() };
    if found.is_none() {
        failed(NO_OBJECT);
    }
    found
}

/// The same for one that is only read.
///
/// # Safety
/// `pointer` is null or an object of this type that nobody changes meanwhile.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller vouches for it.
    let found = unsafe { pointer.as_ref() };
    if found.is_none() {
        failed(NO_OBJECT);
    }
    found
}

pub(crate) fn handed_out<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes back what was handed out; none for null.
///
/// # Safety
/// `pointer` is null, or came from [`handed_out`] and was not taken back before.
pub(crate) unsafe fn taken_back<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller vouches for it.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// What the calling thread's last failed call failed for.
#[unsafe(no_mangle)]
pub extern "C" fn vel_measure_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
