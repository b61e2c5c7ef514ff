//! The simulation of a multiprogrammed machine, to show the effect of windows on throughput.
//!
//! ```text
//!            ┌────────── file device: a delay for each job ◀──────────┐
//!            ▼                                                        │ I/O
//!  ready ─▶ CPU (in turn, by slices) ──fault──▶ paging device (first come, first served, S each) ─▶ ready
//!    ▲                                                                │
//!    └── activated ── suspended (whole: pages out, pages in as blocks) ◀┘ no frame left
//! ```
//!
//! Each job belongs to an *initiator*, a list of programs: when one ends, the next starts. A job
//! references its pages by the stack model (`slrum.rs`), or walks over them (the King Size Program), and
//! does file I/O now and then. Frames are limited.
//!
//! - Pages that have left a job's window are evicted at its sample points or when a frame is needed
//!   ([`Eviction`]).
//! - Without a free frame for a fault, the job with the most service since its activation is suspended as a
//!   whole. Suspended jobs come back in turn.
//! - No job waits for ever: a job that has waited long is exchanged for a job that has run long.
//!
//! Runs differ only in their [`Windows`] and eviction. There is one window for all jobs, adjusted to the
//! paging load, or one for each job, at its knee. Without windows, the least recently used page is evicted.
//!
//! Time is in instructions of the one CPU. All random numbers come from the seed: the same settings give the
//! same figures everywhere.
//!
//! | file | contents |
//! | --- | --- |
//! | `program` | the work of jobs: phases, B1 to B4, the King Size Program |
//! | `job` | a job: its position in its programs, its pages, its counters |
//! | `windows` | the choice of the windows |
//! | `device` | the paging device |
//! | `machine` | CPU, frames, load control: the run |
//! | `settings` | sizes and times, with the paper's values |
//! | `report` | the figures |
//!
//! Source: Nishigaki 1981, section 5. A named constant or setting states our assumption where the paper
//! gives no details: file I/O, blocks, the order of suspension, the programs' curves (the paper's Figure 3
//! gives only their shapes).

mod device;
mod job;
mod machine;
mod program;
mod report;
mod settings;
mod windows;

pub use machine::simulate;
pub(crate) use program::{Behaviour, Program, Stretches, benchmark_programs, king_size_program};
pub use report::{JobReport, Report};
pub use settings::{FRAMES_2M, FRAMES_3M, Settings};
pub(crate) use settings::{KING_PAGES, KING_STAY};
pub use windows::{Eviction, Windows};
