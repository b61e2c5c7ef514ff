//! Finds and runs heaptrack and memray, and checks whether they and `vellum heap` name the source lines of
//! three planted faults.
//!
//! The time to open a result runs from the end of the program until the tool's text or web page is written.

use super::{HEAPTRACK, MEMRAY};
use crate::Launch;
use serde_json::Value;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use vellum_campaign::{Bound, Goal};
use vellum_report::Table;
use vellum_report::units::time;

const PROGRAM: &str = include_str!("c/faults.c");
const SCRIPT: &str = include_str!("c/faults.py");
/// The comment that marks each fault in its source, and the view of `vellum heap` that shows it.
const FAULTS: [(&str, &str); 3] = [("leak", "end"), ("peak", "peak"), ("temporary", "ever")];
/// Number of times a result is opened; the shortest time counts.
const OPENINGS: usize = 3;
/// The word in the table for a line that was named.
const NAMED: &str = "named";

/// heaptrack's command, if it is installed.
pub(super) fn heaptrack() -> Option<PathBuf> {
    vellum_process::locate(HEAPTRACK.as_ref(), std::env::var_os("PATH").as_deref()).ok()
}

/// Whether the first python3 of the path has memray.
pub(super) fn has_memray() -> bool {
    let mut asked = Command::new("python3");
    asked.args(["-c", "import memray"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// The same program, recorded by heaptrack, which must not interpret the result.
pub(super) fn under_heaptrack(heaptrack: &Path, plain: &Launch, file: &Path) -> Launch {
    let mut args: Vec<OsString> =
        vec!["--raw".into(), "-o".into(), file.into(), plain.program.clone().into()];
    args.extend(plain.args.iter().cloned());
    Launch { program: heaptrack.to_path_buf(), args, ..plain.clone() }
}

/// The same script, recorded by memray.
pub(super) fn under_memray(plain: &Launch, file: &Path) -> Launch {
    let words = ["-m", "memray", "run", "-q", "-f", "-o"].map(OsString::from);
    let mut args: Vec<OsString> = words.into_iter().chain([file.into()]).collect();
    args.extend(plain.args.iter().cloned());
    Launch { args, ..plain.clone() }
}

/// The findings of a tool in a program with faults.
struct Seen {
    tool: &'static str,
    named: [bool; FAULTS.len()],
    open: Duration,
}

/// Runs the programs with the faults under each tool.
///
/// # Errors
/// If the programs' files cannot be written.
pub(super) fn faults(
    folder: &Path,
    vellum: &Path,
    library: &Path,
    goals: &mut Vec<Goal>,
) -> io::Result<Table> {
    std::fs::write(folder.join("faults.c"), PROGRAM)?;
    std::fs::write(folder.join("faults.py"), SCRIPT)?;
    let compiled = said(folder, "cc", &["-O1", "-g", "-fno-builtin", "-o", "faults", "faults.c"]);
    let ours = Ours { folder, vellum, library };
    let mut seen = Vec::new();
    if compiled.is_some() {
        seen.extend(ours.look("vellum heap, faults.c", "faults.c", &["./faults"]));
        seen.extend(heaptrack().and_then(|_| by_heaptrack(folder)));
    }
    seen.extend(ours.look("vellum heap, faults.py", "faults.py", &["python3", "faults.py"]));
    seen.extend(has_memray().then(|| by_memray(folder)).flatten());
    let heads = ["", "20 MB leaked", "257 MB at the peak", "3 million temporary", "time to open"];
    let mut table = Table::plain(&heads, 1)
        .titled("Three planted faults: is their line named, and how long does it take to open the result");
    for Seen { tool, named, open } in &seen {
        let words = named.map(|is| if is { NAMED } else { "no" }.to_owned());
        table.row([vec![(*tool).to_owned()], words.to_vec(), vec![time(*open)]].concat());
    }
    let ours: Vec<bool> =
        seen.iter().filter(|seen| seen.tool.starts_with("vellum")).flat_map(|seen| seen.named).collect();
    let share = ours.iter().filter(|named| **named).count() as f64 / ours.len().max(1) as f64;
    let what = "planted faults that vellum heap names at their line, every 512 KiB";
    goals.push(Goal::of(what, "", Bound::AtLeast(1.0), (!ours.is_empty()).then_some(share)));
    Ok(table)
}

fn line_of(source: &str, mark: &str) -> u64 {
    let marks = [format!("/* {mark} */"), format!("# {mark}")];
    let at = source.lines().position(|line| marks.iter().any(|mark| line.ends_with(mark)));
    at.map_or(0, |at| at as u64 + 1)
}

/// Runs a command in `folder` to its end; `None` if it cannot be started or fails.
fn said(folder: &Path, program: &str, args: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    let output = command.args(args).current_dir(folder).stdin(Stdio::null()).output().ok()?;
    output.status.success().then_some(output)
}

/// `vellum heap`.
struct Ours<'a> {
    folder: &'a Path,
    vellum: &'a Path,
    library: &'a Path,
}

impl Ours<'_> {
    fn look(&self, tool: &'static str, source: &str, program: &[&str]) -> Option<Seen> {
        let mut best: Option<Seen> = None;
        for _ in 0..OPENINGS {
            let began = Instant::now();
            let document = profile(self.vellum, self.library, self.folder, "512K", program)?;
            let ran = Duration::from_nanos(document["wall_ns"].as_u64()?);
            let open = began.elapsed().saturating_sub(ran);
            let text = if source.ends_with(".c") { PROGRAM } else { SCRIPT };
            let named = FAULTS.map(|(mark, when)| {
                let bytes = held(&document, source, line_of(text, mark), when);
                bytes > 0.0
            });
            if best.as_ref().is_none_or(|best| open < best.open) {
                best = Some(Seen { tool, named, open });
            }
        }
        best
    }
}

/// The profile that `vellum heap` makes of a program.
pub(super) fn profile(
    vellum: &Path,
    library: &Path,
    folder: &Path,
    interval: &str,
    program: &[impl AsRef<std::ffi::OsStr>],
) -> Option<Value> {
    let file = folder.join("heap.json");
    let mut command = Command::new(vellum);
    command.args(["heap", "-i", interval, "--lib"]).arg(library).arg("-o").arg(&file).arg("--").args(program);
    command.current_dir(folder).env("PYTHONHASHSEED", "0").env_remove("LD_PRELOAD");
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success());
    output.and_then(|_| serde_json::from_str(&std::fs::read_to_string(&file).ok()?).ok())
}

/// The bytes of a line in the given view.
fn held(document: &Value, source: &str, line: u64, when: &str) -> f64 {
    let sites = document["sites"].as_array().into_iter().flatten();
    let is_it = |site: &&Value| {
        let place = &site["place"];
        place["line"] == line && place["file"].as_str().is_some_and(|file| file.ends_with(source))
    };
    sites.filter(is_it).filter_map(|site| site["held"][when]["bytes"].as_f64()).sum()
}

/// Measures the time of `open`, which returns the text it shows.
fn opened(mut open: impl FnMut() -> Option<String>) -> Option<(Duration, String)> {
    let mut best: Option<(Duration, String)> = None;
    for _ in 0..OPENINGS {
        let began = Instant::now();
        let text = open()?;
        let took = began.elapsed();
        if best.as_ref().is_none_or(|(best, _)| took < *best) {
            best = Some((took, text));
        }
    }
    best
}

fn by_heaptrack(folder: &Path) -> Option<Seen> {
    said(folder, HEAPTRACK, &["--raw", "-o", "faults-track", "./faults"])?;
    let print = "f=$(ls faults-track.raw.*); case $f in *.zst) z=zstd;; *) z=gzip;; esac; \
        $z -dc $f | $(dirname $(readlink -f $(command -v heaptrack)))/../lib/heaptrack/libexec/heaptrack_interpret > faults-track.read && \
        heaptrack_print -p 1 -l 1 -T 1 -a 0 faults-track.read";
    let (open, text) = opened(|| {
        said(folder, "sh", &["-c", print]).map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    })?;
    let heads = ["MEMORY LEAKS", "PEAK MEMORY CONSUMERS", "MOST TEMPORARY ALLOCATIONS"];
    let mut named = [false; FAULTS.len()];
    for (at, (mark, _)) in FAULTS.iter().enumerate() {
        let part = text.split_once(heads[at]).map_or("", |(_, part)| part);
        let place = format!("faults.c:{}\n", line_of(PROGRAM, mark));
        named[at] = part.contains(&place);
    }
    Some(Seen { tool: "heaptrack, faults.c", named, open })
}

fn by_memray(folder: &Path) -> Option<Seen> {
    said(folder, "python3", &["-m", MEMRAY, "run", "-q", "-f", "-o", "faults.bin", "faults.py"])?;
    let views = ["--leaks", "", "--temporary-allocations"];
    let (mut named, mut longest) = ([false; FAULTS.len()], Duration::ZERO);
    for (at, view) in views.into_iter().enumerate() {
        let mut words = vec!["-m", MEMRAY, "flamegraph", "-f", "-o", "faults.html"];
        words.extend(Some(view).filter(|view| !view.is_empty()));
        words.push("faults.bin");
        let (open, page) = opened(|| {
            said(folder, "python3", &words)?;
            std::fs::read_to_string(folder.join("faults.html")).ok()
        })?;
        // The page has the text of each line that it shows.
        named[at] = page.contains(&format!("# {}\\n", FAULTS[at].0));
        longest = longest.max(open);
    }
    Some(Seen { tool: "memray, faults.py", named, open: longest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_mark_is_found_in_both_sources() {
        for (mark, _) in FAULTS {
            assert!(line_of(PROGRAM, mark) > 0 && line_of(SCRIPT, mark) > 0, "{mark}");
        }
        assert_eq!(line_of(PROGRAM, "none"), 0);
    }
}
