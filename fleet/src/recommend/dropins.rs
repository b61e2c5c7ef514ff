//! Writes drop-ins for systemd: a file for each service, with `MemoryHigh` and the reason for its value.
//!
//! Invariants: a file is written as a whole or not at all ([`Output`]). Only files named
//! [`FILE`] are read or written. Only names of services become paths.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};
use vellum_report::{Output, OutputError};

/// The name of each drop-in.
pub const FILE: &str = "50-vellum.conf";
const KEY: &str = "MemoryHigh=";
/// The maximum length of a unit's name in systemd.
const NAME_MAX: usize = 255;

/// True if this is the name of a service and nothing else, because a label may have any value.
#[must_use]
pub fn is_service(unit: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    let front = unit.strip_suffix(".service").unwrap_or_default();
    unit.len() <= NAME_MAX && !front.is_empty() && !front.starts_with('.') && front.bytes().all(known)
}

fn path(directory: &Path, unit: &str) -> PathBuf {
    directory.join(format!("{unit}.d")).join(FILE)
}

/// The limit in an earlier drop-in of ours.
#[must_use]
pub fn current(directory: &Path, unit: &str) -> Option<u64> {
    let text = fs::read_to_string(path(directory, unit)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(KEY)?.trim().parse().ok())
}

/// Writes a drop-in; returns its path.
///
/// # Errors
/// If the drop-in cannot be written.
pub fn write(directory: &Path, unit: &str, bytes: u64, reason: &str) -> Result<PathBuf, Error> {
    let path = path(directory, unit);
    let text = format!(
        "# Written by `vellum recommend systemd`; it will be written again.\n# {}\n[Service]\n{KEY}{bytes}\n",
        reason.replace(char::is_control, "?")
    );
    let made = fs::create_dir_all(path.with_file_name("")).map_err(|why| why.to_string());
    let put = || Output::prepare(&path)?.write(&text);
    let made = made.and_then(|()| put().map_err(|why: OutputError| why.source.to_string()));
    let way_out = "choose another --directory, or write to this one as root";
    made.map_err(|why| Error::of(&path, why, way_out)).map(|()| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_services_become_paths() {
        for good in
            ["nginx.service", "postgresql@15-main.service", "dev-disk-by\\x2duuid.service", "a.b:c.service"]
        {
            assert!(is_service(good), "{good}");
        }
        let long = format!("{}.service", "x".repeat(300));
        for wrong in [
            "",
            ".service",
            "../x.service",
            "a/b.service",
            "..service",
            "a b.service",
            "a\n.service",
            "init.scope",
            "x",
            "ä.service",
            &long,
        ] {
            assert!(!is_service(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn written_dropin_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(current(folder.path(), "a.service"), None);
        let at = write(folder.path(), "a.service", 7 << 20, "evil\n[Service]\nExecStart=/bin/sh").unwrap();
        assert_eq!(at, folder.path().join("a.service.d").join(FILE));
        assert_eq!(current(folder.path(), "a.service"), Some(7 << 20));
        let text = fs::read_to_string(&at).unwrap();
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 2, "{text}");
        write(folder.path(), "a.service", 8 << 20, "more").unwrap();
        assert_eq!(current(folder.path(), "a.service"), Some(8 << 20));
        assert_eq!(fs::read_dir(at.parent().unwrap()).unwrap().count(), 1, "nothing temporary is left");
        fs::write(&at, "nonsense\nMemoryHigh=lots\n").unwrap();
        assert_eq!(current(folder.path(), "a.service"), None);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(write(&file, "a.service", 1, "x").unwrap_err().to_string().contains("--directory"));
    }
}
