//! Measures the cost of a heap profile in instructions, which callgrind counts. The programs run with
//! small inputs. Other programs on the machine do not change this count.
//!
//! valgrind cannot run Vellum's background thread (`helper`), so the thread is switched off. The library
//! also detects valgrind, by the name of valgrind's preloaded libraries, and then passes all requests to
//! the C library. The run therefore uses a copy of the library in which that name is altered.

use super::INTERVALS;
use crate::programs::program::Ready;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vellum_campaign::{Bound, Goal};
use vellum_cost::HeldFile;
use vellum_report::Table;
use vellum_report::units::fixed;
use vellum_wire::held::HELD_ENV;

/// The word before the number in callgrind's summary.
const COLLECTED: &str = "Collected :";
/// The first eight bytes of the name by which the library detects valgrind (it compares them in a
/// register), and a name that it does not detect.
const NAMES: [&[u8]; 2] = [b"vgpreloa", b"vgprelox"];
/// Bounds of the cost for each interval, in percent.
const COST_MAX: [f64; 2] = [1.0, 5.0];

/// Counts the instructions of each program without a profile and with each of ours; `None` without valgrind.
pub(super) fn table(
    programs: &[Ready],
    folder: &Path,
    library: &Path,
    goals: &mut Vec<Goal>,
) -> Option<Table> {
    let library = renamed(library, &folder.join("libvellum-counted.so"))?;
    let [(often, _), (oftener, _)] = INTERVALS;
    let heads = ["", "million", &format!("{often} %"), &format!("{oftener} %")];
    let title = "Instructions of programs with little to do; and what a profile adds";
    let mut table = Table::plain(&heads, 1).titled(title);
    let mut sums = [0.0; 1 + INTERVALS.len()];
    for ready in programs {
        let Some(words) = ready.program.little else { continue };
        let count = |interval| count(ready, words, interval, folder, &library);
        let Some(off) = count(None) else { continue };
        let on = INTERVALS.map(|(_, interval)| count(Some(interval)));
        let [Some(first), Some(second)] = on else { continue };
        for (sum, instructions) in sums.iter_mut().zip([off, first, second]) {
            // Programs have equal weights.
            *sum += instructions / off;
        }
        let percent = |on: f64| fixed(Some((on / off - 1.0) * 100.0), 2);
        table.row(vec![
            ready.program.name.to_owned(),
            fixed(Some(off / 1e6), 0),
            percent(first),
            percent(second),
        ]);
    }
    let [off, on @ ..] = sums;
    for (((label, _), most), sum) in INTERVALS.into_iter().zip(COST_MAX).zip(on) {
        let what = format!("instructions added by a sample every {label}, mean of the programs");
        goals.push(Goal::of(what, " %", Bound::AtMost(most), (off > 0.0).then(|| (sum / off - 1.0) * 100.0)));
    }
    Some(table)
}

/// Whether valgrind is installed.
pub(super) fn is_possible() -> bool {
    let mut asked = Command::new("valgrind");
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// A copy of the library that does not detect valgrind.
fn renamed(library: &Path, copy: &Path) -> Option<PathBuf> {
    let mut bytes = std::fs::read(library).ok().filter(|_| is_possible())?;
    let [name, other] = NAMES;
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(name.len()).position(|window| window == name) {
        at += found;
        bytes[at..at + name.len()].copy_from_slice(other);
    }
    std::fs::write(copy, bytes).ok()?;
    Some(copy.to_path_buf())
}

/// The instructions of one run.
fn count(ready: &Ready, words: &[&str], interval: Option<u64>, folder: &Path, library: &Path) -> Option<f64> {
    let place = folder.join("counted");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(ready.executable()).args(words);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.env("LD_PRELOAD", library).env("VELLUM_MASK", "helper").env("PYTHONHASHSEED", "0");
    let held = match interval {
        Some(interval) => {
            std::fs::create_dir(&place).ok()?;
            let held = HeldFile::create(&place, interval);
            command.env(HELD_ENV, held.as_ref().ok()?.path());
            held.ok()
        }
        None => None,
    };
    let output = command.output().ok();
    let is_profiled = held.as_ref().is_some_and(|held| held.holders().is_ok_and(|all| !all.is_empty()));
    if interval.is_some() {
        std::fs::remove_dir_all(&place).ok()?;
    }
    if interval.is_some() != is_profiled {
        return None;
    }
    let errors = String::from_utf8_lossy(&output?.stderr).into_owned();
    errors.lines().find_map(|line| line.split_once(COLLECTED)?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copied_library_has_the_altered_name_at_the_same_place() {
        let [name, other] = NAMES;
        assert_eq!(name.len(), other.len());
        let place = tempfile::tempdir().expect("a directory");
        let library = place.path().join("library");
        std::fs::write(&library, [b"before ", name, b" behind"].concat()).expect("written");
        match renamed(&library, &place.path().join("copy")) {
            Some(copy) => {
                assert_eq!(std::fs::read(copy).expect("written"), [b"before ", other, b" behind"].concat());
            }
            None => vellum_skip::skip("valgrind is not here"),
        }
    }
}
