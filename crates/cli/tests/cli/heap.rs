//! Tests of `vellum heap` on programs that hold known amounts of memory, and on a stress test.

use crate::common::held::{
    SOURCES, amounts, compiled, compiled_by, heap, is_built, line_in, profiled, runtime, site_of,
};
use crate::common::{self, Running, VELLUM, exits, has, out, recorded, refused, report, said, text, vellum};
use crate::python;
use object::{Object, ObjectSection, ObjectSegment};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

/// The allowed error of an estimate in standard errors: one correct estimate in two million is further off.
const DEVIATIONS: f64 = 5.0;
const MEBI: f64 = 1048576.0;

/// The bytes, blocks and samples that the site with this mark holds.
fn site(document: &Value, mark: &str, when: &str) -> Option<[f64; 3]> {
    amounts(document, "held.c", mark, when)
}

/// Checks that a site's bytes and blocks are as expected, within the error of its samples.
fn check(document: &Value, mark: &str, when: &str, bytes: f64, blocks: f64) {
    let Some([told, in_blocks, samples]) = site(document, mark, when) else {
        panic!("{mark}: not there");
    };
    let error = ((1.0 - samples / in_blocks).max(0.0) / samples).sqrt();
    // Counts of few blocks are also rounded.
    let off = DEVIATIONS * error + 1.0 / blocks;
    assert!((told / bytes - 1.0).abs() <= off, "{mark}: {told} bytes for {bytes}, {samples} samples");
    assert!((in_blocks / blocks - 1.0).abs() <= off, "{mark}: {in_blocks} blocks for {blocks}");
}

#[test]
fn threads_are_sampled_from_their_first_block() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("starting.c", &["-pthread"]) else { return };
    let (_, document) = profiled(&["-i", "64K"], &[text(&program)], place.path());
    let held = |mark| amounts(&document, "starting.c", mark, "end").expect("it is there");
    assert_eq!(held("large"), [64.0 * MEBI, 8.0, 8.0]);
    let [told, _, samples] = held("small");
    let off = DEVIATIONS / samples.sqrt();
    assert!((told / 100e6 - 1.0).abs() < off, "{told} bytes by {samples} samples");
}

#[test]
fn known_amounts_are_found_at_their_lines() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("held.c", &[]) else { return };
    // With a sample every 4 KiB, sites of 10 MiB are exact to 2 %.
    let outputs = ["-i", "4K", "-o", "heap.folded", "-o", "heap.pb.gz", "-o", "heap.svg"];
    let (output, document) = profiled(&outputs, &[text(&program)], place.path());
    assert_eq!(document["schema"], "vellum.heap/1");
    let leaks = (20.0 * MEBI / 100.0).floor();
    for when in ["peak", "end"] {
        check(&document, "leaked", when, leaks * 100.0, leaks);
        check(&document, "aligned", when, 5000.0 * 4096.0, 5000.0);
        check(&document, "piece", when, 500.0 * 60000.0, 500.0);
        check(&document, "grown", when, 8.0 * MEBI, 1.0);
    }
    for (mark, when, bytes, blocks) in [
        ("large", "peak", 257.0 * MEBI, 1.0),
        ("zeroed", "ever", 21e6, 10_000.0),
        ("momentary", "ever", 120e6, 3e6),
    ] {
        check(&document, mark, when, bytes, blocks);
        assert_eq!(site(&document, mark, "end"), Some([0.0; 3]));
    }
    // The sites add up to the sum.
    for when in ["peak", "end", "ever"] {
        let sites = document["sites"].as_array().unwrap().iter();
        let sum: u64 = sites.map(|site| site["held"][when]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, document["sum"][when]["bytes"].as_u64().unwrap(), "{when}");
    }
    let shown = said(&output);
    // The first line has the program's path, which may be long.
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
    let at = |function, mark| format!("{function} held.c:{}", line_in("held.c", mark));
    has(&shown, &[&at("whole", "large"), &at("leak", "leaked")]);
    formats(place.path(), &document);
}

/// Compares two independent methods: `vellum cost` counts the bytes that each line requests.
fn a_profile_of_every_block_is_what_cost_counts(compiler: &str) {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled_by(compiler, "held.c", &["-DMOMENTS=300000"]) else { return };
    let (_, document) = profiled(&["-i", "1"], &[text(&program)], place.path());
    let (_, counted) = recorded::measured(0, &[], &[text(&program)], place.path());
    for mark in ["leaked", "aligned", "piece", "large", "zeroed", "momentary"] {
        let here = |item: &&Value| {
            item["place"]["line"] == line_in("held.c", mark)
                && item["place"]["file"].as_str().is_some_and(|file| file.ends_with("held.c"))
        };
        let items = counted["items"].as_array().unwrap().iter().filter(here);
        let bytes: u64 = items.filter_map(|item| item["bytes"].as_u64()).sum();
        let Some([held, ..]) = site(&document, mark, "ever") else { panic!("{compiler}: no {mark}") };
        // A sample is dropped if another thread holds the profile for long.
        let lost = 1.0 - held / bytes as f64;
        assert!((0.0..1e-3).contains(&lost), "{compiler}, {mark}: {held} of {bytes} bytes");
    }
}

#[test]
fn profile_of_every_block_matches_cost_on_glibc() {
    a_profile_of_every_block_is_what_cost_counts("gcc");
}

/// On musl the modules of instructions are found in another way, as on glibc before 2.35.
#[test]
fn profile_of_every_block_matches_cost_on_musl() {
    a_profile_of_every_block_is_what_cost_counts("musl-gcc");
}

/// Checks that the other formats have the same figures.
fn formats(place: &Path, document: &Value) {
    let peak = document["sum"]["peak"]["bytes"].as_u64().unwrap();
    let folded = std::fs::read_to_string(place.join("heap.folded")).unwrap();
    let sum: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, peak);
    assert!(folded.lines().any(|line| line.contains("main;whole ")), "{folded}");
    let svg = std::fs::read_to_string(place.join("heap.svg")).unwrap();
    let drawing = roxmltree::Document::parse(&svg).expect("well-formed");
    let mut titles = drawing.descendants().filter(|node| node.has_tag_name("title"));
    let is_whole = |title: &str| title.starts_with("whole: 257 MiB");
    assert!(titles.any(|title| title.text().is_some_and(is_whole)), "{svg}");
    let mut profile = Vec::new();
    let file = std::fs::File::open(place.join("heap.pb.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut profile).expect("gzip");
    let texts: Vec<&[u8]> = fields(&profile, 6).collect();
    let mut peaks = 0;
    for sample in fields(&profile, 2) {
        let values = numbers(fields(sample, 2).next().expect("values"));
        assert_eq!(values.len(), 6);
        peaks += values[5];
        assert!(fields(sample, 1).next().is_some(), "a sample has a stack");
    }
    assert_eq!(peaks, peak);
    for wanted in ["", "inuse_space", "peak_space", "whole", "leak"] {
        assert!(texts.contains(&wanted.as_bytes()), "{wanted}");
    }
}

/// A number of variable length, and the bytes after it.
fn number(bytes: &[u8]) -> (u64, &[u8]) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
    let value = bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    (value, &bytes[length..])
}

fn numbers(mut bytes: &[u8]) -> Vec<u64> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = number(bytes);
        all.push(value);
        bytes = rest;
    }
    all
}

/// The fields with a length and this number in a protocol buffers message.
fn fields(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (key, after) = number(rest);
        let (value, after) = number(after);
        rest = after;
        if key & 7 == 2 {
            let (field, after) = after.split_at(value as usize);
            rest = after;
            if key >> 3 == wanted {
                found.push(field);
            }
        }
    }
    found.into_iter()
}

#[test]
fn stress_programs_run_under_the_profiler() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("rough.c", &["-pthread", "-ldl"]) else { return };
    let Some(library) = compiled("plugin.c", &["-shared", "-fPIC"]) else { return };
    let (output, document) = profiled(&["-i", "256"], &[text(&program), text(&library)], place.path());
    assert_eq!(out(&output), "whole\n");
    let processes = document["processes"].as_array().unwrap();
    assert!(processes.len() > 1, "children have profiles of their own");
    // Processes are in the order of their first samples, not of their start.
    let begun = processes.iter().filter(|process| process["is_forked"] == false).count();
    assert_eq!(begun, 1, "{document}");
}

#[test]
fn child_that_samples_before_its_parent_is_listed_as_forked() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("early.c", &[]) else { return };
    let (_, document) = profiled(&["-i", "256"], &[text(&program)], place.path());
    let processes = document["processes"].as_array().unwrap();
    let forked = processes.iter().filter(|process| process["is_forked"] == true).count();
    assert_eq!((processes.len(), forked), (2, 1), "{document}");
}

#[test]
fn killed_program_loses_no_samples() {
    if !is_built() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let script = "import os\nkept = [bytearray(1 << 20) for _ in range(64)]\nos.kill(os.getpid(), 9)";
    if Command::new("python3").arg("-c").arg("").status().is_err() {
        return vellum_skip::skip("python3 cannot be started");
    }
    exits(128 + 9, heap(&["-o", "heap.json"], &["python3", "-c", script], place.path()));
    let document = report(&place.path().join("heap.json"));
    let held = document["sum"]["end"]["bytes"].as_f64().unwrap();
    // Six in seven blocks of 1 MiB are sampled, and each represents 7/6 blocks.
    assert!((0.7..1.4).contains(&(held / (64.0 * MEBI))), "{held}");
}

#[test]
fn lines_of_python_hold_memory() {
    if !is_built() {
        return;
    }
    let script = Path::new(SOURCES).join("held.py");
    for (python, version) in python::pythons() {
        let place = tempfile::tempdir().unwrap();
        let outputs = ["-i", "32K", "--of", "ever", "-o", "heap.folded", "-o", "heap.pb.gz"];
        let (output, document) = profiled(&outputs, &[text(&python), text(&script)], place.path());
        assert_eq!(out(&output), "400000 150000 16\n");
        let held = |mark: &str, when: &str| {
            let site = site_of(&document, "held.py", mark);
            site.map_or(0.0, |site| site["held"][when]["bytes"].as_f64().unwrap()) / MEBI
        };
        let shown = said(&output);
        // Exact to a few samples of 32 KiB each, as the blocks are much larger.
        assert!((held("large", "ever") / 64.0 - 1.0).abs() < 0.05, "{version}: {shown}");
        assert!((held("unicode", "ever") / 16.0 - 1.0).abs() < 0.05, "{version}: {shown}");
        // Small objects are in arenas of 1 MiB. The line that needed an arena counts for all objects in it.
        assert!(held("kept", "peak") > 20.0, "{version}: {shown}");
        // The module's lines are a library's, so the user's line counts.
        assert!(held("decoded", "ever") > 10.0, "{version}: {shown}");
        let folded = std::fs::read_to_string(place.path().join("heap.folded")).unwrap();
        let stack = ["main;Store.fill", "<module>;main;grün"];
        assert!(stack.iter().all(|stack| folded.contains(stack)), "{version}: {folded}");
        assert!(!folded.contains("_PyEval_EvalFrameDefault"), "{version}: {folded}");
    }
}

/// `asked.c` on Vellum, which runs commands from its input.
struct Told {
    program: Running,
    /// Resident bytes just before the last observation.
    resident_before: f64,
    answers: BufReader<ChildStdout>,
}

impl Told {
    fn start(program: &Path) -> Told {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", runtime()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Running::start(&mut command);
        let answers = BufReader::new(program.0.stdout.take().expect("piped"));
        let mut told = Told { program, resident_before: 0.0, answers };
        // Once the program answers, the library is loaded.
        told.tell("x");
        told
    }

    /// Sends a command, and waits until it is done.
    fn tell(&mut self, what: &str) {
        self.program.0.stdin.as_mut().expect("piped").write_all(what.as_bytes()).expect("it reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert_eq!(answer.trim(), what);
    }

    /// The resident bytes according to the kernel.
    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is alive");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
    }

    /// Runs `vellum heap PID` with these options during the commands `what`, and ends it by a signal. Returns
    /// the report in `file`; `None`, with a skip, where other processes may not be observed.
    fn looked_at(&mut self, interval: &str, file: &Path, what: &[&str]) -> Option<Value> {
        let mut command = Command::new(VELLUM);
        command.args(["heap", "-i", interval, "-o", text(file), &self.program.pid()]);
        common::heeding_signals(&mut command);
        let mut watching = command.stderr(Stdio::piped()).spawn().expect("vellum starts");
        let mut said = BufReader::new(watching.stderr.take().expect("piped"));
        // A process answers when its allocator needs memory, so it is kept allocating until then.
        let (sender, begun) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            said.read_line(&mut text).expect("readable");
            let _ = sender.send(text.clone());
            said.read_to_string(&mut text).expect("readable");
            text
        });
        let first = loop {
            match begun.try_recv() {
                Ok(first) => break first,
                Err(_) => self.tell("c"),
            }
        };
        if first.contains("are sampled from now on") {
            what.iter().for_each(|what| self.tell(what));
            self.resident_before = self.resident();
            // SAFETY: `kill` accesses no memory; the child has not been waited for, so its id is valid.
            unsafe { libc::kill(watching.id().cast_signed(), libc::SIGINT) };
        }
        let (status, said) = (watching.wait().expect("vellum ends"), reader.join().expect("read"));
        if is_hidden(&said) {
            return None;
        }
        assert!(status.success(), "{said}");
        Some(report(file))
    }
}

/// Returns whether other processes' memory may not be read; skips the test then.
fn is_hidden(said: &str) -> bool {
    let is_hidden = said.contains("ptrace_scope");
    if is_hidden {
        vellum_skip::skip(format_args!("other processes' memory may not be read: {said}"));
    }
    is_hidden
}

/// Checks that an amount is as expected, within the error of its samples.
fn near(site: &Value, when: &str, bytes: f64) {
    let figure = |key: &str| site["held"][when][key].as_f64().unwrap();
    let off = DEVIATIONS / figure("samples").sqrt();
    assert!((figure("bytes") / bytes - 1.0).abs() <= off, "{site} for {bytes}");
}

#[test]
fn running_process_is_sampled_from_attachment_on() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("asked.c", &[]) else { return };
    let mut told = Told::start(&program);
    told.tell("b");
    told.tell("c");
    let [once, twice] = ["once.json", "twice.json"].map(|name| place.path().join(name));
    let Some(document) = told.looked_at("4K", &once, &["g", "c", "f", "m"]) else { return };
    assert_eq!((&document["outcome"]["kind"], &document["exit_status"]), (&"running".into(), &Value::Null));
    let grown = site_of(&document, "asked.c", "grown").expect("sampled");
    // Only the parent's growth is checked, as the child may run later.
    assert!(grown["held"]["end"]["bytes"].as_f64().unwrap() > 18e6, "{grown}");
    // Includes blocks that a thread allocates and frees without needing new memory.
    let churned = site_of(&document, "asked.c", "churned").expect("sampled");
    assert!(churned["held"]["ever"]["bytes"].as_f64().unwrap() > 18e6, "{churned}");
    // Mappings much longer than the interval are counted exactly.
    let mapped = site_of(&document, "asked.c", "mapped").expect("sampled");
    assert_eq!(mapped["held"]["end"]["bytes"].as_f64(), Some(17.0 * MEBI), "{mapped}");
    assert_eq!(mapped["held"]["end"]["blocks"], 16);
    // The program runs on unobserved; the second observation starts from zero.
    told.tell("g");
    let document = told.looked_at("16K", &twice, &["g", "g"]).expect("observed once more");
    assert_eq!(document["interval_bytes"], 16384);
    near(site_of(&document, "asked.c", "grown").expect("sampled"), "end", 2.0 * 20e6);
    let text = out(&vellum(["heap", "--of", "end", "--diff", text(&once), text(&twice)]));
    assert!(text.contains(&format!("grow asked.c:{}", line_in("asked.c", "grown"))), "{text}");
}

#[test]
fn idle_process_can_be_detached_and_attached_again() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("asked.c", &[]) else { return };
    let mut told = Told::start(&program);
    for _ in 0..2 {
        let left = vellum(["heap", "--for", "150ms", &told.program.pid()]);
        if is_hidden(&said(&left)) {
            return;
        }
        assert!(left.status.success(), "{}", said(&left));
    }
    let document = told.looked_at("4K", &place.path().join("heap.json"), &["g"]).expect("observed before");
    near(site_of(&document, "asked.c", "grown").expect("sampled"), "end", 20e6);
}

#[test]
fn pinned_free_memory_is_reported_by_line() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled("asked.c", &[]) else { return };
    let mut told = Told::start(&program);
    let file = place.path().join("heap.json");
    let Some(document) = told.looked_at("16K", &file, &["s"]) else { return };
    // Memory is also returned by decay, before the observation and after it.
    let (most, least) = (told.resident_before, told.resident());
    let counted = &document["resident"];
    let figure = |key: &str| counted[key].as_f64().unwrap();
    // Every page has a kind, so the kinds add up to all pages.
    let kinds = ["live", "holes", "cached", "marked", "tables", "code", "stacks", "files", "shared", "other"];
    let sum: f64 = kinds.iter().map(|kind| figure(&format!("{kind}_bytes"))).sum();
    assert_eq!(sum, figure("sum_bytes"));
    assert!(sum > 0.95 * least && sum < 1.05 * most, "{sum}, of {least} to {most}: {counted}");
    // The burst is 300,000 blocks of 208 bytes; one in fifty survives.
    assert!(figure("holes_bytes") > 20e6, "{counted}");
    let site = site_of(&document, "asked.c", "survivor").expect("sampled");
    let named = site["pinned_bytes"].as_f64().unwrap() / figure("holes_bytes");
    assert!(named >= 0.9, "{named} of the holes are named: {counted}");
    let passing = site_of(&document, "asked.c", "passing");
    assert!(passing.is_none_or(|site| site["pinned_bytes"] == 0), "{passing:?}");
}

#[test]
fn probes_are_visible_to_other_profilers() {
    if !is_built() {
        return;
    }
    let file = std::fs::read(runtime()).unwrap();
    let elf = object::File::parse(&*file).unwrap();
    let instruction_at = |address: u64| {
        let code = elf.segments().find_map(|segment| segment.data_range(address, 1).ok().flatten());
        code.expect("it is loaded")[0]
    };
    let mut rest = elf.section_by_name(".note.stapsdt").expect("probes").data().unwrap();
    let mut found = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(12) {
        let field = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) as usize;
        let (owner, after) = after.split_at(field(0).next_multiple_of(4));
        let (description, _) = after.split_at(field(4));
        rest = &after[field(4).next_multiple_of(4)..];
        assert_eq!((owner, field(8)), (&b"stapsdt\0"[..], 3));
        let (addresses, texts) = description.split_at(24);
        let address = |at: usize| u64::from_le_bytes(addresses[at..at + 8].try_into().unwrap());
        assert_eq!((address(8), address(16)), (0, 0), "no base, no semaphore");
        let texts: Vec<_> = texts.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        assert_eq!(texts[0], "otel_memory");
        found.push((texts[1].to_string(), texts[2].to_string(), instruction_at(address(0))));
    }
    found.sort();
    let probe = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned(), 0x90);
    assert_eq!(found, [probe("alloc", "8@%rdi 8@%rsi 8@%rdx"), probe("free", "8@%rdi")]);
}

#[test]
fn process_that_cannot_be_sampled_is_an_error() {
    let plain = std::process::id().to_string();
    for (words, wanted) in [
        (&[&*plain][..], "has not loaded libvellum.so"),
        (&["4294967294"], "there is no process"),
        (&["4294967294", "--for", "1s"], "vellum heap --for 1s 4294967294"),
        (&["--diff", "none.json", "none.json"], "none.json"),
    ] {
        refused(&vellum([&["heap"], words].concat()), wanted);
    }
}

#[test]
fn unknown_format_is_refused_before_the_program_runs() {
    if !is_built() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    refused(&heap(&["-o", "heap"], &["touch", "ran"], place.path()), "--format");
    assert!(!place.path().join("ran").exists());
}

/// Code made at run time gets names from its compiler's list. Its callers are found too, even in a program
/// with holes between its segments.
#[cfg(target_arch = "x86_64")]
#[test]
fn jit_code_gets_names() {
    for flags in [&[][..], &["-no-pie", "-Wl,--section-start=.text=0x900000"]] {
        let place = tempfile::tempdir().unwrap();
        let Some(program) = compiled("jitted.c", flags) else { return };
        let options = ["-i", "1", "-o", "heap.json", "-o", "heap.folded"];
        let output = heap(&options, &[text(&program)], place.path());
        if output.status.code() == Some(77) {
            return vellum_skip::skip("no memory can be written and executed, or no list written to /tmp");
        }
        assert!(output.status.success(), "{}", said(&output));
        std::fs::remove_file(String::from_utf8_lossy(&output.stdout).trim()).unwrap();
        let folded = std::fs::read_to_string(place.path().join("heap.folded")).unwrap();
        has(&folded, &["main;Function:*outer;take 20000000", "main;Function:*direct 20000000"]);
        let document = report(&place.path().join("heap.json"));
        let sites = document["sites"].as_array().unwrap();
        let direct = sites.iter().find(|site| site["place"]["function"] == "Function:*direct").unwrap();
        assert_eq!(direct["held"]["peak"]["bytes"], 20_000_000);
    }
}
