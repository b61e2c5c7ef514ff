//! The tree shows the architecture: who may lean on whom, checked from `cargo metadata`.

use serde_json::Value;
use std::process::Command;

/// The storeys of the house, top first. A crate may use only crates on lines below its own.
const STOREYS: &[&[&str]] = &[
    // Above everything: they look at the whole from outside, and nothing may use them.
    &["vellum-bench", "vellum-conformance", "vellum-fuzz", "vellum-scheme"],
    &["vellum-studies"],
    &["vellum-cli"],
    &["vellum-studies-options", "vellum-fleet"],
    &[
        "vellum-governor",
        "vellum-runtime",
        "vellum-recorder",
        "vellum-capi",
        "vellum-libgccpp",
        "vellum-static",
    ],
    &["vellum-libgc", "vellum-heap", "vellum-cost"],
    &["vellum-experiment"],
    &["vellum-timing"],
    &["vellum-reference", "vellum-malloc", "vellum-gc"],
    &["vellum-pager", "vellum-report"],
    &["vellum-pages", "vellum-measure", "vellum-process"],
    &["vellum-workset"],
    &["vellum-wire", "vellum-sys", "vellum-unwind", "vellum-random"],
    // Only tests use it.
    &["vellum-skip"],
];

/// Crates whose manifest has lints of its own, and why.
const OWN_LINTS: &[(&str, &str)] =
    &[("vellum-gc", LOOM), ("vellum-malloc", LOOM), ("vellum-pager", LOOM), ("vellum-sys", LOOM)];
const LOOM: &str = "cargo cannot add to inherited lints, and this crate must declare the configuration `loom`; the rest is the same list";

/// Crates that need neither kernel nor unsafe code of their own.
const PURE: &[&str] = &["vellum-measure", "vellum-random", "vellum-workset"];

fn storey(name: &str) -> Option<usize> {
    STOREYS.iter().position(|storey| storey.contains(&name))
}

/// The workspace's packages as cargo sees them. Cargo is on the path, or the test was started by it.
fn packages() -> Option<Vec<Value>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let asked = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path", manifest])
        .env_remove("LD_PRELOAD")
        .output();
    let said = match asked {
        Ok(said) if said.status.success() => said,
        other => {
            vellum_conformance::skip(format_args!("cargo metadata cannot be had: {other:?}"));
            return None;
        }
    };
    let metadata: Value = serde_json::from_slice(&said.stdout).expect("cargo writes JSON");
    Some(metadata["packages"].as_array().expect("a list of packages").clone())
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a package has a name")
}

#[test]
fn every_crate_leans_only_on_storeys_below_its_own() {
    let Some(packages) = packages() else { return };
    let mut wrong = Vec::new();
    for package in &packages {
        let user = name(package);
        let Some(own) = storey(user) else {
            wrong.push(format!("{user} has no storey in this test's table"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
            let used = name(dependency);
            if !used.starts_with("vellum-") {
                continue;
            }
            match storey(used) {
                Some(below) if below > own => {}
                _ => wrong.push(format!("{user} may not use {used}")),
            }
        }
    }
    assert!(packages.len() > 5, "cargo sees only {} crates", packages.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_check_can_fail() {
    assert!(storey("vellum-cli") < storey("vellum-pages"));
    assert!(storey("vellum-pages") < storey("vellum-sys"));
    assert_eq!(storey("vellum-nothing"), None);
}

#[test]
fn names_follow_folders_and_lints_are_the_workspaces() {
    let Some(packages) = packages() else { return };
    for package in &packages {
        let name = name(package);
        let manifest = package["manifest_path"].as_str().expect("a path");
        let short = name.strip_prefix("vellum-").expect("crates are called vellum-something");
        // The papers' experiments and the examples are no part of the product.
        let folder = match short {
            "scheme" => "examples/scheme".to_owned(),
            _ if short.starts_with("studies") => short.replace('-', "/"),
            _ => format!("crates/{short}"),
        };
        assert!(manifest.ends_with(&format!("/{folder}/Cargo.toml")), "{name} lives in {manifest}");
        let text = std::fs::read_to_string(manifest).expect("a manifest");
        let inherits = text
            .split("[lints]")
            .nth(1)
            .is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
        let documented = OWN_LINTS.iter().any(|(known, _)| *known == name);
        assert!(inherits != documented, "{name}: lints are inherited, or the reason stands in this test");
    }
}

/// Lints that a crate repeats because it cannot inherit them are the workspace's, all of them.
#[test]
fn own_lints_repeat_the_workspaces() {
    let root = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .expect("a manifest");
    let wanted: Vec<&str> = root
        .lines()
        .skip_while(|line| !line.starts_with("[workspace.lints"))
        .take_while(|line| !line.starts_with("[profile"))
        .filter(|line| line.contains('='))
        .collect();
    assert!(wanted.len() > 5, "{wanted:?}");
    for (name, _) in OWN_LINTS {
        let folder = name.strip_prefix("vellum-").expect("a crate's name");
        let path = format!("{}/../{folder}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let own = std::fs::read_to_string(path).expect("a manifest");
        for line in &wanted {
            assert!(own.lines().any(|found| found == *line), "{name} lacks the lint `{line}`");
        }
    }
}

#[test]
fn pure_crates_use_no_kernel() {
    let Some(packages) = packages() else { return };
    for package in packages.iter().filter(|package| PURE.contains(&name(package))) {
        for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
            let used = name(dependency);
            assert!(
                !["libc", "rustix", "vellum-sys"].contains(&used),
                "{} may not use {used}",
                name(package)
            );
        }
    }
}
