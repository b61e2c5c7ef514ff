//! Tests of the reports of `vellum run`: their contents, and the streams and files that they go to.

use crate::common::{self, exits, files, program, report, run, said, sh, text, wide};
use crate::heap_page::check_alone;
use serde_json::Value;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;
use vellum_wire::{Attach, BOARD_ENV, Board, Counter};

/// Run by the tests below as a separate program: claims a slot on the board, as Vellum's library does.
#[test]
#[ignore = "the tests below run it, in processes of their own"]
fn seat_taker() {
    let path = std::env::var_os(BOARD_ENV).expect("vellum run names the board");
    let end = std::env::var("SEAT_TAKER_END").expect("a test says how to end");
    let file = std::fs::File::options().read(true).write(true).open(path).expect("the board opens");
    let length = file.metadata().unwrap().len() as usize;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of a file of this length, which is never unmapped.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, file.as_raw_fd(), 0) };
    assert_ne!(base, libc::MAP_FAILED);
    // SAFETY: `base` is page-aligned, and mapped readable and writable for `length` bytes.
    let board = unsafe { Board::open(base.cast(), length) }.expect("a board of this version");
    let slot = board.claim().expect("a seat");
    slot.set_comm(b"taker");
    slot.add(Counter::ExtentsOut, 10);
    slot.add(Counter::CacheHits, 8);
    slot.add(Counter::BytesWarm, 8 * 4096);
    slot.set(Counter::PeakLive, 5 << 20);
    slot.set(Counter::NowCached, 1 << 20);
    slot.count_size(5000, 3);
    slot.attach.store(Attach::Serving as u32, Relaxed);
    slot.pid.store(std::process::id(), Relaxed);
    if end == "crash" {
        std::process::abort();
    }
}

fn seat_takers(options: &[&str], end: &str, how_many: usize) -> std::process::Output {
    let me = std::env::current_exe().unwrap();
    let one =
        format!("'{}' --exact reports::seat_taker --ignored --test-threads 1 >/dev/null 2>&1;", me.display());
    run(options).args(["sh", "-c", &one.repeat(how_many)]).env("SEAT_TAKER_END", end).output().unwrap()
}

#[test]
fn counters_of_all_processes_are_summed_and_listed() {
    let (_place, [json, html]) = files(["r.json", "r.html"]);
    let ended = exits(0, seat_takers(&["-v", "--json", text(&json), "--report", text(&html)], "exit", 3));
    let report = report(&json);
    assert_eq!(report["attachment"]["seated_processes"], 3);
    assert_eq!(report["attachment"]["serving_processes"], 3);
    assert_eq!(report["pages"]["counters"]["extents_out"], 30);
    assert_eq!(report["pages"]["counters"]["peak_live_bytes"], 5 << 20, "peaks are not added up");
    assert!(report["pages"]["counters"].get("now_cached_bytes").is_none(), "no gauge of the dead");
    assert_eq!(report["pages"]["faults_avoided"], 24);
    assert_eq!(report["pages"]["block_sizes"][0]["from_bytes"], 4096);
    assert_eq!(report["pages"]["block_sizes"][0]["blocks"], 9);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 3);
    assert!(processes.iter().all(|process| process["name"] == "taker" && process["standing"] == "serving"));
    let said = said(&ended);
    assert!(said.contains(" 30  extents handed out") && said.contains("avoided 24"), "{said}");
    assert_eq!(wide(&said), None, "{said}");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("Sizes of requested blocks") && page.contains("<td>taker</td>"), "{page}");
}

#[test]
fn crashed_process_leaves_its_counters() {
    let (_place, [json]) = files(["r.json"]);
    seat_takers(&["-q", "--json", text(&json)], "crash", 1);
    let report = report(&json);
    assert_eq!(report["pages"]["counters"]["cache_hits"], 8);
}

#[test]
fn the_json_has_the_documented_fields() {
    let (_place, [json]) = files(["r.json"]);
    let ended = sh(&["-q", "--json", text(&json)], "echo out; exit 3");
    assert_eq!(ended.stdout, b"out\n");
    let report = report(&json);
    assert_eq!(report["schema"], "vellum.run/1");
    assert_eq!(report["command"], serde_json::json!(["sh", "-c", "echo out; exit 3"]));
    assert_eq!(report["outcome"], serde_json::json!({"kind": "exited", "status": 3}));
    assert_eq!(report["exit_status"], 3);
    for (part, field) in [
        ("time", "wall_ns"),
        ("memory", "peak_bytes"),
        ("memory", "largest_process_peak_bytes"),
        ("faults", "minor"),
    ] {
        assert!(report[part][field].as_u64().is_some_and(|value| value > 0), "{part}.{field}: {report}");
    }
    let columns = report["samples"].as_object().unwrap();
    let lengths: Vec<usize> = columns.values().map(|column| column.as_array().unwrap().len()).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    let mut fields = Vec::new();
    names(&report, &mut fields);
    common::documented("run-schema.md", fields);
}

/// Every field name in `value`, except the names of counters, which another table documents.
fn names(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                into.push(name.clone());
                names(value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        _ => {}
    }
}

#[test]
fn dash_writes_json_after_the_programs_output() {
    let ended = sh(&["-q", "--json", "-"], "echo first");
    let text = String::from_utf8(ended.stdout).unwrap();
    let (first, json) = text.split_once('\n').unwrap();
    assert_eq!(first, "first");
    assert_eq!(serde_json::from_str::<Value>(json).unwrap()["schema"], "vellum.run/1");
}

#[test]
fn page_loads_no_external_resources() {
    let (_place, [html]) = files(["r.html"]);
    sh(&["-q", "--report", text(&html)], ": '<script>&'; sleep 0.3");
    let page = std::fs::read_to_string(&html).unwrap();
    check_alone(&page);
    assert!(page.contains("&lt;script&gt;"), "the command is shown as text");
}

#[test]
fn programs_without_vellum_are_reported() {
    let source = "int main(void) { return 0; }\n";
    for (compiler, flags, obstacle, words) in [
        ("cc", &["-static"][..], "static", "statically linked"),
        ("cc", &["-fsanitize=address"], "sanitizer", "built with a sanitizer"),
    ] {
        let (_place, [json]) = files(["r.json"]);
        let Some(program) = program(compiler, flags, source) else { continue };
        let ended = run(&["--json", text(&json)]).arg(&program).output().unwrap();
        let said = said(&ended);
        assert!(ended.status.success(), "{said}");
        assert!(said.contains(&format!("ran without Vellum: it is {words}")), "{said}");
        let report = report(&json);
        let expected = if obstacle == "static" { "no_answer" } else { "not_preloaded" };
        assert_eq!(report["attachment"]["program"], expected, "{obstacle}");
    }
}

#[test]
fn comparison_reports_ratios_and_saves_every_run() {
    let (_place, [json, input]) = files(["c.json", "input"]);
    std::fs::write(&input, "first line\nsecond line\n").unwrap();
    let mut stdin = std::fs::File::open(&input).unwrap();
    std::io::Read::read_exact(&mut stdin, &mut [0; 11]).unwrap();
    let mut compare = run(&["--compare=5", "--seed", "42", "--json", text(&json)]);
    compare.args(["sh", "-c", "cat; test \"$(cat /dev/null)\" = ''"]).stdin(stdin);
    let ended = exits(0, compare.output().unwrap());
    assert_eq!(ended.stdout, b"second line\n", "the first run's output, from the given position, once");
    let report = report(&json);
    assert_eq!((&report["schema"], &report["seed"]), (&"vellum.compare/1".into(), &42.into()));
    assert_eq!((&report["pairs"], &report["pairs_asked"]), (&5.into(), &5.into()));
    assert_eq!(report["stopped_by"], Value::Null);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 15);
    for arm in ["without", "control", "with"] {
        assert_eq!(runs.iter().filter(|run| run["arm"] == arm).count(), 5);
    }
    let wall = &report["results"][0];
    assert_eq!(wall["metric"], "wall");
    let ratio = |field: &str| wall["ratio"][field].as_f64().unwrap();
    assert!(ratio("low") <= ratio("estimate") && ratio("estimate") <= ratio("high"));
    let said = said(&ended);
    assert!(said.contains("seed 42") && said.contains("on Vellum it takes"), "{said}");
    assert_eq!(wide(&said), None, "{said}");
    common::documented("run-schema.md", report.as_object().unwrap().keys());
}

#[test]
fn reports_fit_eighty_columns() {
    let many = said(&sh(&[], "for i in 1 2 3 4 5 6; do sleep 0.2 & done; wait; exit 3"));
    assert_eq!(wide(&many), None, "{many}");
}

#[test]
fn comparison_of_a_failing_command_stops_with_an_error() {
    let always = exits(3, sh(&["--compare=5"], "echo shown; echo bad >&2; exit 3"));
    assert_eq!(always.stdout, b"shown\n");
    assert!(said(&always).contains("failed in its warm-up without Vellum (exit status 3)"), "{always:?}");
    let with = exits(4, sh(&["--compare=5"], "test -z \"$VELLUM_BOARD\" || { echo bad >&2; exit 4; }"));
    assert!(said(&with).contains("failed in its warm-up on Vellum (exit status 4)"), "{}", said(&with));
    assert!(said(&with).ends_with("its output:\nbad\n"), "{}", said(&with));
}

#[test]
fn long_command_is_cut_and_special_one_quoted() {
    let ended = run(&[]).args(["printf", "%s", "two\nlines", &"x".repeat(500)]).output().unwrap();
    let first = said(&ended).lines().next().unwrap().to_owned();
    assert!(
        first.starts_with("vellum: printf %s $'two\\nlines' xxx") && first.ends_with("...: exit status 0"),
        "{first}"
    );
}
