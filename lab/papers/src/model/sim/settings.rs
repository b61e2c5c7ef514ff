//! The settings of the simulated machine: its sizes, its times and its workload.
//!
//! Source: Nishigaki, section 5, for memory, initiators and S. The rest is assumed: see the constants.

use super::program::{Program, benchmark_programs, king_size_program};
use super::windows::{Eviction, Windows};
use crate::model::estimators::Quanta;
use crate::model::published::DELAY;
use vellum_workset::Ticks;

/// A machine and its workload. Times are in instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Page frames for programs.
    pub(super) frames: usize,
    /// The programs of each initiator, one after the other, and again from the first.
    pub(super) initiators: Vec<Vec<Program>>,
    /// The choice of the windows.
    pub(super) windows: Windows,
    /// The time when pages outside of windows are evicted.
    pub(super) eviction: Eviction,
    /// Δ.
    pub(super) delta: Ticks,
    /// The largest window.
    pub(super) window_max: Quanta,
    /// S: the paging device's time for a page.
    pub(super) delay: u64,
    /// Its time for each page of a block, when a job is suspended or activated.
    pub(super) block_page: u64,
    /// Mean time of a file operation.
    pub(super) operation: u64,
    /// CPU time of the system for a fault.
    pub(super) fault_cpu: u64,
    /// Time before counting begins.
    pub(super) warm_up: u64,
    /// Time that is counted.
    pub(super) length: u64,
    /// Seed of all random choices.
    pub(super) seed: u64,
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
pub const WINDOW_START: Quanta = Quanta(10);
/// Δ, half of that in the paper's section 4; the largest window is the paper's 4.0·10⁶.
const INTERVAL: Ticks = Ticks(100_000);
const WINDOW_MAX: Quanta = Quanta(40);
/// Mean time of a file operation: three times a page's.
const OPERATION: u64 = 250_000;
/// The divisor of a page's time for each page in a block.
const BLOCK_PART: u64 = 20;
/// Instructions that the system executes for a fault.
const FAULT_CPU: u64 = 2_000;
/// The warm-up: minutes of a machine of some million instructions a second.
const WARM_UP: u64 = 100_000_000;

impl Settings {
    /// The paper's experiment on a machine with `frames` frames for programs, for `length` instructions. One
    /// initiator has the King Size Program, the five others have B1 to B4, each beginning with a different
    /// one.
    #[must_use]
    pub fn source(frames: usize, windows: Windows, eviction: Eviction, seed: u64, length: u64) -> Self {
        let mut initiators = vec![vec![king_size_program(KING_PAGES, KING_STAY)]];
        let mut programs = benchmark_programs();
        for _ in 1..INITIATORS {
            initiators.push(programs.clone());
            programs.rotate_left(1);
        }
        let delay = DELAY as u64;
        Self {
            frames,
            initiators,
            windows,
            eviction,
            delta: INTERVAL,
            window_max: WINDOW_MAX,
            delay,
            block_page: delay / BLOCK_PART,
            operation: OPERATION,
            fault_cpu: FAULT_CPU,
            warm_up: WARM_UP,
            length,
            seed,
        }
    }
}
