//! The last error of each thread as a text and a code, since C has no exceptions.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// The message of a function that received a null object.
const NO_OBJECT: &str =
    "a null pointer was given where an object is needed; did the function that makes it fail?";

/// Stores `why` as the thread's last error; returns -1.
pub(crate) fn failed(why: impl Display) -> c_int {
    // A C string cannot contain a NUL. Only a name given by the caller can bring one into a message.
    let message = CString::new(why.to_string().replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = message);
    -1
}

/// Stores `why` as the thread's last error; returns null.
pub(crate) fn none<T>(why: impl Display) -> *mut T {
    failed(why);
    std::ptr::null_mut()
}

/// Writes the found value to its place and returns 0; stores the reason without a value.
pub(crate) fn put<T>(place: &mut T, found: Result<T, impl Display>) -> c_int {
    match found {
        Ok(value) => {
            *place = value;
            0
        }
        Err(why) => failed(why),
    }
}

/// The object at `pointer`. Null is stored as the thread's last error.
///
/// # Safety
/// `pointer` is null or a live object of this type that is not used elsewhere during the borrow.
pub(crate) unsafe fn object<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: by `# Safety`, `pointer` is null or a live object that nothing else uses.
    let found = unsafe { pointer.as_mut() };
    if found.is_none() {
        failed(NO_OBJECT);
    }
    found
}

/// The object at `pointer`, to be read. Null is stored as the thread's last error.
///
/// # Safety
/// `pointer` is null or a live object of this type that does not change during the borrow.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: by `# Safety`, `pointer` is null or a live object that does not change.
    let found = unsafe { pointer.as_ref() };
    if found.is_none() {
        failed(NO_OBJECT);
    }
    found
}

pub(crate) fn handed_out<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// The object behind a pointer from [`handed_out`], which is now owned again; `None` for null.
///
/// # Safety
/// `pointer` is null, or came from [`handed_out`] and was not taken back before.
pub(crate) unsafe fn taken_back<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: by `# Safety`, `pointer` came from `Box::into_raw` in [`handed_out`] and is taken back once.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// The message of the calling thread's last failed call.
#[unsafe(no_mangle)]
pub extern "C" fn vel_measure_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
