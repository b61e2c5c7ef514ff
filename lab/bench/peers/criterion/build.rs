//! Links the archive of kernels that `VELLUM_BENCH_KERNELS` names: the one the benchmark was built with.

use std::path::Path;

const ARCHIVE: &str = "VELLUM_BENCH_KERNELS";

fn main() {
    println!("cargo:rerun-if-env-changed={ARCHIVE}");
    let archive = std::env::var(ARCHIVE).expect("VELLUM_BENCH_KERNELS names the archive of kernels: build by way of vellum-bench");
    println!("cargo:rerun-if-changed={archive}");
    let folder = Path::new(&archive).parent().expect("an archive lies in a folder");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=vellum_timing_kernels");
}
