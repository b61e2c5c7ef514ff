//! Tests of `vellum cost` on real programs. A program's source has the expected counts in comments, such as
//! `//= malloc=10:640` (ten calls, 640 bytes).

use crate::common::recorded::{SOURCES, compiled, cost, is_built, measured, preloaded};
use crate::common::{exits, files, has, out, out_of_success, refused, said, text, vellum};
use crate::python;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// Operations by line, file name and kind.
type Counts = BTreeMap<(String, u64, String), u64>;

/// The counts in the source of that name.
fn expected(source: &str) -> Counts {
    expected_figures(source, 0)
}

/// The counts in the source of that name, or, as the figure 1, the bytes where given.
fn expected_figures(source: &str, figure: usize) -> Counts {
    let contents = std::fs::read_to_string(Path::new(SOURCES).join(source)).unwrap();
    let mut counts = Counts::new();
    for (index, line) in contents.lines().enumerate() {
        let Some((_, words)) = line.split_once("//=") else { continue };
        for word in words.split_whitespace() {
            let (kind, figures) = word.split_once('=').expect("kind=count");
            let Some(figure) = figures.split(':').nth(figure) else { continue };
            counts.insert((source.to_owned(), index as u64 + 1, kind.to_owned()), figure.parse().unwrap());
        }
    }
    assert!(!counts.is_empty());
    counts
}

/// The report's counts for that source: page faults only, or all other operations.
fn counted(report: &Value, source: &str, faults: bool) -> Counts {
    summed(report, source, faults, "count")
}

/// The outcome and the report of a program that needs no folder.
fn measured_alone(status: i32, options: &[&str], program: &Path) -> (Output, Value) {
    measured(status, options, &[text(program)], tempfile::tempdir().unwrap().path())
}

/// The sums of a field over the items of that source.
fn summed(report: &Value, source: &str, faults: bool, field: &str) -> Counts {
    let mut counts = Counts::new();
    for item in report["items"].as_array().unwrap() {
        let kind = item["operation"].as_str().unwrap();
        let file = item["place"]["file"].as_str().unwrap_or_default();
        if Path::new(file).file_name().is_none_or(|name| name != source)
            || kind.starts_with("fault") != faults
        {
            continue;
        }
        let key = (source.to_owned(), item["place"]["line"].as_u64().unwrap(), kind.to_owned());
        *counts.entry(key).or_default() += item[field].as_u64().unwrap_or(0);
    }
    counts
}

/// The counts, with all kinds that begin with `prefix` merged into one.
fn renamed(counts: Counts, prefix: &str) -> Counts {
    let mut renamed = Counts::new();
    for ((file, line, kind), count) in counts {
        let kind = if kind.starts_with(prefix) { prefix.to_owned() } else { kind };
        *renamed.entry((file, line, kind)).or_default() += count;
    }
    renamed
}

/// The sum of the counts of the items that satisfy `is`.
fn sum(report: &Value, is: impl Fn(&Value) -> bool) -> u64 {
    let items = report["items"].as_array().unwrap().iter().filter(|item| is(item));
    items.map(|item| item["count"].as_u64().unwrap()).sum()
}

fn at_line<'a>(report: &'a Value, source: &str, contains: &str) -> Vec<&'a Value> {
    let contents = std::fs::read_to_string(Path::new(SOURCES).join(source)).unwrap();
    let line =
        contents.lines().position(|line| line.contains(contains)).expect("the line is there") as u64 + 1;
    let here = |item: &&Value| {
        item["place"]["line"] == line
            && item["place"]["file"].as_str().is_some_and(|file| file.ends_with(&format!("/{source}")))
    };
    report["items"].as_array().unwrap().iter().filter(here).collect()
}

#[test]
fn c_is_counted_exactly_line_by_line() {
    // Also optimised, at fixed addresses, and with older debug information.
    for flags in [&["-g", "-O0"][..], &["-g", "-O2"], &["-g", "-O2", "-no-pie", "-gdwarf-4"]] {
        let Some(program) = compiled("cc", flags, &["lines.c"], "lines") else { return };
        for options in [&[][..], &["--own-allocator"], &["--folded", "folded"]] {
            let (_, report) = measured_alone(7, options, &program);
            let own = options.contains(&"--own-allocator");
            let (mut found, mut wanted) = (counted(&report, "lines.c", false), expected("lines.c"));
            if own {
                // Other allocators may grow a block in place or move it.
                (found, wanted) = (renamed(found, "realloc_"), renamed(wanted, "realloc_"));
            } else {
                let mut bytes = summed(&report, "lines.c", false, "bytes");
                bytes.retain(|_, bytes| *bytes > 0);
                assert_eq!(bytes, expected_figures("lines.c", 1), "{flags:?} {options:?}");
            }
            assert_eq!(found, wanted, "{flags:?} {options:?}");
            assert_eq!((&report["schema"], &report["on_vellum"]), (&"vellum.cost/1".into(), &(!own).into()));
            assert_eq!(report["operations"]["lost"], 0);
        }
    }
}

#[test]
fn operations_have_sizes_times_and_called_functions() {
    let Some(program) = compiled("cc", &["-g", "-O0"], &["lines.c"], "lines") else { return };
    let (_, report) = measured_alone(7, &[], &program);
    let copies = at_line(&report, "lines.c", "strdup(");
    assert!(copies.iter().any(|item| item["via"] == "strdup" && item["size_max_bytes"] == 64), "{copies:?}");
    let many = at_line(&report, "lines.c", "malloc=2000");
    let sizes: Vec<u64> = many.iter().filter_map(|item| item["size_max_bytes"].as_u64()).collect();
    assert_eq!(sizes, [16, 64, 256, 1024], "classes of sizes are distinguished");
    for item in report["items"].as_array().unwrap() {
        let (count, times) = (item["count"].as_u64().unwrap(), &item["times"]);
        if item["operation"].as_str().unwrap().starts_with("fault") {
            assert!(times.is_null(), "{item}");
            continue;
        }
        let timed = times["timed"].as_u64().unwrap();
        assert!(timed >= 1 && timed <= count, "{item}");
        assert!(timed == count || count > 30, "few operations are all timed: {item}");
        let [min, mean, max] = ["min_ns", "mean_ns", "max_ns"].map(|name| times[name].as_f64().unwrap());
        assert!(0.0 <= min && min <= mean && mean <= max, "{item}");
        assert!(times["std_ns"].as_f64().unwrap() >= 0.0);
    }
    let recording = &report["recording"];
    let base = |name: &str| recording["base"][name].as_f64().unwrap();
    assert!(base("n") == 1000.0 && base("min") <= base("mean"), "{recording}");
    let figure = |name: &str| recording[name].as_f64().unwrap();
    let operations = report["operations"]["count"].as_f64().unwrap();
    // The queries for its many lines cost more than counting its few thousand operations.
    assert!(figure("rare_ns") > operations * figure("count_ns"), "{recording}");
    assert!(figure("total_ns") > figure("rare_ns") && figure("count_ns") >= 0.0, "{recording}");
    assert!(figure("timed_ns") > figure("count_ns"), "{recording}");
}

#[test]
fn disturbed_timing_is_reported_separately() {
    let Some(program) = compiled("cc", &["-g", "-O1"], &["disturbed.c"], "disturbed") else { return };
    let slow = compiled("cc", &["-O1", "-shared", "-fPIC"], &["slow_malloc.c"], "slow.so").unwrap();
    let (output, report) = preloaded(&["--own-allocator"], &program, &slow);
    assert_eq!(counted(&report, "disturbed.c", false), expected("disturbed.c"));
    for (line, timed_max) in [("malloc(77)", 24), ("malloc(177)", 5000)] {
        let items = at_line(&report, "disturbed.c", line);
        let item = items.iter().find(|item| item["operation"] == "malloc").expect("it was recorded");
        let figure = |name: &str| item["times"][name].as_f64().unwrap();
        // Other disturbances of this machine are included in the figures.
        assert!(figure("disturbed") >= 1.0 && figure("disturbed_ns") >= 19e6, "{item}");
        assert!(figure("max_ns") >= 19e6, "{item}");
        assert!(figure("mean_ns") < 20e3 && figure("std_ns") < 20e3, "{item}");
        assert!(figure("timed") <= f64::from(timed_max), "{item}");
    }
    assert!(said(&output).contains(" disturbed\n"), "{}", said(&output));
}

#[test]
fn recorder_adds_no_requests_to_the_allocator() {
    let Some(program) = compiled("cc", &["-g", "-O1"], &["asked.c"], "asked") else { return };
    let counting =
        compiled("cc", &["-O1", "-shared", "-fPIC"], &["counting_malloc.c"], "counting.so").unwrap();
    let (output, report) = preloaded(&["--own-allocator"], &program, &counting);
    assert!(said(&output).contains("asked 102 times\n"), "{}", said(&output));
    assert_eq!(counted(&report, "asked.c", false), expected("asked.c"));
}

#[test]
fn cxx_counts_at_the_lines_that_use_the_library() {
    for flags in [&["-g", "-O0"][..], &["-g", "-O2"]] {
        let Some(program) = compiled("c++", flags, &["classes.cpp"], "classes") else { return };
        for options in [&[][..], &["--own-allocator"]] {
            let (_, report) = measured_alone(0, options, &program);
            let mut counts = counted(&report, "classes.cpp", false);
            // Compilers choose the lines of destructors at the end of a scope: only their number is checked.
            let wanted = expected("classes.cpp");
            let mut others: BTreeMap<&str, u64> = BTreeMap::new();
            for ((_, _, kind), count) in counts.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
                *others.entry(kind).or_default() += count;
            }
            // 200 vectors and strings, and 10 exceptions.
            assert_eq!(others, BTreeMap::from([("delete", 200), ("free", 10)]), "{flags:?} {counts:?}");
            counts.retain(|key, _| wanted.contains_key(key));
            assert_eq!(counts, wanted, "{flags:?} {options:?}");
            let pushes = at_line(&report, "classes.cpp", "push_back");
            let by_vector =
                |item: &Value| item["via"].as_str().is_some_and(|via| via.starts_with("std::vector::"));
            let mut done = pushes.iter().filter(|item| item["operation"] != "fault_minor");
            assert!(done.all(|item| by_vector(item)), "{pushes:?}");
        }
    }
}

#[test]
fn operations_after_longjmp_from_a_new_handler_are_counted() {
    let Some(program) = compiled("c++", &["-g", "-O1"], &["jumps.cpp"], "jumps") else { return };
    for options in [&[][..], &["--own-allocator"]] {
        let (_, report) = measured_alone(0, options, &program);
        assert_eq!(counted(&report, "jumps.cpp", false), expected("jumps.cpp"), "{options:?}");
    }
}

#[test]
fn changed_source_has_a_note_and_unknown_source_a_message() {
    if !is_built() {
        return;
    }
    let (_place, [source, program]) = files(["own.c", "own"]);
    std::fs::copy(Path::new(SOURCES).join("disturbed.c"), &source).unwrap();
    let made = Command::new("cc").args(["-g", "-O1", "-o"]).arg(&program).arg(&source).status();
    if !made.is_ok_and(|status| status.success()) {
        return vellum_skip::skip("no cc");
    }
    let output = cost(&["-f", "nofile.c"]).arg(&program).output().unwrap();
    let says = said(&output);
    assert!(says.starts_with("no operations in nofile.c; there are some in: "), "{says}");
    assert!(!says.contains("lines may have moved"), "{says}");
    let later = std::fs::metadata(&program).unwrap().modified().unwrap() + std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(&source).unwrap().set_modified(later).unwrap();
    let (output, report) = measured_alone(0, &[], &program);
    let notes = report["notes"].to_string();
    assert!(notes.contains("own.c is newer than "), "{notes}");
    assert!(said(&output).contains("    (newer than "), "{}", said(&output));
}

#[test]
fn statically_linked_cxx_library_counts_as_a_library() {
    let flags = ["-g", "-O1", "-static-libstdc++"];
    let Some(program) = compiled("c++", &flags, &["classes.cpp"], "classes") else { return };
    let (_, report) = measured_alone(0, &[], &program);
    // Its operator new calls malloc, and only that call is recorded.
    let (found, wanted) = (counted(&report, "classes.cpp", false), expected("classes.cpp"));
    let news: Vec<_> = wanted.iter().filter(|((_, _, kind), count)| kind == "new" && **count > 10).collect();
    assert!(news.len() > 2, "{wanted:?}");
    for ((file, line, _), count) in news {
        let found_there = found.get(&(file.clone(), *line, "malloc".into()));
        assert_eq!(found_there, Some(count), "line {line}: {found:?}");
    }
}

#[test]
fn threads_forks_and_crashes_lose_no_counts() {
    let Some(program) = compiled("cc", &["-g", "-O1", "-pthread"], &["family.c"], "family") else { return };
    let (_, report) = measured_alone(128 + libc::SIGSEGV, &[], &program);
    assert_eq!(report["outcome"]["kind"], "killed");
    let mut counts = counted(&report, "family.c", false);
    // The C library's own blocks for each thread are excluded.
    counts.retain(|(_, line, kind), _| {
        expected("family.c").contains_key(&("family.c".into(), *line, kind.clone()))
    });
    assert_eq!(counts, expected("family.c"));
    // The program, its 10 children, and the programs that three of them executed.
    assert_eq!(report["operations"]["processes"], 1 + 10 + 3);
}

#[test]
fn many_threads_are_counted_exactly() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("cc", &["-g", "-O2", "-pthread"], &["alloc_heavy.c"], "alloc_heavy") else {
        return;
    };
    let (output, report) = measured(0, &[], &[text(&program), "100000", "4"], place.path());
    assert_eq!(output.stdout, b"malloc 400000 free 404096\n");
    let sum = |kind| sum(&report, |item| item["place"]["function"] == "work" && item["operation"] == kind);
    assert_eq!(sum("malloc"), 400_000);
    assert_eq!(sum("free") + sum("free_null"), 404_096);
}

#[test]
fn stacks_are_walked_through_libraries_without_debug_information() {
    let place = tempfile::tempdir().unwrap();
    let shared = ["-g", "-O1", "-shared", "-fPIC"];
    let Some(whole) = compiled("cc", &shared, &["stripped.c"], "libstripped.so") else { return };
    let folder = format!("-L{}", whole.parent().expect("a folder").display());
    let stripped =
        Command::new("strip").arg("-o").arg(place.path().join("libstripped.so")).arg(&whole).status();
    if !stripped.is_ok_and(|status| status.success()) {
        return vellum_skip::skip("no strip");
    }
    let flags = ["-g", "-O1", &folder, "-l:libstripped.so", "-Wl,-rpath,."];
    for (name, flags, source) in [
        ("first.so", &shared[..], "plugin.c"),
        ("second.so", &[&shared[..], &["-DSECOND"]].concat(), "plugin.c"),
        ("libraries", &flags, "libraries.c"),
    ] {
        let made = compiled("cc", flags, &[source], name).expect("there is a compiler");
        std::os::unix::fs::symlink(made, place.path().join(name)).unwrap();
    }
    // The libraries are named relative to the program's folder.
    let (_, report) = measured(0, &[], &["./libraries", "./first.so", "./second.so"], place.path());
    let wanted = expected("libraries.c");
    let mut counts = counted(&report, "libraries.c", false);
    counts.retain(|key, _| wanted.contains_key(key));
    assert_eq!(counts, wanted);
    assert_eq!(counted(&report, "plugin.c", false), expected("plugin.c"), "one address, two lines in turn");
    let made = at_line(&report, "libraries.c", "free(made(100))");
    assert!(made.iter().any(|item| item["operation"] == "malloc" && item["via"] == "made"), "{made:?}");
    // The library's own thread, whose functions have been stripped of names.
    let own = sum(&report, |item| {
        item["place"]["kind"] == "offset"
            && item["place"]["module"].as_str().unwrap().ends_with("/libstripped.so")
            && item["operation"] == "malloc"
    });
    assert_eq!(own, 30);
}

#[test]
fn stripped_program_is_reported_by_function_offset_or_debug_file() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("cc", &["-g", "-O1"], &["lines.c"], "lines") else { return };
    for (options, made) in [
        (&["--only-keep-debug"][..], "lines.debug"),
        (&["--strip-debug"], "bare"),
        (&["--strip-all"], "naked"),
        (&["--strip-all", "--add-gnu-debuglink=lines.debug"], "linked"),
    ] {
        let mut copy = Command::new("objcopy");
        let Ok(ended) = copy.args(options).arg(&program).arg(made).current_dir(&place).status() else {
            return vellum_skip::skip("no objcopy");
        };
        assert!(ended.success(), "{made}");
    }
    let frees = |program: &str, kind: &str| -> u64 {
        let (output, report) = measured(7, &[], &[program], place.path());
        let says = said(&output);
        assert_eq!(says.contains("no operation has a source line"), kind != "line", "{says}");
        sum(&report, |item| {
            let place = &item["place"];
            let of_program = place["function"] == "called"
                || place["module"].as_str().is_some_and(|module| module.ends_with("/naked"));
            of_program && place["kind"] == kind && item["operation"] == "free"
        })
    };
    assert_eq!(frees("./bare", "function"), 1000);
    assert_eq!(frees("./naked", "offset"), 2042, "all of them are somewhere in it");
    assert_eq!(frees("./linked", "line"), 1000);
}

#[test]
fn page_faults_are_reported_by_line() {
    let Some(program) = compiled("cc", &["-g", "-O1"], &["faults.c"], "faults") else { return };
    let (_, report) = measured_alone(0, &[], &program);
    if report["faults"]["not_shown"] != 0 {
        let notes = &report["notes"];
        return vellum_skip::skip(format_args!("the kernel does not show all page faults here: {notes}"));
    }
    let counts = counted(&report, "faults.c", true);
    for (key, wanted) in expected("faults.c") {
        let found = counts.get(&key).copied().unwrap_or(0);
        // The code's own pages may fault here for the first time.
        assert!(found >= wanted && found <= wanted + 8, "{key:?}: {found}, not {wanted}: {counts:?}");
    }
    let by_library = at_line(&report, "faults.c", "set(by_library");
    assert!(by_library.iter().any(|item| item["via"].is_string()), "{by_library:?}");
}

#[test]
fn without_perf_events_faults_are_only_totals() {
    let Some(program) = compiled("cc", &["-g", "-O1"], &["faults.c"], "faults") else { return };
    let refusal = compiled("cc", &["-shared", "-fPIC"], &["no_perf.c"], "refusal.so").unwrap();
    let (output, report) = preloaded(&[], &program, &refusal);
    has(&said(&output), &["page faults are not shown by line", "perf_event_paranoid"]);
    assert!(report["faults"].is_null());
}

#[test]
fn report_has_annotated_source_sums_and_folded_stacks() {
    let (place, [folded]) = files(["folded"]);
    let Some(program) = compiled("cc", &["-g", "-O0"], &["lines.c"], "lines") else { return };
    let output = cost(&["-f", "lines.c", "--folded", text(&folded)]).arg(&program).output().unwrap();
    let says = said(&output);
    let lines: Vec<&str> = says.lines().collect();
    let at =
        lines.iter().position(|line| line.contains("char *copy = strdup(")).expect("the source is shown");
    let below = lines[at + 1..].iter().find(|line| line.contains("malloc")).expect("operations stand below");
    let columns: Vec<&str> = below.split_whitespace().collect();
    assert_eq!(columns[..6], ["-", "malloc(≤64", "B)", "in", "strdup", "10"], "{below}");
    assert_eq!(columns.len(), 6 + 8, "mean, smallest, largest, deviation, each with its unit: {below}");
    assert!(says.contains("with a source line") && says.contains("to count an operation"), "{says}");
    let wide = says.lines().filter(|line| line.chars().count() > 80 && !line.contains('/'));
    assert_eq!(wide.count(), 0, "80 columns where there is no terminal: {says}");
    assert!(!says.contains("without source lines"), "only the file that was asked for: {says}");
    let dearest = lines.iter().take_while(|line| !line.is_empty() && !line.starts_with("and ")).skip(1);
    let share = |line: &str| line.split_once(" %")?.0.rsplit(' ').next()?.parse().ok();
    let shares: Vec<f64> = dearest.filter_map(|line| share(line)).collect();
    assert!(lines[0].starts_with("dearest lines ") && shares.len() > 5, "{says}");
    assert!(shares.is_sorted_by(|a, b| a >= b) && shares.iter().sum::<f64>() < 100.5, "{says}");

    let flames = std::fs::read_to_string(&folded).unwrap();
    let stack = flames.lines().find(|line| line.contains(";called;inlined;malloc(")).expect(&flames);
    assert!(stack.contains("main;called;inlined;malloc("), "{stack}");
    let (_, ns) = stack.rsplit_once(' ').unwrap();
    ns.parse::<u64>().expect("nanoseconds");

    let report = place.path().join("summary.txt");
    let output = cost(&["-s", "-o", text(&report)]).arg(&program).output().unwrap();
    assert_eq!(said(&output), "", "it went to the file");
    let summary = std::fs::read_to_string(&report).unwrap();
    has(&summary, &["by operation", "by function", "by file", "lines.c"]);
    let output = cost(&["-f", "other.c"]).arg(&program).output().unwrap();
    assert!(said(&output).contains("no operations in other.c; there are some in: "), "{}", said(&output));
}

#[test]
fn programs_that_cannot_be_recorded_still_run() {
    let Some(program) = compiled("cc", &["-g", "-O0", "-static"], &["lines.c"], "lines") else { return };
    let output = exits(7, cost(&[]).arg(&program).output().unwrap());
    let words = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("could not be recorded: it is statically linked"), "{words}");
    exits(127, cost(&[]).arg("/no/such/program").output().unwrap());
    refused(&vellum(["cost", "--recorder", "/no/such.so", "--", "true"]), "/no/such.so");
}

/// Lines of Python count in every thread; a library's lines count for their caller.
#[test]
fn lines_of_python_are_counted_exactly() {
    if !is_built() {
        return;
    }
    let script = Path::new(SOURCES).canonicalize().unwrap().join("lines.py");
    let source = std::fs::read_to_string(&script).unwrap();
    for (python, version) in python::pythons() {
        let (place, [folded]) = files(["folded"]);
        let (output, report) =
            measured(0, &["--folded", text(&folded)], &[text(&python), text(&script)], place.path());
        assert_eq!(out(&output), "300 1 300000\n");
        let says = said(&output);
        let listed: Vec<&str> = says.lines().filter(|line| line.starts_with("-- ")).collect();
        let script_only = [&*format!("-- {}", text(&script)), "-- libraries, and code without source lines"];
        assert_eq!(listed, script_only, "the interpreter's lines are a library's");
        let of_one = said(&cost(&["-f", "<frozen os>"]).args([text(&python), "-c", ""]).output().unwrap());
        assert!(of_one.contains("<frozen os>:") && of_one.contains("\n-- <frozen os>\n"), "{of_one}");
        let is_big = |item: &Value| item["operation"] == "malloc" && item["size_max_bytes"] == 256 << 10;
        let is_of_script = |item: &Value| item["place"]["file"] == text(&script);
        let at = |line: u64| {
            sum(&report, |item| is_big(item) && is_of_script(item) && item["place"]["line"] == line)
        };
        let copying = source.lines().position(|line| line.contains("deepcopy")).unwrap() as u64 + 1;
        assert!(at(copying) >= 1, "{version}: {says}");
        for ((_, line, _), count) in expected("lines.py") {
            assert_eq!(at(line), count, "{version}, line {line}: {says}");
        }
        // Some arenas were mapped before the first line ran.
        let arenas = sum(&report, |item| item["operation"] == "mmap" && is_of_script(item));
        assert!(arenas >= 10, "{version}: {arenas} of 20: {says}");
        let is_of_text =
            |item: &Value| item["place"]["file"] == "<string>" && item["place"]["function"] == "<module>";
        assert_eq!(sum(&report, |item| is_big(item) && is_of_text(item)), 50, "{version}: {says}");
        let folded = std::fs::read_to_string(&folded).unwrap();
        let stack = ["main;Store.fill", "Thread.run;copied"];
        assert!(stack.iter().all(|stack| folded.contains(stack)), "{version}: {folded}");
        // Operations of the interpreter's start belong to no line.
        let both = |stack: &&str| stack.contains(";main;") && stack.contains("_PyEval_EvalFrameDefault");
        assert_eq!(folded.lines().find(both), None, "{version}: {folded}");
    }
}

#[test]
fn diff_compares_two_runs() {
    let place = tempfile::tempdir().unwrap();
    let flags = ["-g", "-O2", "-pthread"];
    let Some(program) = compiled("cc", &flags, &["alloc_heavy.c"], "alloc_heavy") else { return };
    let saved = ["1000", "3000"].map(|operations| {
        let folder = place.path().join(operations);
        std::fs::create_dir(&folder).unwrap();
        measured(0, &["-o", "/dev/null"], &[text(&program), operations], &folder);
        folder.join("cost.json")
    });
    let diff = |old: &Path, new: &Path| vellum(["cost", "--diff", text(old), text(new)]);
    let changed = out_of_success(&diff(&saved[0], &saved[1]));
    has(&changed, &["alloc_heavy.c:", " changes of time are noise: "]);
    assert_eq!(out_of_success(&diff(&saved[0], &saved[0])), "nothing has changed\n");
    refused(&diff(&saved[0], &program), "vellum cost --json FILE");
}
