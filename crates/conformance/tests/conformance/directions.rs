//! Tests that crates use only crates of lower layers, in all three workspaces (by `cargo metadata`).

use crate::house::{self, Package};
use std::path::Path;

/// The layers of the product, top first. A crate may use only crates of lower layers.
const FLOORS: &[&[&str]] = &[
    // Tests the whole product from outside; only `lab` uses it.
    &["vellum-conformance"],
    &["vellum-cli"],
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
    &["vellum-timing", "vellum-heapprofile"],
    &["vellum-reference", "vellum-malloc", "vellum-gc"],
    &["vellum-pager", "vellum-report"],
    &["vellum-pages", "vellum-measure", "vellum-process"],
    &["vellum-workset", "vellum-kernel", "vellum-stacks"],
    &["vellum-wire", "vellum-sys", "vellum-unwind", "vellum-random"],
    // Only tests use it.
    &["vellum-skip"],
];

/// Crates with lints in their own manifests, and the reason.
const OWN_LINTS: &[(&str, &str)] =
    &[("vellum-gc", LOOM), ("vellum-malloc", LOOM), ("vellum-pager", LOOM), ("vellum-sys", LOOM)];
const LOOM: &str = "cargo cannot add to inherited lints, and this crate must declare the configuration `loom`; the rest is the same list";

/// Crates that need neither the kernel nor unsafe code.
const PURE: &[&str] = &["vellum-measure", "vellum-random", "vellum-workset"];

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

/// The reason why `user` may not use `used`, both packages of this repository.
fn forbidden(user: &Package, used: &Package) -> Option<String> {
    let wrong = match (user.workspace.as_str(), used.workspace.as_str()) {
        (".", ".") => floor(&user.name) >= floor(&used.name),
        // The product uses neither of the others. The lab may measure the fleet.
        ("fleet", used) => used == "lab",
        (user, _) => user == ".",
    };
    wrong.then(|| format!("{} may not use {}", user.name, used.name))
}

#[test]
fn crates_use_only_lower_layers() {
    let Some(packages) = house::packages() else { return };
    let of = |name: &str| packages.iter().find(|package| package.name == name);
    let mut wrong = Vec::new();
    for user in &packages {
        if user.workspace == "." && floor(&user.name).is_none() {
            wrong.push(format!("{} is on no floor of this test's table", user.name));
        }
        wrong.extend(user.dependencies.iter().filter_map(|used| forbidden(user, of(used)?)));
    }
    assert!(packages.len() > 20, "cargo lists only {} crates", packages.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wrong_directions_are_detected() {
    let package = |name: &str, workspace: &str| Package {
        name: name.to_owned(),
        workspace: workspace.to_owned(),
        manifest: Default::default(),
        dependencies: Vec::new(),
    };
    let (pages, cli) = (package("vellum-pages", "."), package("vellum-cli", "."));
    let (fleet, papers) = (package("vellum-fleet", "fleet"), package("vellum-papers", "lab"));
    for (user, used) in
        [(&pages, &cli), (&pages, &pages), (&cli, &fleet), (&pages, &papers), (&fleet, &papers)]
    {
        assert!(forbidden(user, used).is_some(), "{} and {}", user.name, used.name);
    }
    assert_eq!(forbidden(&papers, &fleet), None);
    assert_eq!(forbidden(&cli, &pages), None);
    assert_eq!(forbidden(&fleet, &cli), None);
    assert_eq!(floor("vellum-nothing"), None);
}

#[test]
fn names_follow_folders_and_lints_are_the_workspaces() {
    let Some(packages) = house::packages() else { return };
    for Package { name, workspace, manifest, .. } in &packages {
        let short = name.strip_prefix("vellum-").expect("crates are called vellum-something");
        let folder = match workspace.as_str() {
            "." => Path::new("crates").join(short),
            "fleet" => Path::new("fleet").into(),
            other => Path::new(other).join(short),
        };
        let expected = house::root().join(folder).join("Cargo.toml");
        assert_eq!(manifest, &expected, "the place of {name}");
        let text = std::fs::read_to_string(manifest).expect("a manifest");
        let inherits = text
            .split("[lints]")
            .nth(1)
            .is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
        let documented = OWN_LINTS.iter().any(|(known, _)| known == name);
        assert!(inherits != documented, "{name}: lints are inherited, or the reason stands in this test");
    }
}

/// A crate that cannot inherit the workspace's lints must repeat each of these lints.
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
    let Some(packages) = house::packages() else { return };
    for package in packages.iter().filter(|package| PURE.contains(&package.name.as_str())) {
        for used in &package.dependencies {
            let kernel = ["libc", "rustix", "vellum-sys"].contains(&used.as_str());
            assert!(!kernel, "{} may not use {used}", package.name);
        }
    }
}
