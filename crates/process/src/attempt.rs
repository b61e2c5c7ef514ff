//! Tests whether this process may make a cgroup that controls memory.

use crate::Undoing;
use vellum_kernel::{Cgroup, GroupError, Version};

/// Makes a memory group, called `name` and our process id, and removes it. Returns the version of control
/// groups.
pub fn attempt_group(name: &str) -> Result<Version, GroupError> {
    let group = Cgroup::make(name)?;
    let path = group.path();
    let _undoing = Undoing::by("rmdir \"$1\"", &[path.as_os_str()]);
    if std::fs::remove_dir(path).is_err() {
        eprintln!("vellum: the cgroup {} is still there; rmdir it", path.display());
    }
    Ok(group.version())
}
