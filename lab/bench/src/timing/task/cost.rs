//! The tasks that measure the overhead of `vellum cost` on a program that does little but allocate: in one
//! thread, or in threads and forked children.
//!
//! The program runs alone, preloaded with Vellum's allocator, and under `vellum cost` with either
//! allocator. Recording is compared with the same allocator without recording, since a faster allocator
//! would hide the overhead. The program reports its own CPU time, which excludes the work of `vellum`
//! after its end. The true numbers of malloc and free calls are known.

use super::{Given, Kernel, TaskError, figure, finish, json, program};
use crate::Metrics;
use crate::timing::tools::Tool;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const NAME: &str = "vellum cost";
/// The allocator, beside the program `vellum`.
const LIBRARY: &str = "libvellum.so";

/// A program whose number of operations is given.
struct Subject {
    words: Vec<OsString>,
    /// The source file of the operations.
    source: &'static str,
    /// Number of mallocs, and of frees, in that file.
    pairs: u64,
}

/// Runs the kernel once in each way.
pub(super) fn cost(given: &Given) -> Result<Metrics, TaskError> {
    let (size, calls) = (given.number("a")?, given.number("calls")?);
    let mut words = program(given, size, calls)?;
    words[1] = Kernel::Alloc.name().into();
    measured(given, &Subject { words, source: "kernels.c", pairs: size * calls })
}

/// Runs threads and forked children once in each way.
pub(super) fn family(given: &Given) -> Result<Metrics, TaskError> {
    let [threads, forks, pairs] = ["threads", "forks", "pairs"].map(|name| given.number(name));
    let (threads, forks, pairs) = (threads?, forks?, pairs?);
    let arguments = [threads, forks, pairs].map(|number| number.to_string().into());
    let words = [given.tool(Tool::Family)?.into_os_string()].into_iter().chain(arguments).collect();
    measured(given, &Subject { words, source: "family.c", pairs: (threads + forks) * pairs })
}

fn measured(given: &Given, subject: &Subject) -> Result<Metrics, TaskError> {
    let fail = |operation| move |source| TaskError::System { operation, source };
    let scratch =
        tempfile::tempdir_in(given.folder()?).map_err(fail("making a folder for vellum's result"))?;
    let vellum = given.tool(Tool::Vellum)?;
    let library =
        vellum.canonicalize().map_err(fail("looking for the program vellum"))?.with_file_name(LIBRARY);
    let mut metrics = Metrics::new();
    let mut preloaded = Command::new(&subject.words[0]);
    preloaded.env("LD_PRELOAD", library);
    for (name, mut command) in [("plain", Command::new(&subject.words[0])), ("preloaded", preloaded)] {
        let (output, _) = finish(command.args(&subject.words[1..]))?;
        metrics.set(&format!("{name}_cpu_ns"), cpu_ns(&output.stdout)?);
    }
    let mut wrong = 0.0;
    for (name, options) in [("vellum", &[][..]), ("own", &["--own-allocator"])] {
        let (report, text) = (scratch.path().join("cost.json"), scratch.path().join("cost.txt"));
        let mut command = Command::new(&vellum);
        command.arg("cost").args(options).arg("--json").arg(&report).arg("--output").arg(text).arg("--");
        let (output, seconds) = finish(command.args(&subject.words))?;
        metrics.set(&format!("{name}_cpu_ns"), cpu_ns(&output.stdout)?);
        metrics.set(&format!("{name}_command_seconds"), seconds);
        wrong += miscounted(&report, subject)?;
    }
    metrics.set("miscounted", wrong);
    Ok(metrics)
}

fn cpu_ns(line: &[u8]) -> Result<f64, TaskError> {
    figure("program", &json("program", line)?, "/cpu_ns")
}

/// The absolute errors of the report's mallocs and frees for the subject's file, summed. An estimated count
/// is not used, so its error is the whole count.
fn miscounted(report: &Path, subject: &Subject) -> Result<f64, TaskError> {
    let bytes = std::fs::read(report)
        .map_err(|source| TaskError::System { operation: "reading vellum's report", source })?;
    let value = json(NAME, &bytes)?;
    let off = |operation| count(&value, subject.source, operation).abs_diff(subject.pairs) as f64;
    Ok(["malloc", "free"].map(off).iter().sum())
}

/// The report's count of an operation that lines of `source` do directly, without those inside the C library.
fn count(report: &Value, source: &str, operation: &str) -> u64 {
    let items = report["items"].as_array().map_or(&[][..], Vec::as_slice);
    let own = items.iter().filter(|item| {
        let file = item["place"]["file"].as_str().unwrap_or_default();
        file.ends_with(source)
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
        let of_kernels = |operation| count(&report, "kernels.c", operation);
        assert_eq!((of_kernels("malloc"), of_kernels("free")), (12, 0));
        assert_eq!(count(&Value::Null, "kernels.c", "malloc"), 0);
    }
}
