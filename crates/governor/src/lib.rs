//! The governor: divides one memory budget among all jobs, so that each running job has enough to run well.
//!
//! Several jobs on one machine need more memory together than the machine has. The kernel evicts pages of
//! all jobs by one measure of age. A page unused for a second may be worth keeping for one job and worth
//! nothing for another, so each job has its own *window*, the time for which unused pages stay
//! ([`vellum_workset`]). The governor finds the window of each job, and gives the job the memory that it
//! uses in this window. If not all jobs fit, it suspends whole jobs.
//!
//! ```text
//! jobs.toml ─▶ Config ─▶ Governor ─▶ Job … Job         start or adopt, watch, reclaim, suspend
//!                          │  │        ▲  │ claims
//!                          │  └─ Policy┘◀─┘             the running jobs, their memory (pure)
//!                          ├─ Guardian, Record          undo everything if the governor dies
//!                          └─▶ Snapshot ─▶ state socket (`vellum top`) · metrics (OpenMetrics) ·
//!                                          advice socket (runtimes)
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | job | a command started here, or a running process or cgroup, with all descendants |
//! | worth | a job's memory at its knee, beyond which more memory is not worth its cost; given when memory is short |
//! | squeezed | jobs hold or need more memory than the budget |
//! | suspend | stop a whole job, and reclaim its memory if possible |
//! | turn | the time after which a suspended job's urgency rises by one |
//! | bound | the longest time for which a job is suspended without a break |
//! | brake | the share of time stalled on memory above which nothing is reclaimed |
//!
//! # Promises
//!
//! - No memory is reclaimed from a job while all fit, and no hard limit is ever lowered.
//! - A job table with an error is refused as a whole, with line and reason, before any job is touched.
//! - However the governor ends, its jobs are resumed: at once if it stops or is killed, within
//!   [`guardian::LAPSE`] if it hangs. If its guardians are killed with it, [`recover()`] or the next governor
//!   resumes them.
//! - No job is suspended for longer than a bound ([`policy`]). Cgroups made by the governor are removed
//!   when it has ended and they are empty.
//! - Without privilege, the governor only gives advice and suspends whole jobs, as each job's state shows.
//!
//! # Use
//!
//! ```no_run
//! use vellum_governor::{Config, Governor, Setting};
//!
//! let config = Config::read("jobs.toml".as_ref())?;
//! let mut governor = Governor::new(config, Setting::default())?;
//! loop {
//!     let step = governor.step();
//!     step.events.iter().for_each(|event| println!("{event}"));
//!     let Some(wait) = step.wait else { break };
//!     std::thread::sleep(wait);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
pub mod config;
mod delay;
mod event;
mod exposition;
pub mod families;
mod freeze;
mod governor;
pub mod guardian;
mod job;
mod keeper;
mod machine;
mod members;
mod metrics;
mod peer;
mod place;
pub mod policy;
#[doc(hidden)]
pub mod readers;
mod record;
mod recover;
mod snapshot;
mod start;
mod state_socket;
mod stop;
mod take;
mod user;

pub use config::{Config, ConfigError};
pub use event::Event;
pub use exposition::{Admits, Exposition, MetricsError, Stream, Tls};
pub use freeze::FreezeError;
pub use governor::{DEVICE_DELAY, GovernError, Governor, Setting, Step};
pub use guardian::GuardianError;
pub use keeper::Keeper;
pub use peer::Peer;
pub use place::{PlaceError, state_socket, usual as usual_place};
pub use policy::{Decision, Limit, Policy};
pub use record::Recovered;
pub use recover::{RecoverError, recover};
pub use snapshot::{JobSnapshot, SCHEMA, Snapshot, State, Untouched};
pub use start::StartError;
pub use stop::{Stop, StopError};
pub use take::may_page_out;
