//! A test of the Slurm plugin: Lua calls it with `slurmctld`'s arguments, on a table of this crate's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use vellum_fleet::recommend::slurm;

const LUA: &str = "lua5.4";

#[test]
fn slurm_plugin_applies_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let needs: BTreeMap<String, f64> = [("1".to_owned(), 100.0 * 1048576.0), ("2".to_owned(), 1e8)].into();
    let table = slurm::table(&needs, "1|1000|train, \"big\"|COMPLETED\n2|1000|100%s|COMPLETED\n", 1, 0.1);
    assert_eq!(table.rows.len(), 2);
    std::fs::write(folder.path().join("table.csv"), table.csv()).unwrap();
    std::fs::write(
        folder.path().join("broken.csv"),
        "user,mib_per_node,jobs,name\n1000,99999999999,1,\"a\"\n",
    )
    .unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let plugin = here.join("../examples/fleet/job_submit.lua");
    let ran =
        Command::new(LUA).arg(here.join("tests/fleet/drive.lua")).arg(plugin).arg(folder.path()).output();
    let Ok(ran) = ran else { return vellum_skip::skip("there is no lua5.4 here (Debian: lua5.4)") };
    let (said, wrong) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && said.ends_with("passed\n"), "{said}{wrong}");
}
