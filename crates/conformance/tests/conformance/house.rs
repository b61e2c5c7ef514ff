//! Lists the repository's workspaces, packages and files, for the tests of its structure.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of the workspaces: the product, and the two that use it.
pub(crate) const WORKSPACES: [&str; 3] = [".", "fleet", "lab"];

/// A package of the repository.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// One of [`WORKSPACES`].
    pub(crate) workspace: String,
    pub(crate) manifest: PathBuf,
    /// Names of the packages it depends on, including those of tests and build scripts.
    pub(crate) dependencies: Vec<String>,
}

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's folder")
}

/// The folders of the crates, by their paths: `crates/gc`, `fleet`, `lab/bench`.
pub(crate) fn crates() -> BTreeMap<String, PathBuf> {
    let root = root();
    let below = |folder: &str| std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let folders = below("crates").chain(below("lab")).map(|entry| entry.path()).chain([root.join("fleet")]);
    let name = |path: &Path| path.strip_prefix(&root).expect("below the root").display().to_string();
    folders.filter(|path| path.join("Cargo.toml").is_file()).map(|path| (name(&path), path)).collect()
}

/// The files below `folder` with one of `endings`, without cargo's output.
pub(crate) fn files(folder: &Path, endings: &[&str], into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                files(&path, endings, into);
            }
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            into.push(path);
        }
    }
}

/// A file's text.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All packages, by `cargo metadata`. `None`, with a skip, without cargo.
pub(crate) fn packages() -> Option<Vec<Package>> {
    let of = |workspace| packages_of(workspace).map_err(vellum_conformance::skip).ok();
    let all: Option<Vec<Vec<Package>>> = WORKSPACES.into_iter().map(of).collect();
    Some(all?.into_iter().flatten().collect())
}

fn packages_of(workspace: &str) -> Result<Vec<Package>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = root().join(workspace).join("Cargo.toml");
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(&manifest)
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata on {}: {errors}", manifest.display());
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let package = |package: &Value| Package {
        name: text(&package["name"]),
        workspace: workspace.to_owned(),
        manifest: text(&package["manifest_path"]).into(),
        dependencies: package["dependencies"]
            .as_array()
            .expect("a list of dependencies")
            .iter()
            .map(|dependency| text(&dependency["name"]))
            .collect(),
    };
    Ok(metadata["packages"].as_array().expect("a list of packages").iter().map(package).collect())
}
