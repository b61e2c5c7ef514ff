//! `vellum recommend slurm`: computes the memory that Slurm jobs need on a node, by user and job name.
//!
//! ```text
//! Prometheus: the need of each job, on the node where it is largest ─┐
//!                                                                    ├─▶ the largest need of each user and
//! sacct (accounting): user, name and end of each job ────────────────┘   name, plus a margin ─▶ table
//! ```
//!
//! A job's *need* is the memory recommended for its steps; steps that run at the same time on a node are
//! added up. Metrics have a job's number but not its name, so Slurm's accounting provides the names. If one
//! job of a name ran out of memory, the name gets no number, because its need is unknown.
//!
//! Invariants: a name with control characters is left out. Each row of the table is one line, with the
//! name as its last field, in quotes.

use super::decide::{History, Rules, Verdict, decide, most};
use crate::Error;
use crate::http::Server;
use crate::metrics::BY_AGE;
use crate::prometheus::rows;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use vellum_governor::families::{ADVISED, Family};

/// The interval at which Prometheus adds up the needs of steps. Shorter jobs may be missed.
const STEP: &str = "60s";
/// The maximum number of jobs, and the maximum length of a name.
const JOBS_MAX: usize = 10_000_000;
const NAME_MAX: usize = 1024;

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The user's number.
    pub user: u32,
    /// The job's name.
    pub name: String,
    /// Memory for each node, in MiB.
    pub mib: u64,
    /// The number of jobs behind the number.
    pub jobs: u64,
    /// The reason.
    pub reason: String,
}

/// The table and its notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The rows, by user and name.
    pub rows: Vec<Row>,
    /// The names without a number, with the reasons.
    pub notes: Vec<String>,
}

/// The memory that each job needs on its node with the largest need, in bytes, by the job's number.
///
/// # Errors
/// If the history cannot be read.
pub fn ask(prometheus: &Server, over: Duration) -> Result<BTreeMap<String, f64>, Error> {
    let over = over.as_secs().max(1);
    let of = |family: Family| format!("{family}{{slurm_job!=\"\"}}");
    let (advised, by_age) = (of(ADVISED), of(BY_AGE));
    // The larger of both for each step, or the one that exists.
    let need = format!("({advised} > {by_age}) or {by_age} or {advised}");
    let together = format!("sum by (instance, slurm_job) ({need})");
    let query = format!("max by (slurm_job) (max_over_time(({together})[{over}s:{STEP}]))");
    let mut needs = BTreeMap::new();
    for mut row in rows(prometheus, &query, None)? {
        if let (Some(job), Some(bytes)) = (row.take("slurm_job"), row.number()) {
            needs.insert(job, bytes);
        }
    }
    Ok(needs)
}

/// Parses the line `JobIDRaw|UID|JobName|State` of `sacct`; a name may contain bars.
fn job(line: &str) -> Option<(&str, u32, &str, &str)> {
    let (id, rest) = line.split_once('|')?;
    let (user, rest) = rest.split_once('|')?;
    let (name, state) = rest.rsplit_once('|')?;
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !name.is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_control);
    (is_number && fits).then_some((id, user.parse().ok()?, name, state))
}

/// Makes the table from the needs of jobs and the output of `sacct`. A row needs at least `least` jobs.
#[must_use]
pub fn table(needs: &BTreeMap<String, f64>, accounting: &str, least: u64, margin: f64) -> Table {
    #[derive(Default)]
    struct Kind {
        jobs: u64,
        most: Option<f64>,
        out_of_memory: u64,
    }
    let (mut kinds, mut table) = (BTreeMap::<(u32, &str), Kind>::new(), Table::default());
    let mut strange = 0_u64;
    for line in accounting.lines().take(JOBS_MAX).filter(|line| !line.is_empty()) {
        let Some((id, user, name, state)) = job(line) else {
            strange += 1;
            continue;
        };
        let kind = kinds.entry((user, name)).or_default();
        kind.out_of_memory += u64::from(state.starts_with("OUT_OF_MEM"));
        if let Some(need) = needs.get(id) {
            kind.jobs += 1;
            kind.most = most(kind.most, Some(*need));
        }
    }
    if strange > 0 {
        table
            .notes
            .push(format!("{strange} lines of the accounting are no jobs, or have names that are left out"));
    }
    let rules = Rules { least: Duration::ZERO, margin };
    for ((user, name), kind) in kinds {
        let mut note = |why: String| table.notes.push(format!("user {user}, {name}: left alone: {why}"));
        let Kind { jobs, most, out_of_memory } = kind;
        if out_of_memory > 0 {
            note(format!("{out_of_memory} of its jobs ran out of memory"));
            continue;
        }
        if jobs < least {
            note(format!("{jobs} of its jobs were watched; {least} are needed"));
            continue;
        }
        let history = History { known_seconds: Some(0.0), advised: most, ..History::default() };
        match decide(&history, None, &rules) {
            (Verdict::Set(bytes), reason) => {
                table.rows.push(Row {
                    user,
                    name: name.to_owned(),
                    mib: bytes.div_ceil(1 << 20),
                    jobs,
                    reason,
                });
            }
            (_, why) => note(why),
        }
    }
    table
}

impl Table {
    /// The table as comma-separated values, which the plugin reads.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "user,mib_per_node,jobs,name\n".to_owned();
        for Row { user, name, mib, jobs, .. } in &self.rows {
            let _ = writeln!(text, "{user},{mib},{jobs},\"{}\"", name.replace('"', "\"\""));
        }
        text
    }

    /// The table as JSON, with one row per line.
    #[must_use]
    pub fn json(&self) -> String {
        let line = |row: &Row| {
            let json = serde_json::json!({
                "user": row.user, "name": row.name, "bytes_per_node": row.mib << 20, "jobs": row.jobs,
                "reason": row.reason,
            });
            format!("{json}\n")
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1048576.0;

    #[test]
    fn row_has_largest_job_of_user_and_name() {
        let needs: BTreeMap<String, f64> = [
            ("1", 100.0 * MIB),
            ("2", 300.0 * MIB),
            ("3", 50.0 * MIB),
            ("4", 1.0 * MIB),
            ("5", f64::NAN),
            ("6", 10.0 * MIB),
            ("7", 10.0 * MIB),
        ]
        .map(|(job, need)| (job.to_owned(), need))
        .into();
        let accounting = "1|1000|train \"a\",|b|COMPLETED\n2|1000|train \"a\",|b|COMPLETED\n3|1001|x|COMPLETED\n\
            4|1002|oom|COMPLETED\n9|1002|oom|OUT_OF_MEMORY\n5|1003|nan|COMPLETED\n6|1003|nan|COMPLETED\n\
            7|1004|e\u{7}vil|COMPLETED\ngarbage\n7.batch|1|x|COMPLETED\n";
        let table = table(&needs, accounting, 2, 0.1);
        assert_eq!(table.rows.len(), 1, "{table:?}");
        assert_eq!((table.rows[0].mib, table.rows[0].jobs), (330, 2));
        assert_eq!(table.csv(), "user,mib_per_node,jobs,name\n1000,330,2,\"train \"\"a\"\",|b\"\n");
        let json: serde_json::Value = serde_json::from_str(table.json().trim()).unwrap();
        assert_eq!(json["bytes_per_node"], 330 << 20);
        let notes = table.notes.join("\n");
        for word in ["3 lines", "1 of its jobs were watched", "ran out of memory", "absurd"] {
            assert!(notes.contains(word), "{word}: {notes}");
        }
    }
}
