//! The workload that measures the overhead of `vellum cost` on a program that does little but allocate.
//!
//! The program runs four times: with its own allocator and with Vellum's (preloaded), each without and
//! with `vellum cost`. The overhead is the difference between two runs with the same allocator, since a
//! faster allocator would hide the overhead. The program reports its own CPU time, which excludes the work
//! of `vellum` after its end. The true numbers of malloc and free calls are known and compared with those
//! recorded.

use super::{failed, figure, finish, json, program, tool};
use crate::Metrics;
use crate::timing::tools::Tool;
use serde_json::Value;
use std::process::Command;
use vellum_campaign::worker::{Params, WorkError};

/// The allocator, beside the program `vellum`.
const LIBRARY: &str = "libvellum.so";
/// The source file of the kernels.
const SOURCE: &str = "kernels.c";

/// Runs the kernel once in each way.
pub(crate) fn cost(params: &Params) -> Result<Metrics, WorkError> {
    let (size, calls) = (params.number("a")? as u64, params.number("calls")? as u64);
    let words = program(params, size, calls)?;
    let scratch = tempfile::tempdir_in(params.word("tools")).map_err(failed("making a folder"))?;
    let vellum = tool(params, Tool::Vellum);
    let library = vellum.canonicalize().map_err(failed("the program vellum"))?.with_file_name(LIBRARY);
    let mut metrics = Metrics::new();
    let mut preloaded = Command::new(&words[0]);
    preloaded.env("LD_PRELOAD", library);
    for (name, mut command) in [("plain", Command::new(&words[0])), ("preloaded", preloaded)] {
        let (output, _) = finish(command.args(&words[1..]))?;
        metrics.set(&format!("{name}_cpu_ns"), cpu_ns(&output.stdout)?);
    }
    let mut wrong = 0.0;
    for (name, options) in [("vellum", &[][..]), ("own", &["--own-allocator"])] {
        let (report, text) = (scratch.path().join("cost.json"), scratch.path().join("cost.txt"));
        let mut command = Command::new(&vellum);
        command.arg("cost").args(options).arg("--json").arg(&report).arg("--output").arg(text).arg("--");
        let (output, seconds) = finish(command.args(&words))?;
        metrics.set(&format!("{name}_cpu_ns"), cpu_ns(&output.stdout)?);
        metrics.set(&format!("{name}_command_seconds"), seconds);
        let report =
            json("vellum cost", &std::fs::read(&report).map_err(failed("reading vellum's report"))?)?;
        // An estimated count is not used, so its error is the whole count.
        let off = |operation| count(&report, operation).abs_diff(size * calls) as f64;
        wrong += ["malloc", "free"].map(off).iter().sum::<f64>();
    }
    metrics.set("miscounted", wrong);
    Ok(metrics)
}

fn cpu_ns(line: &[u8]) -> Result<f64, WorkError> {
    figure("program", &json("program", line)?, "/cpu_ns")
}

/// The report's count of an operation that lines of the kernels do directly, without those inside the C
/// library.
fn count(report: &Value, operation: &str) -> u64 {
    let items = report["items"].as_array().map_or(&[][..], Vec::as_slice);
    let own = items.iter().filter(|item| {
        let file = item["place"]["file"].as_str().unwrap_or_default();
        file.ends_with(SOURCE)
            && item["via"].is_null()
            && item["operation"] == operation
            && item["count_is_scaled"] == false
    });
    own.filter_map(|item| item["count"].as_u64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_counts_of_the_kernels_are_compared() {
        let item = |file: &str, operation: &str, count: u64, scaled: bool| {
            serde_json::json!({
                "place": {"kind": "line", "file": file, "line": 3, "function": "f"},
                "operation": operation, "count": count, "count_is_scaled": scaled,
            })
        };
        let report = serde_json::json!({"items": [
            item("/x/kernels.c", "malloc", 7, false),
            item("/x/kernels.c", "malloc", 5, false),
            item("/x/kernels.c", "free", 12, true),
            item("/x/program.c", "malloc", 1, false),
            {"place": {"file": "/x/kernels.c"}, "via": "strdup", "operation": "malloc", "count": 3,
             "count_is_scaled": false},
        ]});
        let of_kernels = |operation| count(&report, operation);
        assert_eq!((of_kernels("malloc"), of_kernels("free")), (12, 0));
        assert_eq!(count(&Value::Null, "malloc"), 0);
    }
}
