//! The fast part of the matrix: programs that have shown different faults, run without Vellum and with it.
//!
//! `lab/target/debug/matrix` runs the whole matrix, after `lab/build`; docs/matrix.md explains the
//! comparison.

use vellum_matrix::{Options, table};

#[test]
fn fast() {
    let out = std::env::temp_dir().join(format!("vellum-matrix-{}", std::process::id()));
    let options = Options { fast: true, jobs: 2, out: out.clone(), ..Options::default() };
    let results = vellum_matrix::run(&options, &|row, _| match &row.skipped {
        Some(why) => vellum_conformance::skip(format_args!("{}: {why}", row.name)),
        None => println!("{}", table::line(row)),
    })
    .expect("the matrix runs");
    let wrong: Vec<String> =
        results.iter().filter(|row| row.differs() || row.fault.is_some()).map(table::line).collect();
    assert!(wrong.is_empty(), "outputs are in {}:\n{}", out.display(), wrong.join("\n"));
    // Removes the folder if it is empty: it has files if something differed.
    let _ = std::fs::remove_dir(&out);
}
