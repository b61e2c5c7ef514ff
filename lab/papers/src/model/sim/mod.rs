//! A multiprogrammed machine, simulated: what windows do to throughput.
//!
//! ```text
//!            ┌────────── file device: a delay for each job ◀──────────┐
//!            ▼                                                        │ I/O
//!  ready ─▶ CPU (in turn, by slices) ──fault──▶ paging device (first come, first served, S each) ─▶ ready
//!    ▲                                                                │
//!    └── activated ── suspended (whole: pages out, pages in as blocks) ◀┘ no frame left
//! ```
//!
//! Jobs sit in *initiators*: when one ends, the next of its list starts. Each references its pages by the
//! stack model, or walks over them (the King Size Program), and does file I/O now and then. Frames are
//! limited. A job's pages that have left its window are evicted at its sample points. When there is no frame
//! for a fault, the job with the most service since its activation is suspended as a whole; it comes back in
//! turn. No job waits for ever: one that has waited long is exchanged for one that has run long.
//!
//! What differs between two runs is only [`Windows`]: one window for all, one window adjusted to the paging
//! load, one per job by a knee; or no windows, and the least recently used page of all goes.
//!
//! Time is in instructions of the one CPU. All is drawn from the seed: the same settings give the same
//! figures everywhere.
//!
//! | file | what |
//! | --- | --- |
//! | `program` | what jobs do: phases, B1 to B4, the King Size Program |
//! | `job` | a job in its initiator: where it is in its program, its pages, its counters |
//! | `windows` | who chooses the windows |
//! | `device` | the paging device |
//! | `machine` | CPU, frames, load control: the run |
//! | `settings` | sizes and times, and those of the source |
//! | `report` | the figures |
//!
//! Source: Nishigaki, section 5. Where it gives no details, a named constant or setting states our
//! assumption: file I/O, blocks, the order of suspension, the programs' curves (its Figure 3 gives their
//! shapes only).

mod device;
mod job;
mod machine;
mod program;
mod report;
mod settings;
mod windows;

pub use machine::simulate;
pub use program::{Behaviour, Program, ProgramPhase, benchmark_programs, king_size_program};
pub use report::{JobReport, Report};
pub use settings::{
    FRAMES_2M, FRAMES_3M, FRAMES_MIN, KING_PAGES, KING_STAY, Settings, SettingsError, WINDOW_START,
};
pub use windows::{Eviction, Windows};
