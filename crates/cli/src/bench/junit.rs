//! Writes the verdicts of a benchmark as JUnit XML, for CI systems, which show the results of tests.
//!
//! Each comparison is a test case, which fails if the program is shown to be slower than `--fail-above`
//! allows. An inconclusive comparison passes, because people soon ignore a test that fails on noise.

use super::compared::decisive;
use super::report::Report;
use std::time::Duration;
use vellum_report::escape;

pub(super) fn document(report: &Report) -> String {
    let seconds = Duration::from_nanos(report.how.took_ns).as_secs_f64();
    let told = decisive(report).filter_map(|row| {
        let program = report.programs.iter().find(|program| program.arm == row.arm)?;
        Some((program.name.clone(), format!("{} ({})", row.verdict, row.metric.words())))
    });
    let mut cases = String::new();
    let mut count = 0;
    for (name, verdict) in told {
        count += 1;
        let failed = report.gates.iter().find(|held| held.name == name && held.gate.failed());
        let failure = failed.map_or_else(String::new, |held| {
            format!("      <failure message=\"{}\"/>\n", escape(&held.words()))
        });
        cases += &format!(
            "    <testcase classname=\"vellum.bench\" name=\"{}\">\n{failure}      <system-out>{}</system-out>\n    </testcase>\n",
            escape(&name),
            escape(&verdict)
        );
    }
    let failures = report.failed().len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"vellum bench\" tests=\"{count}\" \
         failures=\"{failures}\" errors=\"0\" time=\"{seconds:.3}\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}
