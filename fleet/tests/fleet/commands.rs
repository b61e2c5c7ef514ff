//! Tests of the command lines of `vellum plan` and `vellum recommend`: their output and their errors.

use crate::common::{fails, printed};
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use vellum_fleet::plan::{Row, Writer};

const MIB: f64 = 1048576.0;

/// Two owners: the containers of one lose nothing with less memory, those of the other do.
fn curves(path: &Path) {
    let mut writer = Writer::new(File::create(path).unwrap()).unwrap();
    for hour in 0..24 {
        for number in 0..40 {
            let faults = if number < 20 { [0.01, 0.005, 0.0] } else { [4000.0, 900.0, 0.0] };
            let point = |at: usize| [[0.1, 0.2, 0.4][at], [100.0, 200.0, 400.0][at] * MIB, faults[at]];
            let row = Row {
                hour_ms: 1_760_000_400_000 + hour * 3_600_000,
                node: format!("n{}", number % 4),
                owner: if number < 20 { "calm".into() } else { "hungry\u{7}".into() },
                name: format!("c{number}"),
                cpu_seconds: 600.0,
                resident_bytes: 500.0 * MIB,
                curve: (0..3).map(point).collect(),
            };
            writer.push(row).unwrap();
        }
    }
    writer.finish().unwrap();
}

#[test]
fn a_plan_is_printed_and_written_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curves.parquet");
    curves(&path);
    let path = path.to_str().unwrap();
    let said = printed(&["plan", "--node", "4GiB", path]);
    for word in [
        "960 container-hours of 40 containers in 24 hours",
        "nodes of 4.00 GiB",
        "Who pays at 2.00 %",
        "hungry?",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let json = printed(&["plan", "--slowdown", "1%,5%", "--json", path, path]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "vellum.plan/1");
    assert_eq!(
        (&json["container_hours"], &json["rows_left_out"]),
        (&960.into(), &960.into()),
        "a second time is none"
    );
    let plans = json["plans"].as_array().unwrap();
    let of = |at: usize, key: &str| plans[at][key].as_f64().unwrap();
    assert!(
        of(0, "mean_bytes") >= of(1, "mean_bytes") && of(0, "mean_bytes") <= of(0, "each_mean_bytes") * 1.02
    );
    assert!(of(0, "mean_bytes") >= of(0, "least_mean_bytes"));
    let calm = plans[0]["owners"].as_array().unwrap().iter().find(|owner| owner["name"] == "calm").unwrap();
    let gets = calm["mean_bytes"].as_f64().unwrap() / 20.0 / MIB;
    assert!((100.0..102.0).contains(&gets), "those who lose nothing give all: {gets}");
}

#[test]
fn invalid_arguments_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let nobody = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    std::fs::write(at("garbage"), "garbage").unwrap();
    let empty = at("empty");
    Writer::new(File::create(&empty).unwrap()).unwrap().finish().unwrap();
    for (args, words) in [
        (vec!["plan", "/nowhere/x"], "/nowhere/x"),
        (vec!["plan", &at("garbage")], "vellum plan export"),
        (vec!["plan", &empty], "no row has a curve"),
        (
            vec!["plan", "export", "--prometheus", &nobody, "--over", "1h", "--output", &at("out")],
            "--prometheus",
        ),
        (vec!["recommend", "kubernetes", "--dry-run"], "kubectl proxy"),
        (vec!["recommend", "kubernetes", "--api", &nobody, "--prometheus", &nobody], "nothing was changed"),
        (
            vec!["recommend", "kubernetes", "--api", "https://127.0.0.1:1", "--api-ca-file", "/nowhere/ca"],
            "/nowhere/ca",
        ),
        (vec!["recommend", "slurm", "--jobs", "/nowhere/jobs"], "--jobs /nowhere/jobs"),
        (
            vec!["recommend", "systemd", "--prometheus", &nobody, "--directory", &at("d")],
            "nothing was changed",
        ),
        (vec!["recommend", "systemd", "--prometheus", "ftp://x:1"], "https://HOST:PORT"),
        (vec!["recommend", "systemd", "--token-file", "/nowhere/t"], "--token-file /nowhere/t"),
        (vec!["plan"], ""),
        (vec!["recommend"], ""),
        (vec!["recommend", "slurm"], ""),
        (vec!["plan", "--slowdown", "0%", "x"], ""),
    ] {
        fails(&args, words);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing temporary is left");
}
