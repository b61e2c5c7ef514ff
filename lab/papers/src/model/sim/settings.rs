//! The sizes, the times and the workload of the simulated machine.
//!
//! Source: Nishigaki 1981, section 5, for memory, jobs and the delay of a fault. The rest is assumed.

use super::program::{Program, benchmark_programs, king_size_program};
use super::windows::{Eviction, Windows};
use crate::model::estimators::Quanta;
use crate::model::published::DELAY;
use vellum_workset::Ticks;

/// The settings in which runs differ. Times are in instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Page frames for programs.
    pub frames: usize,
    /// The choice of the windows.
    pub windows: Windows,
    /// The time when pages outside of windows are evicted.
    pub eviction: Eviction,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time that is counted.
    pub length: u64,
}

/// Frames for programs in the paper's 2 MB machine, of which we assume half for the system. Memory is short.
pub const FRAMES_2M: usize = 256;
/// Frames for programs in the 3 MB machine with the same system. Memory is not short.
pub const FRAMES_3M: usize = 512;
/// Initiators of the paper's machine, one of which has the King Size Program.
const INITIATORS: usize = 6;
/// Pages of the King Size Program: more than there are frames.
pub(crate) const KING_PAGES: u64 = 2000;
/// Its instructions on each page.
pub(crate) const KING_STAY: u64 = 25_000;
/// The first window of all jobs, in intervals Δ.
pub(super) const WINDOW_START: Quanta = Quanta(10);
/// Δ, half of that in the paper's section 4; the largest window is the paper's 4.0·10⁶.
pub(super) const INTERVAL: Ticks = Ticks(100_000);
pub(super) const WINDOW_MAX: Quanta = Quanta(40);
/// Mean time of a file operation: three times a page's.
pub(super) const OPERATION: u64 = 250_000;
/// S: the paging device's time for a page, and its time for each page of a block.
pub(super) const PAGE_TIME: u64 = DELAY as u64;
pub(super) const BLOCK_PAGE_TIME: u64 = PAGE_TIME / 20;
/// Instructions that the system executes for a fault.
pub(super) const FAULT_CPU: u64 = 2_000;
/// The warm-up: minutes of a machine of some million instructions a second.
pub(super) const WARM_UP: u64 = 100_000_000;

/// The programs of each initiator of the paper, one after the other, and again from the first. One initiator
/// has the King Size Program, the five others have B1 to B4, each beginning with a different one.
pub(super) fn initiators() -> Vec<Vec<Program>> {
    let mut initiators = vec![vec![king_size_program(KING_PAGES, KING_STAY)]];
    let mut programs = benchmark_programs();
    for _ in 1..INITIATORS {
        initiators.push(programs.clone());
        programs.rotate_left(1);
    }
    initiators
}
