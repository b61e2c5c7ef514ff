//! Finds Python interpreters, for tests that run them under Vellum.

use std::path::PathBuf;
use std::process::Command;

/// The installed interpreters of supported versions: their files and versions. None, with a skip, without
/// one.
pub(crate) fn pythons() -> Vec<(PathBuf, String)> {
    let names = ["/usr/bin/python3", "python3", "python3.11", "python3.12", "python3.13"].map(PathBuf::from);
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from).unwrap_or_default().join("versions");
    let others = std::fs::read_dir(root).into_iter().flatten().flatten();
    let others = others.map(|entry| entry.path().join("bin/python3"));
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for name in names.into_iter().chain(others) {
        let mut asked = Command::new(&name);
        asked.args(["-c", "import sys; print(sys.executable, '%d.%d' % sys.version_info[:2])"]);
        let Ok(output) = asked.output() else { continue };
        let words = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Some((file, version)) = words.rsplit_once(' ') else { continue };
        let is_known = ["3.11", "3.12", "3.13"].contains(&version);
        if is_known && !found.iter().any(|(_, known)| known == version) {
            found.push((PathBuf::from(file), version.to_owned()));
        }
    }
    if found.is_empty() {
        vellum_skip::skip("no Python of 3.11 to 3.13 is here");
    }
    found
}
