//! Tests under strict commit accounting (`vm.overcommit_memory=2`), which is a setting of the whole machine.

use vellum_conformance::{compiled, served, skip, with_args};

/// The machine-wide setting is changed only on request, and always restored.
#[test]
fn strict_commitment() {
    const SETTING: &str = "/proc/sys/vm/overcommit_memory";
    struct PutBack(String);
    impl Drop for PutBack {
        fn drop(&mut self) {
            let _ = std::fs::write(SETTING, self.0.trim());
        }
    }
    if std::env::var_os("VELLUM_TEST_OVERCOMMIT").is_none() {
        return skip("vm.overcommit_memory=2 is machine-wide; VELLUM_TEST_OVERCOMMIT=1 tries it");
    }
    let before = std::fs::read_to_string(SETTING).expect("the setting can be read");
    if std::fs::write(SETTING, "2").is_err() {
        return skip("vm.overcommit_memory can only be set by root");
    }
    let _put_back = PutBack(before);
    let program = compiled("stress.c", &["-pthread"]);
    served(with_args(program, &["1", "2", "3000", "3"])).succeeded();
    let program = compiled("exhaustion.c", &["-pthread"]);
    for scenario in ["growing_to_the_limit", "used_up_map_entries"] {
        served(with_args(&program, &[scenario])).succeeded();
    }
}
