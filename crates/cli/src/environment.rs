//! Changes to the environment variables with which a program is started, such as `LD_PRELOAD`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use vellum_process::library::companions;

/// Changes a variable of an environment, or adds it.
pub(crate) fn edit(
    env: &mut Vec<(OsString, OsString)>,
    name: &str,
    change: impl FnOnce(Option<&OsStr>) -> OsString,
) {
    match env.iter_mut().find(|(known, _)| known == name) {
        Some((_, value)) => *value = change(Some(value)),
        None => env.push((name.into(), change(None))),
    }
}

fn parts(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    list.as_bytes().split(|&b| b == b':' || b == b' ').map(OsStr::from_bytes)
}

/// `first`, then the old list, unless `first` is in it already (a run inside a run).
pub(crate) fn prepend(first: &OsStr, old: Option<&OsStr>) -> OsString {
    let old = old.unwrap_or_default();
    if parts(old).any(|part| part == first) {
        return old.into();
    }
    let mut list = first.to_os_string();
    if !old.is_empty() {
        list.push(":");
        list.push(old);
    }
    list
}

/// `first`, then the old list without it: `first` must precede every allocator.
pub(crate) fn move_to_front(first: &OsStr, old: Option<&OsStr>) -> OsString {
    let mut list = first.to_os_string();
    for part in parts(old.unwrap_or_default()).filter(|part| !part.is_empty() && *part != first) {
        list.push(":");
        list.push(part);
    }
    list
}

/// Adds libraries that the preloaded ones need with this machine's C library to the end of `LD_PRELOAD`.
pub(crate) fn preload_companions(env: &mut Vec<(OsString, OsString)>) {
    for name in companions() {
        edit(env, "LD_PRELOAD", |old| {
            let old = old.unwrap_or_default();
            if parts(old).any(|part| part == *name) { old.into() } else { append(name, Some(old)) }
        });
    }
}

/// The old list, then `last`.
pub(crate) fn append(last: &str, old: Option<&OsStr>) -> OsString {
    let mut list = old.unwrap_or_default().to_os_string();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(last);
    list
}
