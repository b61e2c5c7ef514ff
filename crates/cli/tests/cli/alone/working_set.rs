//! Tests of the working set that `vellum run` reports. They run alone, because they check the observing
//! thread's share of the CPU time, which other programs would change.

use crate::common::{documented, exits, files, has, report, said, sh, text};
use crate::watch::accessed_bits;

#[test]
fn run_reports_its_working_set() {
    if !accessed_bits() {
        return;
    }
    let (_place, [json, html]) = files(["r.json", "r.html"]);
    // Eight seconds of the shell's own CPU time, on any machine; two are enough for a program this small.
    let script = "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
        set -- $(cat /proc/$$/stat); [ ${14} -gt 800 ] && break; done";
    let ended = exits(0, sh(&["--verbose", "--json", text(&json), "--report", text(&html)], script));
    let document = report(&json);
    let set = &document["working_set"];
    let source = set["source"].as_str().unwrap_or_default();
    assert!(["page-tables", "accessed-bits"].contains(&source), "{source}: {}", said(&ended));
    assert!(set["curve"].as_array().unwrap().len() >= 2, "{set}");
    assert!(set["cost"]["share"].as_f64() < Some(0.05), "{set}");
    has(&said(&ended), &["working", "knee", "watching", "MiB recommended"]);
    assert!(std::fs::read_to_string(&html).unwrap().contains("Working set"));
    documented("watch.md", set.as_object().unwrap().keys());
    let unwatched = sh(&["--no-watch", "--json", text(&json)], "exit 0");
    assert!(report(&json)["working_set"].is_null() && unwatched.status.success());
}
