//! Tests of the interface for Rust programs. There is one heap per process, so programs that need other
//! settings run in separate processes.

use vellum_heap::{Config, Plan};

/// Collects at every allocation and overwrites dead objects.
const EAGER: Config = Config { eager: 1, poison: true, ..Config::DEFAULT };
/// Also checks every invariant in every phase.
const APPEL: Config = Config { plan: Plan::Appel, paranoid: true, ..EAGER };
const COPYING: Config = Config { plan: Plan::MostlyCopying, restless: true, paranoid: true, ..EAGER };

/// Defines a test of `run` for each plan, with the given numbers of steps.
macro_rules! on_every_plan {
    ($run:ident: $mark_sweep:expr, $copying:expr, $appel:expr) => {
        #[test]
        fn mark_sweep() {
            vellum_skip::alone(|| $run(crate::EAGER, $mark_sweep));
        }

        #[test]
        fn copying() {
            vellum_skip::alone(|| $run(crate::COPYING, $copying));
        }

        #[test]
        fn appel() {
            vellum_skip::alone(|| $run(crate::APPEL, $appel));
        }
    };
}

mod graph;
mod language;
mod limits;
mod words;
