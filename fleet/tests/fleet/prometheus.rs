//! Tests of the queries of `recommend` and `plan`, against a real Prometheus with nine days of generated
//! history.

use crate::common::client;
use crate::common::node::until;
use crate::common::prometheus::Prometheus;
use std::fmt::Write;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};
use vellum_fleet::plan::{self, Row, Writer};
use vellum_fleet::recommend::{history, slurm};
use vellum_fleet::{Access, Server};

const MIB: f64 = 1048576.0;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// The time between two samples.
const EVERY: i64 = 120;

/// A series: the start of its labels and the rest, its first and last sample in seconds before now, and its
/// value at that age.
type Series = (&'static str, &'static str, (i64, i64), fn(i64) -> f64);

const WEB: &str =
    r#"instance="n1:1",name="web",namespace="shop",pod="web-5d4f8b9c6-x2k4z",container="nginx""#;
const NEW: &str = r#"instance="n2:1",name="new",namespace="shop",pod="new-0",container="main""#;
const MOVED: &str =
    r#"instance="n2:1",name="web",namespace="shop",pod="web-5d4f8b9c6-x2k4z",container="nginx""#;
const CRON: &str = r#"instance="n1:1",name="cron.service",unit="cron.service""#;
/// Two steps of a job at the same time, then one more; and a step on another node.
const STEP_0: &str = r#"instance="n1:1",name="7/0",slurm_job="7",slurm_step="0""#;
const STEP_1: &str = r#"instance="n1:1",name="7/1",slurm_job="7",slurm_step="1""#;
const STEP_2: &str = r#"instance="n1:1",name="7/2",slurm_job="7",slurm_step="2""#;
const ELSEWHERE: &str = r#"instance="n2:1",name="7/0",slurm_job="7",slurm_step="0""#;

const ALWAYS: (i64, i64) = (9 * DAY, 0);
const TOGETHER: (i64, i64) = (3 * DAY, 2 * DAY);
const SMALL: &str = r#",window="0.1""#;
const LARGE: &str = r#",window="12.8""#;

const HISTORY: [(&str, &[Series]); 8] = [
    (
        "vellum_job_advised_bytes",
        &[
            (
                WEB,
                "",
                ALWAYS,
                |ago| if (5 * DAY..6 * DAY).contains(&ago) { 150.0 * MIB } else { 100.0 * MIB },
            ),
            (MOVED, "", (2 * DAY, DAY), |_| 120.0 * MIB),
            (NEW, "", (2 * HOUR, 0), |_| 50.0 * MIB),
            (STEP_0, "", TOGETHER, |_| 100.0 * MIB),
            (STEP_1, "", TOGETHER, |_| 200.0 * MIB),
            (STEP_2, "", (DAY, HOUR), |_| 250.0 * MIB),
            (ELSEWHERE, "", TOGETHER, |_| 10.0 * MIB),
        ],
    ),
    (
        "vellum_job_advised_by_age_bytes",
        &[(WEB, "", ALWAYS, |_| 90.0 * MIB), (STEP_0, "", TOGETHER, |_| 130.0 * MIB)],
    ),
    (
        "vellum_job_limit_bytes",
        &[(WEB, "", ALWAYS, |ago| if ago > 6 * HOUR { 160.0 * MIB } else { 300.0 * MIB })],
    ),
    // The job stalled under the lower limit only.
    (
        "vellum_job_pressure_seconds_total",
        &[(WEB, r#",stall="full""#, ALWAYS, |ago| 0.1 * (9 * DAY - ago.max(8 * HOUR)) as f64)],
    ),
    (
        "vellum_job_curve_bytes",
        &[
            (WEB, SMALL, ALWAYS, |_| 40.0 * MIB),
            (WEB, LARGE, ALWAYS, |_| 95.0 * MIB),
            (CRON, SMALL, ALWAYS, |_| MIB),
        ],
    ),
    (
        "vellum_job_curve_fault_rate",
        &[(WEB, SMALL, ALWAYS, |_| 70.0), (WEB, LARGE, ALWAYS, |_| 2.0), (CRON, SMALL, ALWAYS, |_| 0.0)],
    ),
    ("vellum_job_watched_cpu_seconds_total", &[(WEB, "", ALWAYS, |ago| 0.5 * (9 * DAY - ago) as f64)]),
    ("vellum_job_resident_bytes", &[(WEB, "", ALWAYS, |_| 200.0 * MIB)]),
];

/// Starts a Prometheus with this history; `None` if Prometheus is missing.
fn prometheus(folder: &std::path::Path, now: i64) -> Option<(Prometheus, Server)> {
    let mut text = String::new();
    for (name, series) in HISTORY {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let _ = writeln!(text, "# TYPE {} {kind}", name.trim_end_matches("_total"));
        for (labels, more, (from, to), value) in series {
            let mut ago = *from;
            while ago >= *to {
                let _ = writeln!(text, "{name}{{{labels}{more}}} {} {}", value(ago), now - ago);
                ago -= EVERY;
            }
        }
    }
    text += "# EOF\n";
    fs::write(folder.join("history"), text).unwrap();
    if !Prometheus::import(folder, &folder.join("history"), &[]) {
        return None;
    }
    let prometheus = Prometheus::start(folder, "global: {}\n", |command| {
        command.arg("--storage.tsdb.retention.time=30d");
    })?;
    let server = client(&format!("http://{}", prometheus.listen), &Access::default());
    until("prometheus answers", || slurm::ask(&server, Duration::from_secs(60)).ok());
    Some((prometheus, server))
}

#[test]
fn queries_return_the_expected_history() {
    let _turn = crate::common::alone();
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    let Some((_prometheus, server)) = prometheus(folder.path(), now) else { return };

    let over = Duration::from_secs(8 * DAY as u64);
    let memory = history::containers(&server, None, over).unwrap();
    assert_eq!(memory.refused, 0);
    let pods = &memory.namespaces["shop"];
    let web = &pods["web-5d4f8b9c6-x2k4z"]["nginx"];
    assert_eq!((web.advised, web.by_age), (Some(150.0 * MIB), Some(90.0 * MIB)), "{web:?}");
    let days = web.known_seconds.unwrap() / DAY as f64;
    assert!((7.5..=8.1).contains(&days), "{days}");
    assert_eq!(web.stalled_under, Some(160.0 * MIB), "{web:?}");
    let new = &pods["new-0"]["main"];
    assert!(new.known_seconds.unwrap() <= 2.5 * HOUR as f64 && new.advised == Some(50.0 * MIB), "{new:?}");
    let other = history::containers(&server, Some("x\"} or vellum_job_info{a=\""), over).unwrap();
    assert!(other.namespaces.is_empty(), "a name stays within its quotes");

    let needs = slurm::ask(&server, over).unwrap();
    assert_eq!(
        needs,
        [("7".to_owned(), 330.0 * MIB)].into(),
        "both steps at once, the larger advice of each"
    );

    let path = folder.path().join("curves.parquet");
    let mut writer = Writer::new(File::create(&path).unwrap()).unwrap();
    let written = plan::export(&server, now, 3, &mut writer).unwrap();
    writer.finish().unwrap();
    let mut rows: Vec<Row> = Vec::new();
    assert_eq!(plan::read(&path, |row| rows.push(row.clone())).unwrap(), written);
    assert_eq!(rows.len(), 6, "two jobs in three hours: {rows:?}");
    let web = rows.iter().find(|row| row.name == "web").unwrap();
    assert_eq!((web.owner.as_str(), web.node.as_str()), ("shop", "n1:1"));
    assert_eq!(web.curve, vec![[0.1, 40.0 * MIB, 70.0], [12.8, 95.0 * MIB, 2.0]]);
    assert!((web.cpu_seconds - 1800.0).abs() < 5.0 && web.resident_bytes == 200.0 * MIB, "{web:?}");
    assert!(rows.iter().any(|row| row.owner == "cron.service" && row.cpu_seconds == 0.0));
}
