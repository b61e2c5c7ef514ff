//! Looks up users and their groups by name, in the system's user database.

use crate::config::User;
use std::ffi::CString;
use std::mem::MaybeUninit;

const RECORD_BYTES: usize = 16 << 10;
/// The most groups a user is given.
const GROUPS_MAX: usize = 1024;

/// The user called `name`, with all groups; `None` if no such user exists.
pub(crate) fn lookup(name: &str) -> Option<User> {
    let called = CString::new(name).ok()?;
    let (mut record, mut found) = (MaybeUninit::<libc::passwd>::zeroed(), std::ptr::null_mut());
    let mut text = vec![0; RECORD_BYTES];
    // SAFETY: `called` is a C string; the record, its text and `found` live across the call, which writes
    // within them.
    let refused = unsafe {
        libc::getpwnam_r(called.as_ptr(), record.as_mut_ptr(), text.as_mut_ptr(), text.len(), &mut found)
    };
    if refused != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so the record is filled.
    let record = unsafe { record.assume_init() };
    let (mut groups, mut count) = (vec![0; GROUPS_MAX], GROUPS_MAX as libc::c_int);
    // SAFETY: at most `count` groups are written, and there is room for them.
    if unsafe { libc::getgrouplist(called.as_ptr(), record.pw_gid, groups.as_mut_ptr(), &mut count) } < 0 {
        return None;
    }
    groups.truncate(count as usize);
    Some(User { name: name.to_owned(), uid: record.pw_uid, gid: record.pw_gid, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_nonsense_is_not() {
        assert_eq!(lookup("root").map(|user| (user.uid, user.gid)), Some((0, 0)));
        assert_eq!(lookup("no such user"), None);
        assert_eq!(lookup("a\0b"), None);
    }
}
