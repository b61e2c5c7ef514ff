//! The experiment `libgc` (`--libgc`): clients compiled for libgc, run with libgc's library or Vellum's.
//!
//! It measures the gain of unmodified programs written for libgc. The same executable runs with the
//! distribution's `libgc.so.1`, or with Vellum's first on the library path. The clients use libgc as a
//! compiler's output would: by their own free lists, filled by `GC_generic_malloc_many`. The heap has a
//! maximum, which is also its initial size. With little live data, Vellum's library uses less memory: it
//! collects more often and stays in the processor's cache.
//!
//! Invariant: a run counts as Vellum's only if the loader reports that it loads Vellum's `libgc.so.1`;
//! otherwise the distribution's library would be measured.

use super::client::CLIENTS;
use super::lab::{COLLECTOR, CPU, Lab, Place, View, keep, name, sum};
use crate::finding::table_by;
use crate::workshop::{Build, Collector};
use crate::{Bound, Finding, Goal, Table, Value};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vellum_campaign::Arm;
use vellum_campaign::cells::{cell, geomean, twin};

/// The library's name for the loader.
const SONAME: &str = "libgc.so.1";
/// The variable with the folders that the loader searches first.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// The variable that makes the loader print the libraries instead of running the program.
const TRACE: &str = "LD_TRACE_LOADED_OBJECTS";

/// The arm with Vellum's library.
const OURS: &str = "vellum_libgc";

/// Heap sizes besides each client's canonical one, MiB.
const HEAPS: &[u64] = &[4, 64];

const PEAK: &str = "peak_bytes";
/// Decimal digits of seconds.
const DIGITS: usize = 3;
const MILLIS: f64 = 1e6;
const MIB: f64 = (1 << 20) as f64;

/// Goals, as ratios to libgc's: for each client's total time and peak, and for the collector's time of all
/// clients.
const TOTAL_MAX: f64 = 1.0;
const PEAK_MAX: f64 = 1.0;
const COLLECTOR_MAX: f64 = 0.6;

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let mut finding = lab.finding(
        "Programs written for libgc, with Vellum's library in its place",
        "section 3, for programs as they are",
        "Published: nothing of the kind, as programs had to be compiled for MCC. Here the same executable runs with either libgc.so.1.",
    );
    let Ok(folder) = &lab.drop_in else {
        finding.notes.extend(lab.drop_in.clone().err());
        return finding;
    };
    if !lab.has(Collector::Libgc) {
        return finding;
    }
    let folder = folder.clone();
    let rounds = lab.scale.pick(7, 3, 1);
    let heaps = lab.scale.pick(HEAPS, &[], &[]);
    let (mut places, mut cells) = (Vec::new(), Vec::new());
    for client in &CLIENTS {
        for mib in client.sizes(heaps) {
            let mut arms = Vec::new();
            let theirs = Collector::Libgc.name();
            for label in [theirs.to_owned(), twin(theirs)] {
                arms.extend(lab.arm(&label, client, Collector::Libgc, Build::Plain, mib));
            }
            let ours = lab.arm(OURS, client, Collector::Libgc, Build::Plain, mib);
            match ours.map(|arm| with_library(arm, &folder)) {
                Some(Err(why)) => {
                    finding.notes.push(why);
                    return finding;
                }
                Some(Ok(arm)) => arms.push(arm),
                None => {}
            }
            places.push((client, mib));
            cells.push(cell(name((client, mib)), rounds, arms));
        }
    }
    let sheets = lab.campaign(&cells);
    let view = View { sheets: &sheets, seed: lab.seed };
    finding.tables = vec![times(&view, &places), rest(&view, &places)];
    finding.goals = goals(&view, &places);
    finding.notes.push(
        "seconds are CPU time, client + collector; '-' is a heap too small for the client. Both get the heap's size; where little is alive, \
         Vellum's library uses less of it and collects more often"
            .into(),
    );
    keep(&mut finding, &sheets);
    finding
}

/// The arm with the library of `folder` in place of libgc's.
///
/// # Errors
/// The reason why the loader does not load it, for the user.
fn with_library(mut arm: Arm, folder: &Path) -> Result<Arm, String> {
    let wanted = folder.join(SONAME);
    let found = loaded(&arm.launch.program, folder)?;
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if real(&found) != real(&wanted) {
        return Err(format!("the loader takes {} in place of {}", found.display(), wanted.display()));
    }
    arm.launch.env.push((LIBRARY_PATH.into(), folder.into()));
    Ok(arm)
}

/// The `libgc.so.1` that the loader gives a program with `folder` on the library path.
fn loaded(program: &Path, folder: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new(program);
    command.env_clear().env(TRACE, "1").env(LIBRARY_PATH, folder).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("starting {}: {error}", program.display()))?;
    named(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it names none");
        format!("{} cannot be loaded: {said}: run ./build", folder.join(SONAME).display())
    })
}

/// The path of `libgc.so.1` in the loader's output: a line `name => path (address)`.
fn named(said: &str) -> Option<PathBuf> {
    let line = said.lines().find_map(|line| line.trim().strip_prefix(SONAME))?;
    let path = line.trim_start().strip_prefix("=>")?.trim_start();
    path.rsplit_once(" (").map(|(path, _)| path).filter(|path| path.starts_with('/')).map(PathBuf::from)
}

fn times(view: &View<'_>, places: &[Place<'_>]) -> Table {
    let theirs = Collector::Libgc.name();
    let split = |at: Place<'_>, arm: &str| sum(view.split(at, arm), DIGITS);
    let over = |at: Place<'_>, arm: &str, metric: &str| Value::ratio(view.over(at, arm, metric));
    table_by(
        "The same executable with either library: time",
        places,
        &[
            ("client", "client", &|(client, _)| Value::text(client.title)),
            ("heap_mib", "heap|MiB", &|(_, mib)| Value::Count(*mib as usize)),
            ("libgc_s", "libgc|client + GC, s", &|at| split(*at, theirs)),
            ("vellum_libgc_s", "Vellum's|client + GC, s", &|at| split(*at, OURS)),
            ("total_ratio", "Vellum's / libgc's|total [95 %]", &|at| over(*at, OURS, CPU)),
            ("collector_ratio", "|collector [95 %]", &|at| over(*at, OURS, COLLECTOR)),
            ("control_ratio", "A/A|total [95 %]", &|at| over(*at, &twin(theirs), CPU)),
        ],
    )
}

fn rest(view: &View<'_>, places: &[Place<'_>]) -> Table {
    let theirs = Collector::Libgc.name();
    let of = |at: Place<'_>, arm: &str, metric: &str, unit: f64| {
        Value::of(view.figure(at, arm, metric).map(|of| of / unit))
    };
    table_by(
        "The same: memory, collections and pauses; libgc | Vellum's",
        places,
        &[
            ("client", "client", &|(client, _)| Value::text(client.title)),
            ("heap_mib", "heap|MiB", &|(_, mib)| Value::Count(*mib as usize)),
            ("libgc_peak_mib", "peak|MiB", &|at| of(*at, theirs, PEAK, MIB)),
            ("vellum_libgc_peak_mib", "|Vellum's", &|at| of(*at, OURS, PEAK, MIB)),
            ("peak_ratio", "|ratio [95 %]", &|at| Value::ratio(view.over(*at, OURS, PEAK))),
            ("libgc_collections", "GCs|", &|at| of(*at, theirs, "collections", 1.0)),
            ("vellum_libgc_collections", "|Vellum's", &|at| of(*at, OURS, "collections", 1.0)),
            ("libgc_pause_max_ms", "longest|pause, ms", &|at| of(*at, theirs, "pause_max_ns", MILLIS)),
            ("vellum_libgc_pause_max_ms", "|Vellum's", &|at| of(*at, OURS, "pause_max_ns", MILLIS)),
        ],
    )
}

fn goals(view: &View<'_>, places: &[Place<'_>]) -> Vec<Goal> {
    let worst = |what: &str, metric: &str, max: f64| {
        let (place, found) = view.worst(places, OURS, metric);
        let what = format!("Vellum's libgc.so.1 / libgc's, {what}, the worst{place}");
        Goal::within(what, "", Bound::AtMost(max), found)
    };
    let canonical = CLIENTS.iter().map(|client| name((client, client.heap_mib)));
    let theirs = Collector::Libgc.name();
    let collector = geomean(view.sheets, canonical, (OURS, COLLECTOR), (theirs, COLLECTOR), view.seed);
    vec![
        worst("total time", CPU, TOTAL_MAX),
        Goal::within(
            "the collector's part of it, geomean at canonical heaps",
            "",
            Bound::AtMost(COLLECTOR_MAX),
            collector,
        ),
        worst("peak memory", PEAK, PEAK_MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_the_loaders_output() {
        let said = "\tlinux-vdso.so.1 (0x7ffe)\n\tlibgc.so.1 => /opt/a b/libgc.so.1 (0x7f01)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f02)\n";
        assert_eq!(named(said), Some(PathBuf::from("/opt/a b/libgc.so.1")));
        assert_eq!(named("\tlibgc.so.1 => not found\n"), None);
        assert_eq!(named("\tlibc.so.6 => /lib/libc.so.6 (0x7f02)\n"), None);
    }
}
