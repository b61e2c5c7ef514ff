//! Whether this process may make a memory group.

use crate::Undoing;
use std::fs;
use std::io;
use std::path::Path;

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// Makes a memory group, called `name` and our process id, and removes it. Returns the version of control
/// groups.
///
/// # Errors
/// What failed. Version 2 may have its memory controller switched off.
pub fn attempt_group(name: &str) -> Result<u32, String> {
    let failed = |what: &str, source: io::Error| {
        format!(
            "no memory cgroup: {what} failed ({source}); it needs root and a memory controller in /sys/fs/cgroup"
        )
    };
    let is_v1 = Path::new(V1).join("memory.limit_in_bytes").exists();
    let (version, root, limit) = if is_v1 { (1, V1, "memory.limit_in_bytes") } else { (2, V2, "memory.max") };
    let path = Path::new(root).join(format!("{name}-{}", std::process::id()));
    fs::create_dir(&path).map_err(|source| failed("making it", source))?;
    let _undoing = Undoing::by("rmdir \"$1\"", &[path.as_os_str()]);
    let limited = fs::metadata(path.join(limit)).map_err(|source| failed("finding its limit", source));
    if fs::remove_dir(&path).is_err() {
        eprintln!("vellum: the cgroup {} is still there; rmdir it", path.display());
    }
    limited.map(|_| version)
}
