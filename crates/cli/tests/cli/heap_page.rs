//! Tests of the HTML pages of `vellum heap` and `vellum run --heap`, also in pictures by a headless browser.

use crate::common::browser::{browser, draw, pictures};
use crate::common::held::{SOURCES, compiled, heap, is_built, runtime};
use crate::common::{self, VELLUM, exits, has, report, said, text};
use std::path::Path;
use std::process::Command;

/// Checks that a page is one file that loads nothing and runs no scripts.
pub(crate) fn check_alone(page: &str) {
    for foreign in ["http:", "https:", "<script", "@import", "url(", "<img", "<link", "src="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for tag in ["section", "table", "figure", "svg", "tr", "g", "p", "dl"] {
        let (opened, closed) = (format!("<{tag}>"), format!("</{tag}>"));
        let opened = page.matches(&opened).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&closed).count(), "<{tag}>");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn page_lists_holders_and_resident_memory() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("held.c", &[]) else { return };
    exits(0, heap(&["-i", "16K", "-o", "heap.html"], &[text(&program)], place.path()));
    let page = std::fs::read_to_string(place.path().join("heap.html")).unwrap();
    check_alone(&page);
    assert_eq!(page.matches("<svg class=\"flame\"").count(), 2, "at the peak and at the end");
    has(
        &page,
        &["Held at the peak", "Held at the end", "whole held.c:", "leak held.c:", "blocks in use", "in all"],
    );
    // Freed blocks are not held at the end.
    let end = &page[page.find("Held at the end").unwrap()..page.find("All allocations").unwrap()];
    assert!(end.contains("leak held.c:") && !end.contains("whole"), "{end}");
}

#[test]
fn run_report_includes_a_requested_heap_profile() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("held.c", &[]) else { return };
    let run = |options: &[&str]| {
        let mut command = Command::new(VELLUM);
        command.arg("run").args(options).args(["--report", "run.html", "--json", "run.json", "--"]);
        command.arg(&program).current_dir(place.path()).env_remove("LD_PRELOAD").env("VELLUM_LIB", runtime());
        let output = exits(0, command.output().expect("vellum starts"));
        let page = std::fs::read_to_string(place.path().join("run.html")).unwrap();
        check_alone(&page);
        (said(&output), page, report(&place.path().join("run.json")))
    };
    let (words, page, document) = run(&["--heap=16K"]);
    for part in ["whole held.c:", "blocks in use", "resident at the end"] {
        assert!(words.contains(part) && page.contains(part), "no {part}: {words}");
    }
    assert_eq!(common::wide(&words), None, "{words}");
    let resident = document["heap"]["resident"].as_object().unwrap();
    let kinds = resident.iter().filter(|(key, _)| key.ends_with("_bytes") && *key != "sum_bytes");
    let sum: u64 = kinds.map(|(_, bytes)| bytes.as_u64().unwrap()).sum();
    assert_eq!(Some(sum), resident["sum_bytes"].as_u64());
    assert_eq!(document["heap"]["interval_bytes"], 16384);
    let (words, page, document) = run(&[]);
    let is_there = words.contains("held at") || page.contains("flame\"") || document.get("heap").is_some();
    assert!(!is_there, "{words}");
}

#[test]
fn program_that_cannot_be_profiled_has_a_note_and_no_tables() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(VELLUM);
    command.args(["run", "--heap", "--no-watch", "--report", "run.html", "--", "true"]);
    command.current_dir(place.path()).env("VELLUM_LIB", common::harmless_library());
    let output = exits(0, command.output().expect("vellum starts"));
    let page = std::fs::read_to_string(place.path().join("run.html")).unwrap();
    check_alone(&page);
    assert!(said(&output).contains("could not be profiled") && page.contains("could not be profiled"));
    assert!(!said(&output).contains("held at") && !page.contains("Held at"), "{}", said(&output));
}

#[test]
fn browser_draws_the_page_and_the_flame_graph() {
    let Some(browser) = browser().filter(|_| is_built()) else { return };
    let place = tempfile::tempdir().unwrap();
    if Command::new("/usr/bin/python3").arg("-V").output().is_err() {
        return vellum_skip::skip("/usr/bin/python3 cannot be started");
    }
    std::fs::copy(Path::new(SOURCES).join("orders.py"), place.path().join("orders.py")).unwrap();
    let outputs = ["-i", "32K", "-o", "heap.html", "-o", "heap.svg"];
    exits(0, heap(&outputs, &["/usr/bin/python3", "orders.py"], place.path()));
    let pictures = pictures(place.path());
    let page = place.path().join("heap.html");
    let (light, dark) = (pictures.join("heap-page.png"), place.path().join("dark.png"));
    draw(&browser, &page, &light, (1000, 800), false);
    draw(&browser, &page, &dark, (1000, 800), true);
    assert_ne!(std::fs::read(light).unwrap(), std::fs::read(dark).unwrap(), "dark mode is dark");
    let flame = std::fs::read_to_string(place.path().join("heap.svg")).unwrap();
    let drawing = roxmltree::Document::parse(&flame).expect("well-formed");
    let side = |name| drawing.root_element().attribute(name).and_then(|side| side.parse::<u32>().ok());
    let size = side("width").zip(side("height")).expect("whole numbers");
    assert!(size.1 < 800, "slivers make it {size:?} high");
    draw(&browser, &place.path().join("heap.svg"), &pictures.join("heap-flame.png"), size, false);
}
