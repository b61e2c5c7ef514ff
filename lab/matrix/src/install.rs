//! Installs missing packages from Debian's archive.
//!
//! Packages with servers start them when installed, unless `/usr/sbin/policy-rc.d` forbids it. If there is
//! no such file, one that forbids it is made for the time of the installation.

use super::Error;
use super::list::Row;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Packages in one call. If a batch fails, its packages are installed one by one.
const BATCH: usize = 8;
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs the missing packages of `rows`; returns the names of packages that failed.
///
/// # Errors
/// If we are not root, or the policy file cannot be written.
pub fn install(rows: &[Row]) -> Result<Vec<String>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let wanted: BTreeSet<&String> = rows.iter().flat_map(|row| &row.packages).collect();
    let missing: Vec<&String> = wanted.into_iter().filter(|package| !installed(package)).collect();
    let _policy = Policy::forbid()?;
    let mut failed = Vec::new();
    for batch in missing.chunks(BATCH) {
        eprintln!("installing {}", batch.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "));
        if !apt_get(batch) {
            failed.extend(batch.iter().filter(|package| !apt_get(&[package])).map(|name| (*name).clone()));
        }
    }
    Ok(failed)
}

fn installed(package: &str) -> bool {
    let asked = Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]).output();
    asked.is_ok_and(|said| said.stdout == b"installed")
}

fn apt_get(packages: &[&String]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600"]);
    command
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// No package starts a service before this value is dropped.
struct Policy {
    ours: bool,
}

impl Policy {
    fn forbid() -> Result<Policy, Error> {
        let path = Path::new(POLICY);
        let ours = !path.exists();
        if ours {
            fs::write(path, "#!/bin/sh\nexit 101\n").map_err(Error::file("writing", path))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
                .map_err(Error::file("opening", path))?;
        }
        Ok(Policy { ours })
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.ours {
            let _ = fs::remove_file(POLICY);
        }
    }
}
