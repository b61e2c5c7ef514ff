//! Section `small` ("e" in tables): the small programs of mimalloc-bench, built by its own makefiles.
//!
//! `VELLUM_MIMALLOC_BENCH` names a checkout in which `./build-bench-env.sh bench` was run. Without one the
//! section has no cells, and the report names the missing parts. Each program does a fixed amount of work,
//! so that CPU times compare. Departure: larson, xmalloc-test, rptest and glibc-thread run for a fixed
//! time and are left out.

use super::{NO_SLOWER, Plan, Section, large_peak, leaner, line, table};
use crate::target::{Against, Target};
use crate::{Cell, Launch, Missing, Peer, Unit, peer};
use std::ffi::OsString;
use std::path::PathBuf;

/// The section's name.
pub(crate) const SMALL: &str = "small";
/// The variable that names the checkout.
const CHECKOUT: &str = "VELLUM_MIMALLOC_BENCH";
/// The folders of the built programs and of their inputs, in the checkout.
const BUILT: &str = "out/bench";
const INPUTS: &str = "bench";
/// This program reads its input from standard input.
const BARNES: &str = "barnes";
/// The program with large blocks, which has their memory target.
const MALLOC_LARGE: &str = "malloc-large";

/// A program: its cell, its file, and its arguments, in which `{N}` is the number of processors, `{2N}`
/// twice that, and `{bench}` the folder of inputs.
pub(super) struct Program {
    pub(super) cell: &'static str,
    file: &'static str,
    words: &'static str,
}

const fn program(cell: &'static str, file: &'static str, words: &'static str) -> Program {
    Program { cell, file, words }
}

/// Programs with one thread.
pub(super) const SINGLE: [Program; 6] = [
    program("cfrac", "cfrac", "17545186520507317056371138836327483792789528"),
    program("espresso", "espresso", "{bench}/espresso/largest.espresso"),
    program(BARNES, BARNES, ""),
    program("alloc-test-1", "alloc-test", "1"),
    program("glibc-simple", "glibc-simple", ""),
    program(MALLOC_LARGE, MALLOC_LARGE, ""),
];
const PARALLEL: [Program; 7] = [
    program("alloc-test-N", "alloc-test", "{N}"),
    program("sh6-N", "sh6bench", "{2N}"),
    program("sh8-N", "sh8bench", "{2N}"),
    program("cache-scratch-N", "cache-scratch", "{N} 1000 1 2000000 {N}"),
    program("cache-thrash-N", "cache-thrash", "{N} 1000 1 2000000 {N}"),
    program("mstress-N", "mstress", "{N} 50 25"),
    program("mleak-N", "mleak", "5"),
];
/// The cells of a quick campaign, since the programs cannot be shortened.
const QUICK: [&str; 4] = ["cfrac", "espresso", "sh6-N", "mstress-N"];

/// The checkout, built.
///
/// # Errors
/// A missing checkout, with the way to get it.
pub fn checkout() -> Result<PathBuf, Missing> {
    let folder = std::env::var_os(CHECKOUT).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = folder.and_then(|folder| std::path::absolute(folder).ok());
    folder.filter(|folder| folder.join(BUILT).is_dir()).ok_or_else(|| Missing {
        name: "mimalloc-bench",
        cure: format!(
            "the sections `small` and `hardened` run its programs: git clone \
             https://github.com/daanx/mimalloc-bench, ./build-bench-env.sh bench there, {CHECKOUT}=DIR"
        ),
    })
}

impl Program {
    /// The program under `peer`; `None` if it was not built.
    pub(super) fn launch(&self, plan: &Plan, peer: &Peer) -> Option<Launch> {
        let folder = plan.mimalloc_bench.as_deref()?;
        let file = folder.join(BUILT).join(self.file);
        if !file.is_file() {
            return None;
        }
        let inputs = folder.join(INPUTS);
        let words = self.words.split_whitespace().map(|word| match word {
            "{N}" => plan.threads.to_string(),
            "{2N}" => (2 * plan.threads).to_string(),
            _ => word.replace("{bench}", &inputs.to_string_lossy()),
        });
        let launch = if self.file == BARNES {
            let input = inputs.join(BARNES).join("input");
            Launch::new(
                "/bin/sh",
                ["-c".into(), "exec \"$0\" < \"$1\"".into(), OsString::from(file), input.into()],
            )
        } else {
            Launch::new(file, words)
        };
        Some(Launch { folder: Some(folder.join(BUILT)), preload: peer.library.clone(), ..launch })
    }
}

pub(crate) fn section(plan: &Plan) -> Section {
    let chosen =
        SINGLE.iter().chain(&PARALLEL).filter(|program| !plan.quick || QUICK.contains(&program.cell));
    let cells: Vec<Cell> = chosen
        .map(|program| Cell {
            rounds: plan.few_rounds(),
            ..plan.cell_of(program.cell, |peer| program.launch(plan, peer))
        })
        .filter(|cell| !cell.arms.is_empty())
        .collect();
    let lines = |target: &dyn Fn(&Cell) -> Option<Target>| {
        cells.iter().map(|cell| line(cell.name.clone(), cell, target(cell))).collect::<Vec<_>>()
    };
    let fast = |_: &Cell| Some(Target::at_most(NO_SLOWER, Against::Least(&[peer::GLIBC, peer::MIMALLOC3])));
    let lean = |cell: &Cell| Some(if cell.name == MALLOC_LARGE { large_peak() } else { leaner() });
    let of = |figure: &str, metric, unit, lines| {
        table(&format!("(e) Small programs: {figure}"), metric, unit, lines)
    };
    let tables = vec![
        of("CPU time, user and system, all threads", "process_cpu_ns", Unit::Millis, lines(&fast)),
        of("wall time", "process_wall_ns", Unit::Millis, lines(&fast)),
        of("peak resident memory", "process_peak_bytes", Unit::Mebibytes, lines(&lean)),
    ];
    Section { name: SMALL, cells, tables }
}
